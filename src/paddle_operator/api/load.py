"""From a file to PaddleJobs, without a server: every mistake is found at once, and named."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from .crd import paddle_job_schema
from .documents import BadDocument, read_documents
from .lines import Lines
from .meta import Manifest
from .paddlejob import PaddleJob
from .resources import PADDLE_JOBS
from .schema_check import Problem, Schema, check, without_nulls
from .validate import spec_problems

_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "object", "additionalProperties": _TEXT}
_NUMBER: Schema = {"type": "integer"}
_SWITCH: Schema = {"type": "boolean"}
_TIME: Schema = {"type": "string", "format": "date-time"}
_ANYTHING: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_OWNER: Schema = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("apiVersion", "kind", "name", "uid"), _TEXT),
        **dict.fromkeys(("controller", "blockOwnerDeletion"), _SWITCH),
    },
    "required": ["apiVersion", "kind", "name", "uid"],
}
# The server knows the metadata of every kind by itself, so the CRD has no schema of it.
METADATA: Schema = {
    "type": "object",
    "properties": {
        "name": _TEXT,
        "namespace": _TEXT,
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "finalizers": {"type": "array", "items": _TEXT},
        "ownerReferences": {"type": "array", "items": _OWNER},
        # What `kubectl get -o yaml` adds.
        **dict.fromkeys(("generateName", "uid", "resourceVersion", "selfLink"), _TEXT),
        **dict.fromkeys(("generation", "deletionGracePeriodSeconds"), _NUMBER),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), _TIME),
        "managedFields": {"type": "array", "items": _ANYTHING},
    },
    "required": ["name"],
}


NO_JOB = f"holds no {PADDLE_JOBS.kind}; write one, of {PADDLE_JOBS.api_version}"


@dataclass(frozen=True)
class Contents:
    """Of a file: its PaddleJobs, and the documents of other kinds as they are written."""

    jobs: tuple[PaddleJob, ...]
    others: tuple[Manifest, ...]
    numbers: tuple[int, ...]
    """Which document of the file each job is, from 1."""


def load_jobs(text: str, namespace: str = "default") -> tuple[PaddleJob, ...]:
    """The PaddleJobs of a file of one or more YAML (or JSON) documents; other kinds are passed over."""
    jobs = load_file(text, namespace).jobs
    if not jobs:
        raise BadDocument(Problem("file", NO_JOB))
    return jobs


def load_file(
    text: str, namespace: str = "default", edit: Callable[[Manifest], Manifest] = lambda document: document
) -> Contents:
    """``edit`` changes each PaddleJob before it is checked."""
    jobs: dict[int, PaddleJob] = {}
    others: list[Manifest] = []
    found: list[Problem] = []
    for number, document in _edited(read_documents(text), edit):
        try:
            if _is_ours(document):
                jobs[number] = _load_job(document, namespace)
            else:
                others.append(document)
        except BadDocument as bad:
            lines = Lines(text, number)
            found += [replace(one, line=lines.of(one.field)) for one in bad.problems]
    if found:
        raise BadDocument(*found)
    return Contents(tuple(jobs.values()), tuple(others), tuple(jobs))


def _edited(documents: list[Any], edit: Callable[[Manifest], Manifest]) -> list[tuple[int, Any]]:
    """Those that are not empty, with their numbers. What ``edit`` refuses is in no line of the file."""
    return [
        (number, edit(one) if isinstance(one, dict) and one.get("kind") == PADDLE_JOBS.kind else one)
        for number, one in enumerate(documents, 1)
        if one is not None
    ]


def _load_job(document: Manifest, namespace: str) -> PaddleJob:
    # Only the operator writes a status; the server, too, takes none from a file.
    written = {name: value for name, value in document.items() if name != "status"}
    if found := tuple(check(written, _schema(), "")):
        raise BadDocument(*found)
    written = without_nulls(written)
    written["metadata"]["namespace"] = written["metadata"].get("namespace") or namespace
    try:
        job = msgspec.json.decode(msgspec.json.encode(written), type=PaddleJob)
    except msgspec.MsgspecError as error:
        what, _, where = str(error).partition(" - at `$")
        raise BadDocument(Problem(where.strip("`.") or "document", what)) from error
    if broken := spec_problems(job):
        raise BadDocument(*broken)
    return job


def _is_ours(document: Any) -> bool:
    """Whether it is a PaddleJob; refuses what has no kind, or nearly ours."""
    if not isinstance(document, dict):
        raise BadDocument(Problem("document", "must be an object with apiVersion, kind, metadata and spec"))
    kind, version = document.get("kind"), document.get("apiVersion")
    for field, value, example in (
        ("apiVersion", version, PADDLE_JOBS.api_version),
        ("kind", kind, PADDLE_JOBS.kind),
    ):
        if not value or not isinstance(value, str):
            raise BadDocument(Problem(field, f"is required, as text; write for example {example}"))
    if kind == PADDLE_JOBS.kind and version != PADDLE_JOBS.api_version:
        raise BadDocument(Problem("apiVersion", f"{version!r} is not served; use {PADDLE_JOBS.api_version}"))
    if version == PADDLE_JOBS.api_version and kind != PADDLE_JOBS.kind:
        raise BadDocument(Problem("kind", f"{kind!r} is no kind of {version}; use {PADDLE_JOBS.kind}"))
    return bool(kind == PADDLE_JOBS.kind)


def _schema() -> Schema:
    schema = paddle_job_schema()
    return {
        **schema,
        "properties": {**schema["properties"], "metadata": METADATA},
        "required": ["metadata", *schema["required"]],
    }
