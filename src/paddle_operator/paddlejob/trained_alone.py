"""Workers that did not train together, although each of them ended well: that is no success.

A launcher that does not read what it is told begins a training of its own in each pod; all of them end with
0, and nobody would know. What training says of itself at its end shows it: a world that is smaller than the
job, worlds that differ, or one rank that two pods had. Who says nothing is believed. The next attempt would
be started in the same way, so this is final.
"""

from collections.abc import Iterator
from typing import NamedTuple

from paddle_operator.api.names import TRAINED_ALONE
from paddle_operator.api.paddlejob import Failure, Mode
from paddle_operator.api.report import Process, Report, read_report

from .endpoints import Slot
from .ends import meaning_of
from .environment import shall_meet
from .observed import Observed

# The error of the module for training scripts, in a report.
FOUND_ITSELF_ALONE = "TrainsAlone"


class _Sight(NamedTuple):
    """How the world looked from one pod, to those that did not train alone on purpose."""

    slot: Slot
    pod: str
    report: Report

    @property
    def worlds(self) -> set[int]:
        return {one.world for one in self._together if one.world is not None}

    @property
    def ranks(self) -> set[int]:
        return {one.rank for one in self._together if one.rank is not None}

    @property
    def _together(self) -> list[Process]:
        return [one for one in self.report.processes if not one.alone]

    def __str__(self) -> str:
        return f"{self.slot.role} {self.slot.rank} (pod {self.pod})"


def find_lonely(seen: Observed) -> Failure | None:
    """The failure of a job whose workers trained apart; None if nothing says so, or if that is on purpose."""
    job = seen.job
    if job.spec.mode is not Mode.COLLECTIVE or not shall_meet(job):
        return None
    if seen.reads_an_old_list or seen.tells_wrong_peers:
        return None  # they were misled, by us perhaps, and the next attempt is told better
    sights = [sight for name in seen.workers if (sight := _sight(seen, name))]
    found = next(_contradictions(sights, len(seen.workers)), None)
    if found is None:
        return None
    sight, what = found
    meaning = meaning_of((TRAINED_ALONE,), None)
    pod = seen.own[sight.pod]
    return Failure(
        role=sight.slot.role,
        rank=sight.slot.rank,
        pod=sight.pod,
        node=pod.spec.node_name,
        container=seen.training_container(sight.pod),
        reason=TRAINED_ALONE,
        kind=meaning.kind,
        message=f"{what}: the workers {meaning.means}",
        next_step=meaning.next,
        attempt=job.status.attempt,
    )


def _sight(seen: Observed, name: str) -> _Sight | None:
    """Of a pod that failed otherwise, and perhaps early, its failure is what counts."""
    end = seen.training_end(name)
    report = read_report(end.message) if end is not None else None
    if end is None or report is None:
        return None
    speaks = not end.exit_code or any(one.error == FOUND_ITSELF_ALONE for one in report.processes)
    return _Sight(seen.slots[name], name, report) if speaks else None


def _contradictions(sights: list[_Sight], pods: int) -> Iterator[tuple[_Sight, str]]:
    """Between what pods have seen and the job, then between two pods."""
    owners: dict[int, _Sight] = {}
    first: tuple[_Sight, int] | None = None
    for sight in sights:
        if sight.report.nodes is not None and sight.report.nodes < pods:
            yield sight, f"{sight} has a launcher that knows of {sight.report.nodes} of {pods} pods"
        for world in sorted(sight.worlds):
            if world < pods:
                yield sight, f"{sight} trained in a world of {world}, but the job has {pods} workers"
            first = first or (sight, world)
            if world != first[1]:
                yield sight, f"{sight} trained in a world of {world}, and {first[0]} in one of {first[1]}"
        for rank in sorted(sight.ranks):
            if owners.setdefault(rank, sight) is not sight:
                yield sight, f"{sight} had rank {rank}, and so had {owners[rank]}"
