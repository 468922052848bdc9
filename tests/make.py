"""Builders for tests: say what matters, the rest is a good job on a good cluster."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from paddle_operator.api.core import ConfigMap, Pod, Service
from paddle_operator.api.meta import Manifest
from paddle_operator.api.paddlejob import PaddleJob, Role
from paddle_operator.paddlejob.config_map import build_config_map, endpoints_by_name
from paddle_operator.paddlejob.endpoints import Endpoint, Slot, slots_of
from paddle_operator.paddlejob.observed import Observed
from paddle_operator.paddlejob.pods import build_pod
from paddle_operator.paddlejob.services import build_service

NOW = datetime(2026, 11, 18, 12, 0, 0, tzinfo=UTC)
UID = "0a0a0a0a-0000-4000-8000-000000000001"


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def container(**fields: Any) -> Manifest:
    return {"name": "paddle", "image": "registry.baidubce.com/paddle-operator/demo-resnet:v1", **fields}


def template(*containers: Manifest, metadata: Manifest | None = None, **spec: Any) -> Manifest:
    made: Manifest = {"spec": {"containers": list(containers) or [container()], **spec}}
    return made if metadata is None else {"metadata": metadata, **made}


def role(replicas: int, pod: Manifest | None = None) -> Manifest:
    return {"replicas": replicas, "template": pod or template()}


def manifest(name: str = "resnet", workers: int = 2, *, pod: Manifest | None = None, **spec: Any) -> Manifest:
    """A PaddleJob as a user writes it."""
    return {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": name},
        "spec": {"worker": role(workers, pod), **spec},
    }


def paddlejob(
    name: str = "resnet",
    workers: int = 2,
    *,
    uid: str = UID,
    metadata: Manifest | None = None,
    status: Manifest | None = None,
    pod: Manifest | None = None,
    **spec: Any,
) -> PaddleJob:
    """A PaddleJob as the server stores it."""
    document = manifest(name, workers, pod=pod, **spec)
    document["metadata"] = {
        "name": name,
        "namespace": "team",
        "uid": uid,
        "resourceVersion": "100",
        "generation": 1,
        "creationTimestamp": (NOW - seconds(10)).isoformat(),
        **(metadata or {}),
    }
    document["status"] = status or {}
    return msgspec.json.decode(msgspec.json.encode(document), type=PaddleJob)


def pod(
    job: PaddleJob,
    rank: int = 0,
    phase: str = "Pending",
    *,
    role: Role = Role.WORKER,
    ip: str | None = None,
    exit_code: int | None = None,
    waiting: str = "",
    metadata: Manifest | None = None,
    **status: Any,
) -> Pod:
    """A pod of the job as the server stores it; Running ones are ready, ended ones carry an exit code."""
    made = build_pod(job, Slot(role, rank))
    number = rank + 100 * (role is Role.PS)
    made["metadata"] |= {"uid": f"pod-{job.uid[:4]}-{number}", "resourceVersion": str(200 + number)}
    made["metadata"] |= metadata or {}
    made["spec"]["nodeName"] = "node-1"
    at = ip if ip is not None else address(role, rank)
    code = exit_code if exit_code is not None else {"Succeeded": 0, "Failed": 1}.get(phase)
    state: Manifest = {"waiting": {"reason": waiting or "ContainerCreating"}}
    if code is not None:
        reason = "Completed" if code == 0 else "Error"
        state = {"terminated": {"exitCode": code, "reason": reason, "finishedAt": NOW.isoformat()}}
    elif phase == "Running":
        state = {"running": {"startedAt": NOW.isoformat()}}
    made["status"] = {
        "phase": phase,
        "podIP": at,
        "podIPs": [{"ip": at}] if at else [],
        "containerStatuses": [{"name": "paddle", "ready": "running" in state, "state": state}],
        **status,
    }
    return msgspec.json.decode(msgspec.json.encode(made), type=Pod)


def address(role: Role, rank: int) -> str:
    return f"198.18.0.{rank + 1 + 100 * (role is Role.PS)}"


def config_map(job: PaddleJob, **metadata: Any) -> ConfigMap:
    """That tells of the pods as they are made here."""
    by_address = {name: Endpoint(address(*slot), 2379) for name, slot in slots_of(job).items()}
    made = build_config_map(job, endpoints_by_name(job) if job.found_by_name else by_address)
    made["metadata"] |= {"uid": "map-1", "resourceVersion": "300", **metadata}
    return msgspec.json.decode(msgspec.json.encode(made), type=ConfigMap)


def service(job: PaddleJob, pod: str, **metadata: Any) -> Service:
    made = build_service(job, pod)
    made["metadata"] |= {"uid": f"service-{pod}", "resourceVersion": "400", **metadata}
    return msgspec.json.decode(msgspec.json.encode(made), type=Service)


def observed(job: PaddleJob, *pods: Pod, now: datetime = NOW, **fields: Any) -> Observed:
    return Observed(job=job, now=now, pods=pods, **fields)
