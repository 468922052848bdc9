"""From a file to PaddleJobs, without a server: every mistake is found at once, and named."""

from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from .crd import paddle_job_schema
from .paddlejob import PaddleJob
from .resources import PADDLE_JOBS
from .structural import Problem, check
from .validate import problems

# A document may be long, but aliases must not make a page of text into gigabytes.
MOST_VALUES = 200_000


class BadDocument(Exception):  # noqa: N818 (reads as what it is)
    """The file cannot be used; ``problems`` says what is wrong, where, and what to do."""

    def __init__(self, found: list[Problem]) -> None:
        super().__init__("; ".join(map(str, found)))
        self.problems = found


def load_jobs(text: str, namespace: str = "default") -> list[PaddleJob]:
    """The PaddleJobs of a file of one or more YAML (or JSON) documents; other kinds are passed over."""
    jobs: list[PaddleJob] = []
    found: list[Problem] = []
    documents = _documents(text)
    for number, document in documents:
        where = f"document {number}: " if len(documents) > 1 else ""
        try:
            jobs.extend(_load_job(document, namespace))
        except BadDocument as bad:
            found.extend(Problem(where + problem.field, problem.message) for problem in bad.problems)
    if not jobs and not found:
        found.append(Problem("file", f"holds no {PADDLE_JOBS.kind} of {PADDLE_JOBS.api_version}"))
    if found:
        raise BadDocument(found)
    return jobs


def _documents(text: str) -> list[tuple[int, Any]]:
    try:
        for node in yaml.compose_all(text, Loader=yaml.SafeLoader):
            if _count_values(node, {}) > MOST_VALUES:
                raise BadDocument(
                    [Problem("file", f"has more than {MOST_VALUES} values once aliases are followed")]
                )
        loaded = list(yaml.safe_load_all(text))
    except yaml.YAMLError as error:
        raise BadDocument([Problem("file", f"is not YAML: {' '.join(str(error).split())}")]) from error
    except RecursionError as error:
        raise BadDocument([Problem("file", "is nested too deeply")]) from error
    return [(number, document) for number, document in enumerate(loaded, 1) if document is not None]


def _count_values(node: yaml.Node, known: dict[int, int]) -> int:
    if id(node) not in known:
        known[id(node)] = 0
        match node:
            case yaml.MappingNode():
                parts = [part for pair in node.value for part in pair]
            case yaml.SequenceNode():
                parts = node.value
            case _:
                parts = []
        known[id(node)] = 1 + sum(_count_values(part, known) for part in parts)
    return known[id(node)]


def _load_job(document: Any, namespace: str) -> Iterator[PaddleJob]:
    if not isinstance(document, dict):
        raise BadDocument([Problem("document", "must be an object with apiVersion, kind, metadata and spec")])
    if document.get("kind") != PADDLE_JOBS.kind:
        return
    if document.get("apiVersion") != PADDLE_JOBS.api_version:
        message = f"{document.get('apiVersion')!r} is not served; use {PADDLE_JOBS.api_version}"
        raise BadDocument([Problem("apiVersion", message)])
    if found := [*_metadata_problems(document), *check(document, paddle_job_schema(), "")]:
        raise BadDocument(found)
    metadata = {"namespace": namespace, **document["metadata"]}
    try:
        job = msgspec.json.decode(msgspec.json.encode({**document, "metadata": metadata}), type=PaddleJob)
    except msgspec.MsgspecError as error:
        what, _, where = str(error).partition(" - at `$")
        raise BadDocument([Problem(where.strip("`.") or "document", what)]) from error
    if broken := problems(job):
        raise BadDocument(list(broken))
    yield job


def _metadata_problems(document: dict[str, Any]) -> Iterator[Problem]:
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        yield Problem("metadata.name", "is required; give the job a name")
    elif not isinstance(metadata["name"], str):
        yield Problem("metadata.name", f"must be text; write {str(metadata['name'])!r} in quotes")
