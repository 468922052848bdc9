"""The bodies of the fake kubelet's requests. Each names the pod's UID: a namesake is never touched."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from testbed.node_pods import Pod

encode = msgspec.json.encode
# As a kubelet patches: conditions of others, such as an eviction's, are left alone.
STRATEGIC = "application/strategic-merge-patch+json"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pod lives: fixed from the moment when the node takes it."""

    host_ip: str
    pod_ip: str
    start_time: str


@dataclass(frozen=True, slots=True)
class Ending:
    """How and (`at`, in loop time) when the containers of a pod end."""

    at: float
    exit_code: int
    reason: str
    pod_reason: str | None = None
    pod_message: str | None = None


def timestamp() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def binding(pod: Pod, node: str) -> bytes:
    meta = pod.metadata
    return encode(
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
    )


def deletion(pod: Pod) -> bytes:
    return encode({"gracePeriodSeconds": 0, "preconditions": {"uid": pod.metadata.uid}})


def unschedulable(pod: Pod) -> bytes:
    message = "0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible."
    scheduled = condition("PodScheduled", "False", timestamp(), reason="Unschedulable", message=message)
    return _patch(pod, {"conditions": [scheduled]})


def creating(pod: Pod, place: Place) -> bytes:
    """As a kubelet reports it while the image is pulled: there is no address yet."""
    states = [{"waiting": {"reason": "ContainerCreating"}} for _ in pod.containers]
    return _patch(pod, _pending(pod, place, states))


def config_error(pod: Pod, place: Place, messages: Sequence[str | None]) -> bytes:
    """As a kubelet reports it after a failed start: the address is known, each blocked container says why."""
    states = [
        {"waiting": {"reason": "CreateContainerConfigError", "message": message}}
        if message
        else {"waiting": {"reason": "ContainerCreating"}}
        for message in messages
    ]
    return _patch(pod, _pending(pod, place, states) | _addresses(place))


def running(pod: Pod, place: Place, started_at: str) -> bytes:
    conditions = [condition(kind, "True", started_at) for kind in ("Initialized", "ContainersReady", "Ready")]
    status = {
        "phase": "Running",
        "hostIP": place.host_ip,
        "startTime": place.start_time,
        "conditions": conditions,
        "containerStatuses": _containers(
            pod, [{"running": {"startedAt": started_at}} for _ in pod.containers], ready=True
        ),
    }
    return _patch(pod, status | _addresses(place))


def ended(pod: Pod, place: Place, started_at: str | None, ending: Ending) -> bytes:
    """Final status. Containers that never started end as with a kubelet: unknown, with code 137."""
    now = timestamp()
    if started_at is None:
        end: dict[str, Any] = {"exitCode": 137, "reason": "ContainerStatusUnknown", "startedAt": None}
        end["message"] = "The container could not be located when the pod was terminated"
    else:
        end = {
            "exitCode": ending.exit_code,
            "reason": ending.reason,
            "startedAt": started_at,
            "finishedAt": now,
        }
    succeeded = started_at is not None and ending.exit_code == 0 and ending.pod_reason is None
    why = "PodCompleted" if succeeded else "PodFailed"
    status: dict[str, Any] = {
        "phase": "Succeeded" if succeeded else "Failed",
        "startTime": place.start_time,
        "conditions": [condition(kind, "False", now, reason=why) for kind in ("ContainersReady", "Ready")],
        "containerStatuses": _containers(pod, [{"terminated": end} for _ in pod.containers], ready=False),
    }
    if ending.pod_reason:
        status |= {"reason": ending.pod_reason, "message": ending.pod_message}
    return _patch(pod, status)


def _patch(pod: Pod, status: dict[str, Any]) -> bytes:
    return encode({"metadata": {"uid": pod.metadata.uid}, "status": status})


def _addresses(place: Place) -> dict[str, Any]:
    return {"podIP": place.pod_ip, "podIPs": [{"ip": place.pod_ip}]}


def _pending(pod: Pod, place: Place, states: Sequence[dict[str, Any]]) -> dict[str, Any]:
    now = timestamp()
    not_ready = [
        condition(kind, "False", now, reason="ContainersNotReady") for kind in ("ContainersReady", "Ready")
    ]
    return {
        "phase": "Pending",
        "hostIP": place.host_ip,
        "startTime": place.start_time,
        "conditions": [condition("Initialized", "True", now), *not_ready],
        "containerStatuses": _containers(pod, states, ready=False),
    }


def _containers(pod: Pod, states: Sequence[dict[str, Any]], *, ready: bool) -> list[dict[str, Any]]:
    return [
        {
            "name": container.name,
            "image": container.image,
            "imageID": "",
            "ready": ready,
            "started": ready,
            "restartCount": 0,
            "state": state,
        }
        for container, state in zip(pod.containers, states, strict=True)
    ]


def condition(
    kind: str, status: str, now: str, *, reason: str | None = None, message: str | None = None
) -> dict[str, Any]:
    # None takes a value of an earlier step away.
    return {"type": kind, "status": status, "lastTransitionTime": now, "reason": reason, "message": message}
