"""The environment that tells Paddle who it is and where its peers are.

A pod's own variables are in its container; what all pods share is in the job's config map, because peers'
addresses are known only once every pod has one. The operator cannot see which Paddle an image has, so this
is a superset that works with and without Paddle's launcher, from 2.6 to 3.3.
"""

from collections.abc import Sequence
from typing import Any

from paddle_operator.api.names import PORTS_PER_POD
from paddle_operator.api.paddlejob import PaddleJob, Role

Variable = dict[str, Any]

TRAINING_ROLES = {Role.PS: "PSERVER", Role.WORKER: "TRAINER", Role.HETER: "HETER"}

# Who a process is and where its peers are: the operator alone knows. A user's value would split the job into
# several, or make it wait for ever, so it is dropped. The second group is not set by us, but would beat ours.
OURS = frozenset({
    "POD_IP", "PADDLE_PORT", "PADDLE_JOB_ID", "PADDLE_TRAINER_ID", "PADDLE_TRAINERS", "PADDLE_TRAINERS_NUM",
    "PADDLE_TRAINER_ENDPOINTS", "PADDLE_CURRENT_ENDPOINT", "TRAINING_ROLE", "PADDLE_TRAINING_ROLE",
    "TRAINER_PORTS_NUM",
    "PADDLE_MASTER", "PADDLE_NNODES", "PADDLE_RANK", "DISTRIBUTED_TRAINER_ENDPOINTS",
})  # fmt: skip


def pod_variables(job: PaddleJob, role: Role, rank: int, container: dict[str, Any]) -> list[Variable]:
    """What differs from pod to pod. Comes first in the container, so that users' values can refer to it."""
    literals = {
        "PADDLE_TRAINER_ID": str(rank),
        "TRAINING_ROLE": TRAINING_ROLES[role],
        "PADDLE_TRAINING_ROLE": TRAINING_ROLES[role],
        "PADDLE_CURRENT_ENDPOINT": f"$(POD_IP):{job.port}",
    }
    if not _asks_for_accelerator(container):
        # Without a GPU Paddle still looks for NCCL unless it is told; with one it must not be told.
        literals["PADDLE_DISTRI_BACKEND"] = "gloo"
    address = {"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}}
    return [address, *({"name": name, "value": value} for name, value in literals.items())]


def shared_variables(job: PaddleJob, worker_addresses: Sequence[str], port: int) -> dict[str, str]:
    """What all pods of the job are told, rank by rank: the data of the config map."""
    return {
        "PADDLE_JOB_ID": f"{job.metadata.namespace}-{job.metadata.name}",
        "PADDLE_PORT": str(port),
        "PADDLE_TRAINERS": ",".join(worker_addresses),
        "PADDLE_TRAINERS_NUM": str(len(worker_addresses)),
        "PADDLE_TRAINER_ENDPOINTS": ",".join(f"{address}:{port}" for address in worker_addresses),
        "TRAINER_PORTS_NUM": str(PORTS_PER_POD),
    }


def merged_variables(ours: list[Variable], users: list[Variable]) -> list[Variable]:
    """Ours, then the user's, less what the user must not set and what the user has set otherwise."""
    theirs = [variable for variable in users if variable.get("name") not in OURS]
    chosen = {variable.get("name") for variable in theirs}
    return [variable for variable in ours if variable["name"] not in chosen] + theirs


def dropped_variables(users: list[Variable]) -> list[str]:
    return sorted(name for variable in users if (name := variable.get("name", "")) in OURS)


def _asks_for_accelerator(container: dict[str, Any]) -> bool:
    """Extended resources (nvidia.com/gpu, ...) have a domain that is not Kubernetes' own."""
    resources = container.get("resources") or {}
    asked = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    return any("/" in name and "kubernetes.io/" not in name and str(asked[name]) != "0" for name in asked)
