"""The job's config map: the list of peers. Pods cannot start before it exists, so it is made last."""

from collections.abc import Sequence
from ipaddress import IPv4Address

from paddle_operator.api.core import Pod
from paddle_operator.api.meta import Manifest
from paddle_operator.api.paddlejob import PaddleJob, Role

from .environment import shared_variables
from .observed import Observed
from .pods import job_labels, owner_reference


def build_config_map(job: PaddleJob, worker_addresses: Sequence[str]) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": job.metadata.name,
            "namespace": job.metadata.namespace,
            "labels": job_labels(job),
            "ownerReferences": [owner_reference(job)],
        },
        "data": shared_variables(job, worker_addresses),
    }


def missing_config_map(seen: Observed) -> Manifest | None:
    """The map, if it is not there, somebody waits for it, and every pod has an address that will last."""
    if (
        seen.own_config_map is not None
        or len(seen.own) < len(seen.slots)
        or len(seen.started) == len(seen.own)
    ):
        return None
    addresses = {name: ipv4_address(pod) for name, pod in seen.own.items() if not pod.metadata.terminating}
    if any(not addresses.get(name) for name in seen.slots):
        return None
    workers = [addresses[name] for name, slot in seen.slots.items() if slot.role is Role.WORKER]
    return build_config_map(seen.job, workers)


def ipv4_address(pod: Pod) -> str:
    """The IPv4 one, also of a dual-stack pod: Paddle splits endpoints at the colon, so IPv6 is no use."""
    written = [pod.status.pod_ip, *(address.ip for address in pod.status.pod_ips)]
    return next((address for address in written if _is_ipv4(address)), "")


def has_only_ipv6(pod: Pod) -> bool:
    return bool(pod.status.pod_ip) and not ipv4_address(pod)


def _is_ipv4(address: str) -> bool:
    try:
        IPv4Address(address)
    except ValueError:
        return False
    return True
