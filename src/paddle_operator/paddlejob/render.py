"""What a job becomes, with no cluster at hand: the same builders, placeholders for what only pods know."""

import msgspec

from paddle_operator.api.meta import Manifest
from paddle_operator.api.names import pod_name
from paddle_operator.api.paddlejob import PaddleJob, Role

from .config_map import build_config_map
from .pods import build_pod


def render(job: PaddleJob) -> list[Manifest]:
    """Every object that the operator would create, in the order in which it would."""
    uid = job.uid or "<uid of the job>"
    job = msgspec.structs.replace(job, metadata=msgspec.structs.replace(job.metadata, uid=uid))
    pods = [build_pod(job, role, rank) for role, spec in job.roles.items() for rank in range(spec.replicas)]
    workers = [pod_name(job.metadata.name, Role.WORKER, rank) for rank in range(job.spec.worker.replicas)]
    return [*pods, build_config_map(job, [f"<address of {name}>" for name in workers], job.port)]
