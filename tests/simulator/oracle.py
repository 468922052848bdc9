"""Invariant 26: the end state is that of the undisturbed life, up to UIDs, versions, times."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from paddle_operator.api.meta import Manifest
from paddle_operator.api.names import ANNOTATION_NUDGE, ANNOTATION_PEERS, RESTARTING, RUNNING
from paddle_operator.api.paddlejob import Role
from paddle_operator.api.resources import EVENTS, PODS, AnyResource
from simulator.history import PORTS_OF_A_POD, owner_of, slots_of
from simulator.kubelet import NODE_ADDRESS
from simulator.life import Life, Workload, live
from simulator.workloads import ALL

IDENTITY = {
    "metadata.uid",
    "metadata.resourceVersion",
    "metadata.creationTimestamp",
    "metadata.deletionTimestamp",
    f"metadata.annotations.{ANNOTATION_PEERS}",
    "status.conditions.lastTransitionTime",
    "status.completionTime",
    "status.attemptTime",
    "status.resumeTime",
    *(f"status.containerStatuses.{state}.terminated.finishedAt" for state in ("state", "lastState")),
}
# Who looks late, or is dead meanwhile, may never have seen the job run: no start time, no such condition. Nor
# does it matter when it looked at pods that go on: how far they were, whether one had to be told to stop.
MATTERS_OF_A_MOMENT = {
    "status.startTime",
    *(
        f"status.{role}.{name}"
        for role in Role
        for name in ("refs", "pending", "starting", "running", "replicas")
    ),
    "spec.activeDeadlineSeconds",
    f"metadata.annotations.{ANNOTATION_NUDGE}",
}
VOLATILE = IDENTITY | MATTERS_OF_A_MOMENT
"""Where in a document; of the items of a list, that of the list."""
ANOTHER_END = "another end"
"""In the place of the name of an invariant: this one is broken."""


class UndisturbedError(Exception):
    """A life is broken although nothing goes wrong in it: it has no end that others can be measured by."""

    def __init__(self, workload: Workload, broken: str) -> None:
        super().__init__(f"broken without any fault: {broken}")
        self.workload = workload


def end_of(life: Life) -> Manifest:
    """Everything that is stored but events, with names in the place of UIDs, addresses, ports."""
    aliases = {
        pod["status"]["podIP"]: name
        for name, pod in life.history.of_kind(PODS).items()
        if pod["status"].get("podIP", NODE_ADDRESS) != NODE_ADDRESS
    }
    for entry in life.history.entries:
        pod = (entry.after or {}).get("metadata", {}) if entry.resource == PODS else {}
        if (address := life.kubelet.addresses.get(pod.get("uid", ""), NODE_ADDRESS)) != NODE_ADDRESS:
            aliases[address] = pod["name"]
    for (kind, key), document in life.history.objects.items():
        aliases[document["metadata"]["uid"]] = f"{kind} {key.name}"
    ports = _ports_from_zero(life)
    return {
        f"{kind} {key.name}": without_volatile(_renamed(document, aliases, _ports_of(document, ports)))
        for (kind, key), document in sorted(life.history.objects.items(), key=lambda item: item[0][1])
        if kind != EVENTS
    }


@dataclass(frozen=True)
class Calm:
    """What is remembered of a life without faults: its end, and how much there is in it to disturb."""

    end: Manifest
    writes: int
    shown: Mapping[AnyResource, int]
    """Changes that its watches have shown."""
    changes: int


_calm: dict[int, tuple[Workload, Calm]] = {}


def calm(workload: Workload, life: Life | None = None) -> Calm:
    """Lived once for each workload that is the same object, unless that has been done."""
    if id(workload) not in _calm:
        life = life or _sound(workload)
        told = Calm(end_of(life), len(life.witness.writes), life.witness.told, life.history.version)
        _calm[id(workload)] = workload, told
    return _calm[id(workload)][1]


@cache
def undisturbed(name: str) -> tuple[Life, Manifest]:
    """The life of that name without faults, and its end."""
    life = _sound(ALL[name])
    return life, calm(ALL[name], life).end


def _sound(workload: Workload) -> Life:
    try:
        life = live(workload)
    except Exception as error:
        raise UndisturbedError(workload, type(error).__name__) from error
    if broken := dict.fromkeys(one.invariant.__name__ for one in life.witness.violations):
        raise UndisturbedError(workload, ", ".join(broken))
    return life


def differences(found: Any, expected: Any, path: str = "") -> Iterator[str]:
    if isinstance(found, dict) and isinstance(expected, dict):
        for name in {**found, **expected}:
            yield from differences(found.get(name), expected.get(name), f"{path}.{name}")
    elif found != expected:
        yield f"{path} is {found!r}, was {expected!r}"


def _ports_from_zero(life: Life) -> dict[str, dict[str, str]]:
    """Of jobs that run at once, any may be the first to choose its ports: each counts its own."""
    ports: dict[str, dict[str, str]] = {}
    for job in life.jobs.values():
        first = job["status"].get("hostPort", 0)
        block = PORTS_OF_A_POD * len(slots_of(job)) if first else 0
        ports[job["metadata"]["uid"]] = {str(first + number): str(number) for number in range(block)}
    return ports


def _ports_of(document: Manifest, ports: dict[str, dict[str, str]]) -> dict[str, str]:
    return ports.get(owner_of(document) or document["metadata"]["uid"], {})


def _renamed(document: Manifest, aliases: dict[str, str], ports: dict[str, str]) -> Manifest:
    text = msgspec.json.encode(document).decode()
    # The longest first: one address may begin like another.
    for found in sorted(aliases, key=len, reverse=True):
        text = text.replace(found, f"<{aliases[found]}>")
    if ports:
        text = re.sub(r"\b\d{5}\b", lambda found: ports.get(found[0], found[0]), text)
    renamed: Manifest = msgspec.json.decode(text)
    return renamed


def without_volatile(value: Any, where: str = "") -> Any:
    if isinstance(value, list):
        return [without_volatile(item, where) for item in value if not _is_of_a_moment(item)]
    if isinstance(value, dict):
        inner = {name: f"{where}.{name}".lstrip(".") for name in value}
        return {
            name: without_volatile(item, inner[name])
            for name, item in value.items()
            if inner[name] not in VOLATILE
        }
    return value


def _is_of_a_moment(value: object) -> bool:
    """That it runs, and that what was before has come to an end."""
    if not isinstance(value, dict) or "status" not in value:
        return False
    return value.get("type") == RUNNING or (value.get("type") == RESTARTING and value["status"] == "False")
