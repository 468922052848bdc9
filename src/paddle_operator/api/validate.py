"""Every rule about a PaddleJob that makes it refused, each with the field and the remedy.

The CRD's schema repeats what it can say; objects that were stored before a rule existed, and files that no
server has seen, are judged here alone.
"""

import re
from collections.abc import Iterator

from .crd import pod_template_schema
from .names import ANNOTATION_PORT, LAST_PORT, PADDLE_PORT, pod_name
from .paddlejob import PaddleJob, Role, RoleSpec, is_port, read_template
from .schema_check import Problem, check

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
LONGEST_LABEL = 63
_DNS_NAME = re.compile(rf"(?=.{{1,253}}\Z){_DNS_LABEL.pattern}(\.{_DNS_LABEL.pattern})*")
_LABEL_WORD = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_ADVICE = (
    "use at most 63 letters, digits, dashes, dots and underscores, with a letter or digit at each end"
)


def spec_problems(job: PaddleJob) -> tuple[Problem, ...]:
    """What the user must change before anything is created; empty for a good job."""
    return tuple(_find(job))


def not_served(job: PaddleJob) -> tuple[Problem, ...]:
    """What is well formed and promised, but not built yet: said aloud instead of ignored."""
    spec = job.spec
    asked = {
        "spec.heter": ("heterogeneous training", Role.HETER in job.roles),
        "spec.elastic": ("elastic training", bool(spec.elastic)),
        "spec.schedulingPolicy": ("gang scheduling", spec.scheduling_policy is not None),
        "spec.sampleSetRef": ("cached training data", spec.sample_set_ref is not None),
    }
    return tuple(
        Problem(
            field, f"{what} is not served by this version of the operator; create the job anew without it"
        )
        for field, (what, wanted) in asked.items()
        if wanted
    )


def is_dns_label(name: str) -> bool:
    return len(name) <= LONGEST_LABEL and _DNS_LABEL.fullmatch(name) is not None


def _find(job: PaddleJob) -> Iterator[Problem]:
    name = job.metadata.name
    if not _DNS_LABEL.fullmatch(name):
        yield Problem(
            "metadata.name",
            f"{name!r} is no DNS label, which pods need; use lower-case letters, digits and dashes",
        )
    namespace = job.metadata.namespace
    if not is_dns_label(namespace):
        yield Problem(
            "metadata.namespace",
            f"{namespace!r} is no name of a namespace; use at most {LONGEST_LABEL} lower-case letters, "
            "digits and dashes",
        )
    yield from _label_problems(job.metadata.labels)
    yield from _port_problems(job.metadata.annotations)
    if job.spec.worker.replicas < 1:
        yield Problem("spec.worker.replicas", "must be at least 1; a job needs a trainer")
    for role, spec in job.roles.items():
        yield from _role_problems(name, role, spec)


def _role_problems(job: str, role: Role, spec: RoleSpec) -> Iterator[Problem]:
    longest = pod_name(job, role, spec.replicas - 1)
    if len(longest) > LONGEST_LABEL:
        spare = len(longest) - LONGEST_LABEL
        yield Problem(
            "metadata.name",
            f"too long: the pod name {longest!r} has {len(longest)} characters and may have {LONGEST_LABEL}; "
            f"shorten it by {spare}",
        )
    field = f"spec.{role}.template"
    template = read_template(spec.template)
    if found := tuple(check(template, pod_template_schema(), field)):
        yield from found
        return
    if not template["spec"]["containers"]:
        yield Problem(f"{field}.spec.containers", "must have at least one container; add one named paddle")
    for kind in ("initContainers", "containers"):
        for position, container in enumerate(template["spec"].get(kind) or ()):
            if not container.get("image"):
                yield Problem(f"{field}.spec.{kind}[{position}].image", "is required; name the image to run")
    policy = template["spec"].get("restartPolicy") or "Never"
    if policy not in {"Never", "OnFailure"}:
        fault = "would never let the job end" if policy == "Always" else "is not known"
        yield Problem(
            f"{field}.spec.restartPolicy", f"{policy!r} {fault}; use Never (the default) or OnFailure"
        )


def _port_problems(annotations: dict[str, str]) -> Iterator[Problem]:
    written = annotations.get(ANNOTATION_PORT)
    if written is not None and not is_port(written):
        yield Problem(
            f"metadata.annotations[{ANNOTATION_PORT}]",
            f"{written!r} is no port; use a number from 1 to {LAST_PORT}, or leave it out for {PADDLE_PORT}",
        )


def _label_problems(labels: dict[str, str]) -> Iterator[Problem]:
    for name, value in labels.items():
        domain, slash, word = name.rpartition("/")
        if not _LABEL_WORD.fullmatch(word) or (slash and not _DNS_NAME.fullmatch(domain)):
            yield Problem("metadata.labels", f"{name!r} is no name of a label; {_LABEL_ADVICE}")
        if value and not _LABEL_WORD.fullmatch(value):
            yield Problem(f"metadata.labels[{name}]", f"{value!r} is no value of a label; {_LABEL_ADVICE}")
