"""What a pod needs beyond its schema. The server would refuse each pod; this refuses the job, and in words.

Not all that the server knows of pods is repeated: what is missing here comes back as CreateRefused.
"""

from collections.abc import Iterator
from fractions import Fraction
from itertools import chain
from typing import Any

from .quantities import quantity
from .schema_check import Problem, join
from .words import annotation_problems, label_problems

Container = dict[str, Any]
Placed = tuple[str, Container]
"""A container and its field."""


def pod_problems(template: dict[str, Any], field: str, *, on_host_network: bool) -> Iterator[Problem]:
    """Of a template that its schema allows."""
    metadata = template.get("metadata") or {}
    yield from label_problems(metadata.get("labels") or {}, f"{field}.metadata.labels")
    yield from annotation_problems(metadata.get("annotations") or {}, f"{field}.metadata.annotations")
    pod, field = template["spec"], f"{field}.spec"
    yield from _restart_problems(pod, field)
    main, initial = (list(_placed(pod, field, kind)) for kind in ("containers", "initContainers"))
    yield from _shared_names(main, initial)
    yield from _ports_taken_twice(main)
    volumes = {volume["name"] for volume in pod.get("volumes") or ()}
    for where, container in chain(initial, main):
        yield from _missing_volumes(container, where, volumes)
        yield from _resource_problems(container.get("resources") or {}, f"{where}.resources")
        if on_host_network:
            yield from _moved_ports(container, where)


def _placed(pod: dict[str, Any], field: str, kind: str) -> Iterator[Placed]:
    for position, container in enumerate(pod.get(kind) or ()):
        yield f"{field}.{kind}[{position}]", container


def _restart_problems(pod: dict[str, Any], field: str) -> Iterator[Problem]:
    policy = pod.get("restartPolicy") or "Never"
    if policy not in {"Never", "OnFailure"}:
        fault = "would never let the job end" if policy == "Always" else "is not known"
        yield Problem(f"{field}.restartPolicy", f"{policy!r} {fault}; use Never (the default) or OnFailure")


def _shared_names(main: list[Placed], initial: list[Placed]) -> Iterator[Problem]:
    """Of containers of both kinds; those of one kind differ by the schema."""
    names = {container["name"] for _, container in main}
    for where, container in initial:
        if container["name"] in names:
            yield Problem(
                f"{where}.name", f"{container['name']!r} is the name of a container too; rename one"
            )


def _ports_taken_twice(containers: list[Placed]) -> Iterator[Problem]:
    taken: set[tuple[Any, ...]] = set()
    for where, port in _ports(containers):
        number = port.get("hostPort")
        claim = (number, port.get("protocol") or "TCP", port.get("hostIP") or "")
        if number and claim in taken:
            yield Problem(f"{where}.hostPort", f"{number} is taken by another port of this pod; use another")
        taken.add(claim)


def _moved_ports(container: Container, field: str) -> Iterator[Problem]:
    for where, port in _ports([(field, container)]):
        number = port.get("hostPort")
        if number and number != port["containerPort"]:
            yield Problem(
                f"{where}.hostPort",
                f"must be {port['containerPort']}, the containerPort, not {number}: the pod is on the host "
                "network; leave it out",
            )


def _ports(containers: list[Placed]) -> Iterator[tuple[str, dict[str, Any]]]:
    for where, container in containers:
        for position, port in enumerate(container.get("ports") or ()):
            yield f"{where}.ports[{position}]", port


def _missing_volumes(container: Container, field: str, volumes: set[str]) -> Iterator[Problem]:
    for position, mount in enumerate(container.get("volumeMounts") or ()):
        if mount["name"] not in volumes:
            yield Problem(
                f"{field}.volumeMounts[{position}].name",
                f"{mount['name']!r} is no volume of this pod; add it to spec.volumes, or correct the name",
            )


def _resource_problems(resources: dict[str, Any], field: str) -> Iterator[Problem]:
    amounts: dict[str, dict[str, Fraction]] = {"requests": {}, "limits": {}}
    for kind, found in amounts.items():
        for name, written in (resources.get(kind) or {}).items():
            where = join(f"{field}.{kind}", name)
            try:
                found[name] = quantity(written)
            except ValueError as error:
                # The pattern of the schema lets some through that Kubernetes' parser does not.
                yield Problem(where, str(error))
                continue
            if found[name] < 0:
                yield Problem(where, f"must not be negative, and is {written!r}; correct it")
    for name, amount in amounts["requests"].items():
        if name in amounts["limits"] and amount > amounts["limits"][name]:
            wanted, most = resources["requests"][name], resources["limits"][name]
            yield Problem(
                join(f"{field}.requests", name),
                f"{wanted!r} is more than the limit {most!r}; lower it, or raise that",
            )
