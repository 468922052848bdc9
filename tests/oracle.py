"""Invariant 26: the end state is that of the undisturbed life, up to UIDs, versions, times."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from invariants_of_peers import PORTS_OF_A_POD
from simulated import Life, live
from simulated_history import owner_of, slots_of
from simulated_kubelet import NODE_ADDRESS
from workloads import LIVES

from paddle_operator.api.meta import Manifest
from paddle_operator.api.names import ANNOTATION_NUDGE, ANNOTATION_PEERS, RESTARTING, RUNNING
from paddle_operator.api.resources import EVENTS, PODS

IDENTITY = {
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "lastTransitionTime",
    "completionTime",
    "attemptTime",
    "resumeTime",
    "finishedAt",
    "deletionTimestamp",
    ANNOTATION_PEERS,
}
# Who looks late, or is dead meanwhile, may never have seen the job run: no start time, no such condition. Nor
# does it matter when it looked at pods that go on: how far they were, whether one had to be told to stop.
MATTERS_OF_A_MOMENT = {
    "startTime",
    "refs",
    "pending",
    "starting",
    "running",
    "replicas",
    "activeDeadlineSeconds",
    ANNOTATION_NUDGE,
}
VOLATILE = IDENTITY | MATTERS_OF_A_MOMENT


def end_of(life: Life) -> Manifest:
    """Everything that is stored but events, with names in the place of UIDs, addresses, ports."""
    aliases = {
        pod["status"]["podIP"]: name
        for name, pod in life.history.of_kind(PODS).items()
        if pod["status"].get("podIP", NODE_ADDRESS) != NODE_ADDRESS
    }
    for start in life.kubelet.started.values():
        metadata = start.pod["metadata"]
        if (address := life.kubelet.addresses[metadata["uid"]]) != NODE_ADDRESS:
            aliases[address] = metadata["name"]
    for (kind, key), document in life.history.objects.items():
        aliases[document["metadata"]["uid"]] = f"{kind} {key.name}"
    ports = _ports_from_zero(life)
    return {
        f"{kind} {key.name}": _without_volatile(_renamed(document, aliases, _ports_of(document, ports)))
        for (kind, key), document in sorted(life.history.objects.items(), key=lambda item: item[0][1])
        if kind != EVENTS
    }


def check_end(life: Life, expected: Manifest, fault: object) -> None:
    """Raise what is different in the end, with the story that led to it."""
    different = [*_differences(end_of(life), expected)]
    assert not different, "\n".join([f"{fault}: another end", *different, life.witness.story()])


_undisturbed: dict[str, tuple[Life, Manifest]] = {}


def undisturbed(name: str) -> tuple[Life, Manifest]:
    """The life without faults, and its end; lived once for each name."""
    if name not in _undisturbed:
        life = live(LIVES[name])
        life.check()
        _undisturbed[name] = life, end_of(life)
    return _undisturbed[name]


def _differences(found: Any, expected: Any, path: str = "") -> Iterator[str]:
    if isinstance(found, dict) and isinstance(expected, dict):
        for name in {**found, **expected}:
            yield from _differences(found.get(name), expected.get(name), f"{path}.{name}")
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


def _without_volatile(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_volatile(item) for item in value if not _is_of_a_moment(item)]
    if isinstance(value, dict):
        return {name: _without_volatile(item) for name, item in value.items() if name not in VOLATILE}
    return value


def _is_of_a_moment(value: object) -> bool:
    """That it runs, and that what was before has come to an end."""
    if not isinstance(value, dict) or "status" not in value:
        return False
    return value.get("type") == RUNNING or (value.get("type") == RESTARTING and value["status"] == "False")
