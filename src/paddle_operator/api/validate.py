"""Every rule about a PaddleJob that makes it refused, each with the field and the remedy.

The CRD's schema repeats what it can say; objects that were stored before a rule existed, and files that no
server has seen, are judged here alone.
"""

import re
from collections.abc import Iterator
from typing import Any

from .annotations import annotation_rules
from .crd import pod_template_schema
from .limits import size_problems
from .names import pod_name
from .paddlejob import Mode, PaddleJob, Role, RoleSpec, read_template, training_container_of
from .pod_rules import pod_problems
from .schema_check import Problem, check, shown, without_nulls
from .words import DNS_LABEL, LONGEST_LABEL, annotation_problems, is_dns_label, label_problems

LAUNCHER = "paddle.distributed.launch"


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


def _find(job: PaddleJob) -> Iterator[Problem]:
    yield from _metadata_problems(job)
    if job.spec.worker.replicas < 1:
        yield Problem("spec.worker.replicas", "must be at least 1; a job needs a trainer")
    for role, spec in job.roles.items():
        yield from _role_problems(job, role, spec)
    yield from _gang_problems(job)
    yield from size_problems(job)


def _metadata_problems(job: PaddleJob) -> Iterator[Problem]:
    name, namespace = job.metadata.name, job.metadata.namespace
    if not re.fullmatch(DNS_LABEL, name):
        yield Problem(
            "metadata.name",
            f"{shown(name)} is no DNS label, which pods need; use lower-case letters, digits and dashes",
        )
    elif job.found_by_name and not name[0].isalpha():
        yield Problem(
            "metadata.name",
            f"{name!r} begins with a digit, which the name of a Service may not; let it begin with a letter, "
            "or use intranet PodIP",
        )
    pods = [pod_name(name, role, spec.replicas - 1) for role, spec in job.roles.items()]
    if (length := max(map(len, pods), default=0)) > LONGEST_LABEL:
        longest = max(pods, key=len)
        yield Problem(
            "metadata.name",
            f"too long: the pod name {shown(longest)} has {length} characters and may have {LONGEST_LABEL}; "
            f"shorten it by {length - LONGEST_LABEL}",
        )
    if not is_dns_label(namespace):
        yield Problem(
            "metadata.namespace",
            f"{shown(namespace)} is no name of a namespace; use at most {LONGEST_LABEL} lower-case letters, "
            "digits and dashes",
        )
    yield from label_problems(job.metadata.labels, "metadata.labels")
    yield from annotation_problems(job.metadata.annotations, "metadata.annotations")
    yield from annotation_rules(job)


def _role_problems(job: PaddleJob, role: Role, spec: RoleSpec) -> Iterator[Problem]:
    yield from _elastic_problems(role, spec)
    field = f"spec.{role}.template"
    template = without_nulls(read_template(spec.template))
    if found := tuple(check(template, pod_template_schema(), field)):
        yield from found
        return
    asks_for_host = bool(template["spec"].get("hostNetwork"))
    if asks_for_host and not job.on_host_network:
        yield Problem(
            f"{field}.spec.hostNetwork",
            f"does not go with intranet {job.spec.effective_intranet}, as pods of one node would share an "
            "address; use intranet: Host instead",
        )
    yield from pod_problems(template, field, on_host_network=job.on_host_network or asks_for_host)
    if job.spec.mode is Mode.PS:
        yield from _launcher_problems(template["spec"], f"{field}.spec")


def _launcher_problems(pod: dict[str, Any], field: str) -> Iterator[Problem]:
    training = training_container_of(pod)
    words = [*(training.get("command") or ()), *(training.get("args") or ())]
    if LAUNCHER in words:
        yield Problem(
            f"{field}.containers[{pod['containers'].index(training)}].command",
            f"{LAUNCHER} takes servers for workers, and all would wait for each other for ever; "
            "run the script itself: python train.py",
        )


def _elastic_problems(role: Role, spec: RoleSpec) -> Iterator[Problem]:
    if spec.requests is not None and spec.requests > spec.replicas:
        yield Problem(
            f"spec.{role}.requests",
            f"must be at most replicas, {spec.replicas}, not {spec.requests}; lower it",
        )
    if spec.limits is not None and spec.limits < spec.replicas:
        yield Problem(
            f"spec.{role}.limits", f"must be at least replicas, {spec.replicas}, not {spec.limits}; raise it"
        )


def _gang_problems(job: PaddleJob) -> Iterator[Problem]:
    policy = job.spec.scheduling_policy
    total = sum(spec.replicas for spec in job.roles.values())
    if policy is not None and policy.min_available is not None and policy.min_available > total:
        yield Problem(
            "spec.schedulingPolicy.minAvailable",
            f"must be at most {total}, the number of pods, not {policy.min_available}; lower it, or leave it "
            "out",
        )
