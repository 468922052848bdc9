"""Host mode: which ports a job has, 20 for each of its pods, written to its status before the first pod."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

import msgspec

from paddle_operator.api.names import ANNOTATION_PORT, HOST_PORTS, PORTS_PER_POD
from paddle_operator.api.paddlejob import PaddleJob, PaddleJobStatus, Phase

from .attempts import next_attempt
from .observed import Observed

# Nothing tells a job that another one was given its ports: it looks now and then, for as long as it waits.
LOOK_AFTER = timedelta(seconds=10)
LOOK_AFTER_SHARE_OF_WAIT = 0.5
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def ports_needed(job: PaddleJob) -> int:
    return PORTS_PER_POD * sum(spec.replicas for spec in job.roles.values())


def free_ports(job: PaddleJob, taken: Iterable[range]) -> int:
    """The first of so many in a row that no other job holds; 0: there are not as many.

    A job that names its port itself has it: its user knows the nodes.
    """
    if ANNOTATION_PORT in job.metadata.annotations:
        return job.port
    first, needed = HOST_PORTS.start, ports_needed(job)
    for held in sorted(taken, key=lambda ports: ports.start):
        if first + needed <= held.start:
            break
        # Others may hold what does not begin where our blocks do.
        blocks = -((HOST_PORTS.start - held.stop) // PORTS_PER_POD)
        first = max(first, HOST_PORTS.start + PORTS_PER_POD * blocks)
    return first if first + needed <= HOST_PORTS.stop else 0


class Promises:
    """Which ports jobs may have until their status says so.

    Turns of several jobs are under way at once: what one of them was promised, its job does not show yet.
    """

    def __init__(self) -> None:
        self._first: dict[tuple[str, int, int], int] = {}

    def to(self, job: PaddleJob, live: Iterable[PaddleJob]) -> int:
        """The first port for a job, the same whenever it asks; 0: other live Host jobs hold too many."""
        others = {_promised(one): one for one in live if one.uid != job.uid}
        mine = _promised(job)
        self._first = {whose: first for whose, first in self._first.items() if whose in {*others, mine}}
        if mine not in self._first:
            held = [
                _block(one, one.status.host_port or self._first.get(whose, 0))
                for whose, one in others.items()
            ]
            self._first[mine] = free_ports(job, held)
        # What is not to be had now may be later.
        return self._first[mine] or self._first.pop(mine)


def _promised(job: PaddleJob) -> tuple[str, int, int]:
    """To whom: a job that was suspended may come back with more pods, and needs other ports."""
    return job.uid, job.status.attempt, ports_needed(job)


def _block(job: PaddleJob, first: int) -> range:
    return range(first, first + ports_needed(job) if first else 0)


def are_due(seen: Observed) -> bool:
    """Not of a job that is suspended, which may come back with another number of pods."""
    job = seen.job
    is_idle = job.run_policy.suspend or job.status.phase == Phase.SUSPENDED or job.status.finished
    return job.on_host_network and not (is_idle or job.status.host_port) and bool(seen.missing)


def with_ports(seen: Observed) -> PaddleJobStatus:
    job = seen.job
    phase = job.status.phase or Phase.PENDING
    return msgspec.structs.replace(job.status, host_port=seen.free_host_port, phase=phase, mode=job.spec.mode)


def may_give_way(seen: Observed) -> bool:
    """Its pods wait for a node, and none has met another: to begin anew on other ports costs nobody's work.

    Of two managers that lead at once each may give the same ports to another job, as each writes another
    status. Where there are few nodes, some pods of each job take a place, and the jobs wait for each other
    for ever. A job that names its port itself has it all the same.
    """
    job = seen.job
    is_idle = job.run_policy.suspend or job.status.finished or job.metadata.terminating
    names_it = ANNOTATION_PORT in job.metadata.annotations
    if is_idle or names_it or not (job.on_host_network and job.status.host_port):
        return False
    return bool(without_a_place(seen)) and not seen.leftovers and not seen.peers_are_told


def without_a_place(seen: Observed) -> list[str]:
    """The pods that are not on a node yet, or not even made."""
    return [*seen.missing, *(name for name, pod in seen.own.items() if not pod.spec.node_name)]


def older_holders(job: PaddleJob, live: Iterable[PaddleJob]) -> Iterator[PaddleJob]:
    """Those that keep the ports which they share with this job; it is the younger one that gives way."""
    return (one for one in live if holds_before(one, job))


def holds_before(one: PaddleJob, job: PaddleJob) -> bool:
    mine, others = _block(job, job.status.host_port), _block(one, one.status.host_port)
    shared = range(max(mine.start, others.start), min(mine.stop, others.stop))
    return not one.status.finished and bool(shared) and _age(one) < _age(job)


def _age(job: PaddleJob) -> tuple[datetime, str]:
    return job.metadata.creation_timestamp or _LONG_AGO, job.uid


def give_way(seen: Observed) -> PaddleJobStatus:
    """A new try, as pods have the ports that they were made with; nobody is to blame for it."""
    return msgspec.structs.replace(next_attempt(seen), host_port=0)


def next_glance(seen: Observed) -> datetime | None:
    if not may_give_way(seen):
        return None
    since = seen.job.status.attempt_time or seen.job.metadata.creation_timestamp or seen.now
    return seen.now + max(LOOK_AFTER, LOOK_AFTER_SHARE_OF_WAIT * (seen.now - since))
