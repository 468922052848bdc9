"""Rules of the CRD that no keyword of a schema can say, in CEL. Each repeats one of validate.py.

A rule is asked at every write, that of a status too. What a stored job broke before there was the rule is let
through by servers from 1.30 on, if that part of the job is left as it is. Names are part of no such part: so
rules about them look at new jobs only, which have no status. What CEL cannot see (namespace, annotations) or
would be too dear (lists in lists) is said by the operator, as a condition.
"""

from typing import Any

from .limits import MOST_HOST_PODS
from .words import DNS_LABEL, LONGEST_LABEL

Rule = dict[str, str]

ROLES = ("worker", "ps", "heter")
_FIXED = "cannot change during the life of a job; delete the job and create it anew"
_FIXED_WHILE_IT_RUNS = "cannot change while the job runs; set runPolicy.suspend first"
_ON_HOST = "has(self.intranet) && self.intranet in ['Host', 'HostNetwork']"


def _rule(rule: str, field: str, message: str) -> Rule:
    return {"rule": rule, "fieldPath": f".{field}", "message": message}


def _pods(role: str, job: str = "self") -> str:
    """How many a role has; the server has filled in replicas by then."""
    return f"(has({job}.{role}) ? {job}.{role}.replicas : 0)"


_ALL_PODS = " + ".join(_pods(role) for role in ROLES)


def _same(field: str, nothing: str) -> str:
    now, before = (f"(has({one}.{field}) ? {one}.{field} : {nothing})" for one in ("self", "oldSelf"))
    return f"{now} == {before}"


def _suspended(job: str) -> str:
    return f"(has({job}.runPolicy) && has({job}.runPolicy.suspend) && {job}.runPolicy.suspend)"


_IS_SUSPENDED = f"{_suspended('self')} || {_suspended('oldSelf')}"

# Peers are told once in each try how many they are, and how to find each other.
FIXED = [
    _rule(
        f"self.worker.replicas == oldSelf.worker.replicas || {_IS_SUSPENDED}",
        "worker.replicas",
        _FIXED_WHILE_IT_RUNS,
    ),
    *(
        # Without fieldPath: the role itself may be missing.
        {
            "rule": f"(has(self.{role}) == has(oldSelf.{role}) && {_pods(role)} == {_pods(role, 'oldSelf')})"
            f" || {_IS_SUSPENDED}",
            "message": f"{role} {_FIXED_WHILE_IT_RUNS}",
        }
        for role in ("ps", "heter")
    ),
    _rule(_same("intranet", "''"), "intranet", _FIXED),
    _rule(_same("withGloo", "-1"), "withGloo", _FIXED),
]

OF_A_ROLE = [
    _rule(
        "self.replicas == 0 || !has(self.template.spec.restartPolicy)"
        " || self.template.spec.restartPolicy in ['', 'Never', 'OnFailure']",
        "template.spec.restartPolicy",
        "use Never (the default) or OnFailure; Always would never let the job end",
    ),
    _rule(
        "self.replicas == 0 || !has(self.requests) || self.requests <= self.replicas",
        "requests",
        "must be at most replicas; lower it",
    ),
    _rule(
        "self.replicas == 0 || !has(self.limits) || self.limits >= self.replicas",
        "limits",
        "must be at least replicas; raise it",
    ),
]

OF_A_SPEC = [
    *FIXED,
    _rule(
        "!has(self.schedulingPolicy) || !has(self.schedulingPolicy.minAvailable)"
        f" || self.schedulingPolicy.minAvailable <= {_ALL_PODS}",
        "schedulingPolicy.minAvailable",
        "must be at most the number of pods; lower it, or leave it out",
    ),
    _rule(
        f"!({_ON_HOST}) || {_ALL_PODS} <= {MOST_HOST_PODS}",
        "intranet",
        f"on the host network a job has at most {MOST_HOST_PODS} pods in all; use fewer, or PodIP",
    ),
    *(
        _rule(
            f"!(has(self.{role}) && self.{role}.replicas > 0 && has(self.{role}.template.spec.hostNetwork)"
            f" && self.{role}.template.spec.hostNetwork) || ({_ON_HOST})",
            f"{role}.template.spec.hostNetwork",
            "goes with intranet Host only, as pods of one node would share an address; "
            "use intranet: Host instead",
        )
        for role in ROLES
    ),
]


def _name_rule(rule: str, message: str) -> Rule:
    return _rule(f"has(self.status) || {rule}", "metadata.name", message)


OF_A_JOB = [
    _name_rule(
        f"self.metadata.name.matches('^{DNS_LABEL}$')",
        "is no DNS label, which pods need; use lower-case letters, digits and dashes",
    ),
    _name_rule(
        "!has(self.spec.intranet) || self.spec.intranet != 'Service' || self.metadata.name.matches('^[a-z]')",
        "must begin with a letter, as names of Services do; rename the job, or use intranet PodIP",
    ),
    *(
        _name_rule(
            f"!has(self.spec.{role}) || self.spec.{role}.replicas == 0 || size(self.metadata.name)"
            f" + size(string(self.spec.{role}.replicas - 1)) <= {LONGEST_LABEL - len(f'-{role}-')}",
            f"is too long: a pod is named <name>-{role}-<index>, in at most {LONGEST_LABEL} characters; "
            "shorten it",
        )
        for role in ROLES
    ),
]


def tighten(template: dict[str, Any]) -> None:
    """To the published schema of a pod template, what the server would say of each pod only later."""
    label = {"pattern": f"^{DNS_LABEL}$", "maxLength": LONGEST_LABEL}
    pod = template["properties"]["spec"]["properties"]
    for kind in ("containers", "initContainers", "volumes"):
        pod[kind] |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
        pod[kind]["items"]["properties"]["name"] |= label
    pod["containers"]["minItems"] = 1
    for kind in ("containers", "initContainers"):
        container = pod[kind]["items"]
        container["required"] = [*container["required"], "image"]
        container["properties"]["image"]["minLength"] = 1
        port = container["properties"]["ports"]["items"]["properties"]
        port["containerPort"] |= {"minimum": 1, "maximum": 65535}
        port["hostPort"] |= {"minimum": 0, "maximum": 65535}
