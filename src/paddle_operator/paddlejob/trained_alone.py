"""Workers that did not train together, although each of them ended well: that is no success.

A launcher that does not read what it is told begins a training of its own in each pod; all of them end with
0, and nobody would know. What training says of itself at its end shows it: a world that is smaller than the
job, worlds that differ, or one rank that two pods had. Who says nothing is believed. The next attempt would
be started in the same way, so this is final.
"""

from collections.abc import Iterator
from typing import NamedTuple

from paddle_operator.api.annotations import answer_to
from paddle_operator.api.names import ANNOTATION_INDEPENDENT_RANKS, TRAINED_ALONE
from paddle_operator.api.paddlejob import Failure, Mode
from paddle_operator.api.report import Report, read_report

from .endpoints import Slot
from .ends import meaning_of
from .observed import Observed


class _Sight(NamedTuple):
    """How the world looked from one pod."""

    slot: Slot
    pod: str
    report: Report

    @property
    def worlds(self) -> set[int]:
        return {one.world for one in self.report.processes if one.world is not None}

    @property
    def ranks(self) -> set[int]:
        return {one.rank for one in self.report.processes if one.rank is not None}

    def __str__(self) -> str:
        return f"{self.slot.role} {self.slot.rank} (pod {self.pod})"


def find_lonely(seen: Observed) -> Failure | None:
    """The failure of a job whose workers trained apart; None if nothing says so, or if that is on purpose."""
    job = seen.job
    is_wanted = answer_to(ANNOTATION_INDEPENDENT_RANKS, job.metadata.annotations)
    if job.spec.mode is not Mode.COLLECTIVE or is_wanted:
        return None
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
    training = seen.training_status(name)
    end = training.state.terminated if training is not None else None
    report = read_report(end.message) if end is not None and end.message else None
    return _Sight(seen.slots[name], name, report) if report is not None else None


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
