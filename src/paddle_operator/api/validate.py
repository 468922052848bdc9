"""Every rule about a PaddleJob that makes it refused, each with the field and the remedy.

The CRD's schema repeats what it can say; objects that were stored before a rule existed, and files that no
server has seen, are judged here alone.
"""

import re
from collections.abc import Iterator

from .names import pod_name
from .paddlejob import Intranet, Mode, PaddleJob, Role, RoleSpec, read_template
from .structural import Problem

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
LONGEST_LABEL = 63


def problems(job: PaddleJob) -> tuple[Problem, ...]:
    """What the user must change before anything is created; empty for a good job."""
    return tuple(_find(job))


def not_served(job: PaddleJob) -> tuple[Problem, ...]:
    """What is well formed and promised, but not built yet: said aloud instead of ignored."""
    spec = job.spec
    asked = {
        "spec.ps": ("parameter-server mode", spec.mode is Mode.PS),
        "spec.heter": ("heterogeneous training", Role.HETER in job.roles),
        "spec.intranet": (f"network mode {spec.intranet}", spec.network is not Intranet.POD_IP),
        "spec.elastic": ("elastic training", bool(spec.elastic)),
        "spec.schedulingPolicy": ("gang scheduling", spec.scheduling_policy is not None),
        "spec.sampleSetRef": ("cached training data", spec.sample_set_ref is not None),
    }
    return tuple(
        Problem(field, f"{what} is not served by this version of the operator; remove the field")
        for field, (what, wanted) in asked.items()
        if wanted
    )


def _find(job: PaddleJob) -> Iterator[Problem]:
    name = job.metadata.name
    if not _DNS_LABEL.fullmatch(name):
        yield Problem(
            "metadata.name",
            f"{name!r} cannot begin the names of pods; use lower-case letters, digits and dashes",
        )
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
    field = f"spec.{role}.template.spec"
    pod = read_template(spec.template).get("spec")
    if not isinstance(pod, dict) or not pod.get("containers"):
        yield Problem(f"{field}.containers", "must have at least one container")
        return
    if pod.get("restartPolicy") == "Always":
        yield Problem(
            f"{field}.restartPolicy",
            "Always would never let the job end; use Never (the default) or OnFailure",
        )
