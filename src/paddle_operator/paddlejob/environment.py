"""The environment that tells Paddle who it is and where its peers are.

A pod's own variables are in its container; what all pods share is in the job's config map, because peers'
addresses may be known only once every pod has one. The operator cannot see which Paddle an image has, so
each mode gets a superset that works for every way of starting that is known, from Paddle 2.6 to 3.3:

    Collective, Single   where to meet and who comes, in three families: everybody's endpoint (Paddle's
                         launcher, scripts without one), PADDLE_MASTER and its kin (the same launcher), and
                         MASTER_ADDR, MASTER_PORT, NNODES, RANK (scripts that delete all of the former)
    the same on Host     where two are on one node, with other names for the launcher, which counts hosts
    PS                   the servers' endpoints, and gloo's meeting place at the first server
"""

from collections.abc import Mapping, Sequence
from typing import Any

from paddle_operator.api.accelerators import has_accelerator
from paddle_operator.api.annotations import answer_to
from paddle_operator.api.names import (
    ANNOTATION_INDEPENDENT_RANKS,
    MEETING_PORT,
    PORTS_PER_POD,
    TERMINATION_MESSAGE_PATH,
    pod_name,
    port_range,
)
from paddle_operator.api.paddlejob import Mode, PaddleJob, Role

from .endpoints import Endpoint, Slot, port_of

Variable = dict[str, Any]

TRAINING_ROLES = {Role.PS: "PSERVER", Role.WORKER: "TRAINER", Role.HETER: "HETER"}
# Paddle's own number for "meet at an HTTP server".
GLOO_RENDEZVOUS_HTTP = "3"

# Who a process is and where its peers are: the operator alone knows. A user's value would split the job into
# several, or make it wait for ever, so it is dropped. The last name beats the others in Paddle's launcher.
OURS = frozenset({
    "POD_IP", "PADDLE_PORT", "PADDLE_JOB_ID", "PADDLE_TRAINER_ID", "PADDLE_TRAINERS", "PADDLE_TRAINERS_NUM",
    "PADDLE_TRAINER_ENDPOINTS", "PADDLE_CURRENT_ENDPOINT", "TRAINING_ROLE", "PADDLE_TRAINING_ROLE",
    "TRAINER_PORTS_NUM",
    "PADDLE_PSERVERS_IP_PORT_LIST", "PADDLE_WITH_GLOO", "PADDLE_GLOO_RENDEZVOUS", "PADDLE_GLOO_HTTP_ENDPOINT",
    "PADDLE_MASTER", "PADDLE_NNODES", "PADDLE_RANK", "DISTRIBUTED_TRAINER_ENDPOINTS",
})  # fmt: skip
# Names that others use as well: ours in a job whose workers shall meet.
OURS_TO_MEET = frozenset({"MASTER_ADDR", "MASTER_PORT", "NNODES", "RANK", "TRAINER_IP_LIST"})


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
        if shall_meet(job):
            literals["PADDLE_RANK"] = literals["RANK"] = str(slot.rank)
        literals["PADDLE_CURRENT_ENDPOINT"] = f"$(POD_IP):{port}"
        if not has_accelerator(container, job.metadata.annotations):
            # Without a GPU Paddle still looks for NCCL unless it is told; with one it must not be told.
            literals["PADDLE_DISTRI_BACKEND"] = "gloo"
    if path := container.get("terminationMessagePath"):
        literals[TERMINATION_MESSAGE_PATH] = path
    if job.on_host_network:
        # Pods may share an address, so each has ports of its own, and keeps to them.
        literals |= {"PADDLE_PORT": str(port), "PORT_RANGE": port_range(port)}
    return [_own_host(job, slot), *({"name": name, "value": value} for name, value in literals.items())]


def _own_host(job: PaddleJob, slot: Slot) -> Variable:
    if job.found_by_name:
        return {"name": "POD_IP", "value": job.service_host(pod_name(job.metadata.name, *slot))}
    return {"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}}


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
    elif shall_meet(job):
        told |= _about_the_meeting(workers)
    else:
        return told
    return told | {"PADDLE_TRAINER_ENDPOINTS": ",".join(map(str, workers))}


def shall_meet(job: PaddleJob) -> bool:
    """Workers that are independent on purpose know how many they are, and nobody whom they could meet.

    Those of PS mode meet at the servers.
    """
    is_independent = answer_to(ANNOTATION_INDEPENDENT_RANKS, job.metadata.annotations)
    return job.spec.mode is not Mode.PS and not is_independent


def ours_in(job: PaddleJob) -> frozenset[str]:
    return OURS | OURS_TO_MEET if shall_meet(job) else OURS


def _about_the_meeting(workers: Sequence[Endpoint]) -> dict[str, str]:
    """The launchers meet at one port of the first worker, the trainers' store is at another."""
    first, count = workers[0], str(len(workers))
    share_a_node = len({worker.host for worker in workers}) < len(workers)
    told = {
        "PADDLE_MASTER": str(first),
        "PADDLE_NNODES": count,
        "MASTER_ADDR": first.host,
        "MASTER_PORT": str(first.port + MEETING_PORT),
        "NNODES": count,
        "TRAINER_IP_LIST": ",".join(worker.host for worker in workers),
    }
    return told | ({"DISTRIBUTED_TRAINER_ENDPOINTS": _told_apart(workers)} if share_a_node else {})


def _told_apart(workers: Sequence[Endpoint]) -> str:
    """For Paddle's launcher alone, which prefers this list.

    It would take workers that share a node for one, as it counts the hosts; it meets at the first, and asks
    for no other. So these may have any name, as long as each has another.
    """
    first, *others = workers
    return ",".join([str(first), *(f"worker-{rank}:{one.port}" for rank, one in enumerate(others, start=1))])


def _about_servers(job: PaddleJob, servers: Sequence[Endpoint]) -> dict[str, str]:
    told = {"PADDLE_PSERVERS_IP_PORT_LIST": ",".join(map(str, servers))}
    with_gloo = 1 if job.spec.with_gloo is None else job.spec.with_gloo
    if not with_gloo:
        return told
    meeting_place = Endpoint(servers[0].host, servers[0].port + MEETING_PORT)
    return told | {
        "PADDLE_WITH_GLOO": str(with_gloo),
        "PADDLE_GLOO_RENDEZVOUS": GLOO_RENDEZVOUS_HTTP,
        "PADDLE_GLOO_HTTP_ENDPOINT": str(meeting_place),
    }


def merged_variables(job: PaddleJob, ours: list[Variable], users: list[Variable]) -> list[Variable]:
    """Ours, then the user's, less what the user must not set and what the user has set otherwise."""
    # Who shares a node keeps to their own ports; elsewhere the range is the user's affair.
    fixed = ours_in(job) | ({"PORT_RANGE"} & {variable["name"] for variable in ours})
    theirs = [variable for variable in users if variable.get("name") not in fixed]
    chosen = {variable.get("name") for variable in theirs}
    return [variable for variable in ours if variable["name"] not in chosen] + theirs


def dropped_variables(job: PaddleJob, users: list[Variable]) -> list[str]:
    return sorted(name for variable in users if (name := variable.get("name", "")) in ours_in(job))
