"""What a job becomes, with no cluster at hand: the same builders, placeholders for what only pods know."""

import msgspec

from paddle_operator.api.meta import Manifest
from paddle_operator.api.names import ANNOTATION_PEERS
from paddle_operator.api.paddlejob import PaddleJob

from .config_map import build_config_map, endpoints_by_name
from .endpoints import Endpoint, port_of, slots_of
from .pods import build_pod
from .ports import free_ports
from .services import build_service


def render(job: PaddleJob) -> list[Manifest]:
    """Every object that the operator would create, in the order in which it would."""
    job = _as_first_of_all(job)
    slots = slots_of(job)
    pods = [build_pod(job, slot) for slot in slots.values()]
    if job.found_by_name:
        services = [build_service(job, name) for name in slots]
        return [build_config_map(job, endpoints_by_name(job)), *services, *pods]
    somewhere = {name: Endpoint(f"<address of {name}>", port_of(job, slot)) for name, slot in slots.items()}
    config_map = build_config_map(job, somewhere)
    config_map["metadata"]["annotations"][ANNOTATION_PEERS] = "<fingerprint of the addresses>"
    return [*pods, config_map]


def _as_first_of_all(job: PaddleJob) -> PaddleJob:
    """In a cluster with no other: its ports on the host network are those that come first."""
    replace = msgspec.structs.replace
    metadata = replace(job.metadata, uid=job.uid or "<uid of the job>")
    first = free_ports(job, taken=()) if job.on_host_network else 0
    return replace(job, metadata=metadata, status=replace(job.status, host_port=first))
