"""What a job may say by annotations, which its spec has no field for, and the rules about it."""

import posixpath
from collections.abc import Iterator

from .names import (
    ANNOTATION_ACCELERATOR,
    ANNOTATION_ASYNC_PS,
    ANNOTATION_HOSTFILE,
    ANNOTATION_INDEPENDENT_RANKS,
    ANNOTATION_PORT,
    LAST_PORT,
    PADDLE_PORT,
)
from .paddlejob import Mode, PaddleJob, is_port, read_template, training_container_of
from .schema_check import Problem

_ANSWERS = {"true": True, "false": False}
_QUESTIONS = (ANNOTATION_ACCELERATOR, ANNOTATION_ASYNC_PS, ANNOTATION_INDEPENDENT_RANKS)


def answer_to(question: str, annotations: dict[str, str]) -> bool | None:
    """None: it was not answered."""
    return _ANSWERS.get(annotations.get(question, ""))


def annotation_rules(job: PaddleJob) -> Iterator[Problem]:
    annotations = job.metadata.annotations
    yield from _port_problems(annotations)
    for question in _QUESTIONS:
        written = annotations.get(question)
        if written is not None and written not in _ANSWERS:
            yield Problem(_field(question), f'{written!r} is no answer; use "true" or "false"')
    yield from _hostfile_problems(job)


def _port_problems(annotations: dict[str, str]) -> Iterator[Problem]:
    written = annotations.get(ANNOTATION_PORT)
    if written is not None and not is_port(written):
        yield Problem(
            _field(ANNOTATION_PORT),
            f"{written!r} is no port; use a number from 1 to {LAST_PORT}, or leave it out for {PADDLE_PORT}",
        )


def _hostfile_problems(job: PaddleJob) -> Iterator[Problem]:
    path = job.metadata.annotations.get(ANNOTATION_HOSTFILE)
    if path is None:
        return
    field = _field(ANNOTATION_HOSTFILE)
    if job.spec.mode is Mode.PS:
        yield Problem(
            field, "is for jobs without servers, whose workers are ranks of one world; leave it out"
        )
    is_plain = path.isprintable() and ":" not in path and posixpath.normpath(path) == path
    if not (is_plain and path.startswith("/") and path.strip("/")):
        yield Problem(
            field,
            f"{path!r} is no absolute path of a file; use one like /workspace/hostfile, without .. and :",
        )
    training = training_container_of(read_template(job.spec.worker.template).get("spec"))
    if any(mount.get("mountPath") == path for mount in training.get("volumeMounts") or ()):
        yield Problem(field, f"{path!r} is the mountPath of a volume already; use another path")


def _field(annotation: str) -> str:
    return f"metadata.annotations[{annotation}]"
