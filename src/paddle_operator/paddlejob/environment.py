"""The environment that tells Paddle who it is and where its peers are.

A pod's own variables are in its container; what all pods share is in the job's config map, because peers'
addresses may be known only once every pod has one. The operator cannot see which Paddle an image has, so
each mode gets a superset that works with and without Paddle's launcher, from 2.6 to 3.3:

    Collective, Single   everybody's endpoint; who is first, is the meeting place
    the same on Host     the meeting place by itself: the launcher would count pods of one node as one
    PS                   the servers' endpoints, and gloo's meeting place at the first server
"""

from collections.abc import Mapping, Sequence
from typing import Any

from paddle_operator.api.names import GLOO_PORT, PORTS_PER_POD, pod_name
from paddle_operator.api.paddlejob import Mode, PaddleJob, Role

from .endpoints import Endpoint, Slot, port_of

Variable = dict[str, Any]

TRAINING_ROLES = {Role.PS: "PSERVER", Role.WORKER: "TRAINER", Role.HETER: "HETER"}
# Paddle's own number for "meet at an HTTP server".
GLOO_RENDEZVOUS_HTTP = "3"

# Who a process is and where its peers are: the operator alone knows. A user's value would split the job into
# several, or make it wait for ever, so it is dropped. The last group is not always set by us, but would beat
# ours.
OURS = frozenset({
    "POD_IP", "PADDLE_PORT", "PADDLE_JOB_ID", "PADDLE_TRAINER_ID", "PADDLE_TRAINERS", "PADDLE_TRAINERS_NUM",
    "PADDLE_TRAINER_ENDPOINTS", "PADDLE_CURRENT_ENDPOINT", "TRAINING_ROLE", "PADDLE_TRAINING_ROLE",
    "TRAINER_PORTS_NUM",
    "PADDLE_PSERVERS_IP_PORT_LIST", "PADDLE_WITH_GLOO", "PADDLE_GLOO_RENDEZVOUS", "PADDLE_GLOO_HTTP_ENDPOINT",
    "PADDLE_MASTER", "PADDLE_NNODES", "PADDLE_RANK", "DISTRIBUTED_TRAINER_ENDPOINTS",
    "MASTER_ADDR", "MASTER_PORT",
})  # fmt: skip


def pod_variables(job: PaddleJob, slot: Slot, container: dict[str, Any]) -> list[Variable]:
    """What differs from pod to pod. Comes first in the container, so that users' values can refer to it."""
    port = port_of(job, slot)
    literals = {
        "PADDLE_TRAINER_ID": str(slot.rank),
        "TRAINING_ROLE": TRAINING_ROLES[slot.role],
        "PADDLE_TRAINING_ROLE": TRAINING_ROLES[slot.role],
    }
    if job.spec.mode is Mode.PS:
        # The programs of parameter servers are written in the older of Paddle 3's two representations.
        literals["FLAGS_enable_pir_api"] = "0"
    else:
        literals["PADDLE_CURRENT_ENDPOINT"] = f"$(POD_IP):{port}"
        if not _asks_for_accelerator(container):
            # Without a GPU Paddle still looks for NCCL unless it is told; with one it must not be told.
            literals["PADDLE_DISTRI_BACKEND"] = "gloo"
    if job.on_host_network:
        literals |= _on_host_network(job, slot, port)
    return [_own_host(job, slot), *({"name": name, "value": value} for name, value in literals.items())]


def _own_host(job: PaddleJob, slot: Slot) -> Variable:
    if job.found_by_name:
        return {"name": "POD_IP", "value": job.service_host(pod_name(job.metadata.name, *slot))}
    return {"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}}


def _on_host_network(job: PaddleJob, slot: Slot, port: int) -> dict[str, str]:
    """Pods may share an address, so each has ports of its own, and keeps to them."""
    rank = {} if job.spec.mode is Mode.PS else {"PADDLE_RANK": str(slot.rank)}
    return {"PADDLE_PORT": str(port), "PORT_RANGE": port_range(port), **rank}


def port_range(port: int) -> str:
    """Where Paddle's launcher draws the ports of its trainers from; the first one is for itself."""
    return f"{port + 1}:{port + PORTS_PER_POD - 1}"


def shared_variables(job: PaddleJob, endpoints: Mapping[Role, Sequence[Endpoint]]) -> dict[str, str]:
    """What all pods of the job are told, rank by rank: the data of the config map."""
    workers = endpoints[Role.WORKER]
    told = {
        "PADDLE_JOB_ID": f"{job.metadata.namespace}-{job.metadata.name}",
        # On the host network each pod has another, and says so itself.
        "PADDLE_PORT": str(workers[0].port),
        "PADDLE_TRAINERS": ",".join(worker.host for worker in workers),
        "PADDLE_TRAINERS_NUM": str(len(workers)),
        "TRAINER_PORTS_NUM": str(PORTS_PER_POD),
    }
    if job.spec.mode is Mode.PS:
        told |= _about_servers(job, endpoints[Role.PS])
    elif job.on_host_network:
        return told | {"PADDLE_MASTER": str(workers[0]), "PADDLE_NNODES": str(len(workers))}
    return told | {"PADDLE_TRAINER_ENDPOINTS": ",".join(map(str, workers))}


def _about_servers(job: PaddleJob, servers: Sequence[Endpoint]) -> dict[str, str]:
    told = {"PADDLE_PSERVERS_IP_PORT_LIST": ",".join(map(str, servers))}
    with_gloo = 1 if job.spec.with_gloo is None else job.spec.with_gloo
    if not with_gloo:
        return told
    meeting_place = Endpoint(servers[0].host, servers[0].port + GLOO_PORT)
    return told | {
        "PADDLE_WITH_GLOO": str(with_gloo),
        "PADDLE_GLOO_RENDEZVOUS": GLOO_RENDEZVOUS_HTTP,
        "PADDLE_GLOO_HTTP_ENDPOINT": str(meeting_place),
    }


def merged_variables(ours: list[Variable], users: list[Variable]) -> list[Variable]:
    """Ours, then the user's, less what the user must not set and what the user has set otherwise."""
    # Who shares a node keeps to their own ports; elsewhere the range is the user's affair.
    fixed = OURS | ({"PORT_RANGE"} & {variable["name"] for variable in ours})
    theirs = [variable for variable in users if variable.get("name") not in fixed]
    chosen = {variable.get("name") for variable in theirs}
    return [variable for variable in ours if variable["name"] not in chosen] + theirs


def dropped_variables(users: list[Variable]) -> list[str]:
    return sorted(name for variable in users if (name := variable.get("name", "")) in OURS)


def _asks_for_accelerator(container: dict[str, Any]) -> bool:
    """Extended resources (nvidia.com/gpu, ...) have a domain that is not Kubernetes' own."""
    resources = container.get("resources") or {}
    asked = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    return any("/" in name and "kubernetes.io/" not in name and str(asked[name]) != "0" for name in asked)
