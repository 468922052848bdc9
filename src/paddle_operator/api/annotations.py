"""What a job may say by annotations, which its spec has no field for, and the rules about it."""

import posixpath
from collections.abc import Iterator
from difflib import get_close_matches

from .names import (
    ANNOTATION_ACCELERATOR,
    ANNOTATION_ASYNC_PS,
    ANNOTATION_HOSTFILE,
    ANNOTATION_INDEPENDENT_RANKS,
    ANNOTATION_PORT,
    HOSTFILE,
    LAST_PORT,
    PADDLE_PORT,
    PREFIX,
)
from .paddlejob import Mode, PaddleJob, is_port, read_template, training_container_of
from .schema_check import Problem

_ANSWERS = {"true": True, "false": False}
_QUESTIONS = (ANNOTATION_ACCELERATOR, ANNOTATION_ASYNC_PS, ANNOTATION_INDEPENDENT_RANKS)
_OURS = (*_QUESTIONS, ANNOTATION_HOSTFILE, ANNOTATION_PORT)
# Files that the kubelet itself puts into each container.
_OF_THE_KUBELET = frozenset({"/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/dev/termination-log"})


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
    yield from _misspelt(annotations)


def _misspelt(annotations: dict[str, str]) -> Iterator[Problem]:
    """Others may have annotations under this prefix; one that is nearly ours is meant to be ours."""
    for written in annotations:
        near = (
            get_close_matches(written.lower(), _OURS, n=1, cutoff=0.9) if written.startswith(PREFIX) else []
        )
        if near and written not in _OURS:
            yield Problem(_field(written), f"is not known; did you mean {near[0]}?")


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
    if path in _OF_THE_KUBELET:
        yield Problem(field, f"{path!r} is a file that each container has already; use another path")
    if not (is_plain and path.startswith("/") and path.strip("/")):
        yield Problem(
            field,
            f"{path!r} is no absolute path of a file; use one like /workspace/hostfile, without .. and :",
        )
    pod = read_template(job.spec.worker.template).get("spec") or {}
    mounts = [mount.get("mountPath") for mount in training_container_of(pod).get("volumeMounts") or ()]
    if any(posixpath.normpath(str(mounted)) == path for mounted in mounts):
        yield Problem(field, f"{path!r} is the mountPath of a volume already; use another path")
    others = [*(pod.get("volumes") or ()), *(pod.get("containers") or ()), *(pod.get("initContainers") or ())]
    if any(one.get("name") == HOSTFILE for one in others):
        yield Problem(field, f"needs the name {HOSTFILE} for its volume and its container; rename yours")


def _field(annotation: str) -> str:
    return f"metadata.annotations[{annotation}]"
