"""Where peers find each process of a job: a host and a port.

    network   host                                               port
    PodIP     the pod's own address                              2379
    Service   the pod's headless service, by name; so it is      2379
              known before the pod exists
    Host      the node's address, which pods may share           20 for each pod, from status.hostPort on

Paddle splits endpoints at the colon, so IPv6 is no use to it.
"""

from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple

from paddle_operator.api.core import Pod
from paddle_operator.api.names import PORTS_PER_POD, pod_name
from paddle_operator.api.paddlejob import PaddleJob, Role


class Slot(NamedTuple):
    """One place in the job: a role and a rank in it; the pod's name follows from it."""

    role: Role
    rank: int


class Endpoint(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def slots_of(job: PaddleJob) -> dict[str, Slot]:
    """Pod name to slot, servers first: the order in which pods are created."""
    return {
        pod_name(job.metadata.name, role, rank): Slot(role, rank)
        for role, spec in job.roles.items()
        for rank in range(spec.replicas)
    }


def port_of(job: PaddleJob, slot: Slot) -> int:
    """The first port of a pod that is yet to be made; one that exists says itself what it was told."""
    if not job.on_host_network:
        return job.port
    counts = {role: spec.replicas for role, spec in job.roles.items()}
    before = sum(counts[role] for role in [*counts][: [*counts].index(slot.role)])
    return job.status.host_port + PORTS_PER_POD * (before + slot.rank)


def ipv4_address(pod: Pod) -> str:
    """The IPv4 one, also of a dual-stack pod; empty as long as there is none."""
    written = [pod.status.pod_ip, *(address.ip for address in pod.status.pod_ips)]
    return next((address for address in written if _is_ipv4(address)), "")


def fingerprint(job: PaddleJob, hosts: Iterable[str]) -> str:
    """How many peers of each role, and a hash of where they are, by rank; the list itself may be long."""
    return f"{size(job)} {sha256(' '.join(hosts).encode()).hexdigest()[:16]}"


def size(job: PaddleJob) -> str:
    return "+".join(str(role.replicas) for role in job.roles.values())


def _is_ipv4(address: str) -> bool:
    """The server lets in nothing that is no address at all."""
    return bool(address) and ":" not in address
