"""How many pods a job may have: as many as a process can be told of, and as a node has ports for.

The config map holds 1 MiB, which is more than its few lists of at most 128 KiB each can be together: what
fits a process fits the map.
"""

from collections.abc import Iterator

from .names import ANNOTATION_PORT, HOST_PORTS, LAST_PORT, PORTS_PER_POD, pod_name
from .paddlejob import PaddleJob, Role
from .schema_check import Problem

# Linux takes no longer NAME=value, its final NUL included.
MOST_BYTES = 128 * 1024
MOST_HOST_PODS = len(HOST_PORTS)
# The longest variable that lists the pods of a role.
LISTS = {Role.PS: "PADDLE_PSERVERS_IP_PORT_LIST", Role.WORKER: "PADDLE_TRAINER_ENDPOINTS"}
_LONGEST_IPV4 = len("255.255.255.255")


def size_problems(job: PaddleJob) -> Iterator[Problem]:
    total = sum(spec.replicas for spec in job.roles.values())
    if job.on_host_network and total > MOST_HOST_PODS:
        yield Problem(
            "spec.intranet",
            f"{total} pods are too many for {job.spec.intranet}: each takes {PORTS_PER_POD} ports of "
            f"{HOST_PORTS.start}-{HOST_PORTS.stop - 1}, so at most {MOST_HOST_PODS} in all; use fewer, or "
            "PodIP",
        )
    last = job.port + PORTS_PER_POD * total - 1
    if job.on_host_network and ANNOTATION_PORT in job.metadata.annotations and last >= 2**16:
        yield Problem(
            f"metadata.annotations[{ANNOTATION_PORT}]",
            f"{job.port} is too high: {total} pods take {PORTS_PER_POD} ports each, the last one {last}; "
            f"use at most {2**16 - PORTS_PER_POD * total}, or leave it out",
        )
    for role, variable in LISTS.items():
        spec = job.roles.get(role)
        if spec is not None and (fit := most_that_fit(job, role)) < spec.replicas:
            shorter = ", a shorter name, or intranet PodIP" if job.found_by_name else ""
            yield Problem(
                f"spec.{role}.replicas",
                f"{spec.replicas} are too many: {variable}, which lists them all, may have {MOST_BYTES} "
                f"bytes in a process, so at most {fit} fit; use fewer{shorter}",
            )


def most_that_fit(job: PaddleJob, role: Role) -> int:
    """How many pods of a role the variable that lists them has room for."""
    port = LAST_PORT if job.on_host_network else job.port
    # Behind the last one stands a NUL where the others have a comma.
    room = MOST_BYTES - len(f"{LISTS[role]}=")
    count = 0
    while True:
        entry = _longest_address(job, role, count) + len(f":{port},")
        # Names whose numbers have as many digits are as long: counted together, because each turn asks.
        alike: int = 10 ** len(str(count)) - count
        fit = min(alike, room // entry)
        room -= fit * entry
        count += fit
        if fit < alike:
            return count


def _longest_address(job: PaddleJob, role: Role, index: int) -> int:
    if not job.found_by_name:
        return _LONGEST_IPV4
    return len(job.service_host(pod_name(job.metadata.name, role, index)))
