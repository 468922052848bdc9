"""A case that is broken is made small before it is told; what is told names the invariant and what struck."""

from collections.abc import Callable

import pytest
from seeded_bugs.caches import gate_is_always_open
from seeded_bugs.ends import (
    a_failure_counts_twice,
    a_restart_counts_nothing,
    pods_are_cleaned_up_before_the_status_is_written,
)
from simulator.cases import Case
from simulator.faults import ClockJump, CrashAt, Faults, LateChange, Moment, RefusedWrite, faults
from simulator.history import slots_of
from simulator.oracle import undisturbed
from simulator.schedule import Priorities, Schedule, Steady, Unsteady
from simulator.shrinking import LONGEST_LINE, in_words, shrink, tell, what_is_broken
from simulator.workloads import LIVES

from paddle_operator.api.resources import CONFIG_MAPS, PODS
from paddle_operator.cluster import Throttled

MOST_LINES = 40
NOISE = (
    ClockJump(4.0, 3600.0),
    LateChange(CONFIG_MAPS, 1, 3),
    RefusedWrite(3, Throttled("too many requests", 1.0)),
)


def test_of_many_faults_only_the_one_that_matters_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    gate_is_always_open(monkeypatch)
    late = LateChange(PODS, 1, 3)
    case = Case("a late watch", LIVES["service-completes"], faults(*NOISE, late), strikes=0)
    small = shrink(case)
    assert what_is_broken(small) == what_is_broken(case) == "no_decision_forgets_our_own_writes"
    assert small.faults.all == (late,)
    assert {*small.workload.manifest["spec"]} == {"worker"}


@pytest.mark.parametrize("schedule", [Unsteady(1), Priorities(1, depth=4)], ids=str)
def test_a_story_is_short_and_names_what_is_broken(
    schedule: Schedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate_is_always_open(monkeypatch)
    late = Case(
        "a late watch", LIVES["completes"], faults(*NOISE, LateChange(PODS, 1, 3)), schedule, strikes=0
    )
    broken = what_is_broken(late)
    small = shrink(late)
    story = tell(small)
    print(story)
    assert broken in story.splitlines()[0]
    assert len(story.splitlines()) <= MOST_LINES
    assert len(slots_of(small.workload.manifest)) <= len(slots_of(late.workload.manifest))


def test_faults_are_told_however_long_ago_they_struck(monkeypatch: pytest.MonkeyPatch) -> None:
    pods_are_cleaned_up_before_the_status_is_written(monkeypatch)
    case = Case("long ago", LIVES["ps-completes"], faults(RefusedWrite(1, NOISE[2].error)), strikes=0)
    story = tell(case)
    assert "fault: Throttled: create pods resnet-ps-0" in story
    assert " more" in story


def test_what_is_well_is_left_as_it_is() -> None:
    case = Case("all is well", LIVES["completes"], faults(CrashAt(2, Moment.AFTER)), Steady())
    assert what_is_broken(case) == ""
    assert shrink(case) is case


@pytest.mark.parametrize(
    ("bug", "counts"),
    [
        (a_restart_counts_nothing, "attempt is 1, was None; restarts is 1, was None; "),
        (a_failure_counts_twice, "attempt is 1, was None; restarts is 1, was None; failures is 2, was None"),
    ],
)
def test_the_last_lines_are_told_whole(
    bug: Callable[[pytest.MonkeyPatch], None], counts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed("restarts")  # as a healthy operator lives it
    bug(monkeypatch)
    lines = tell(Case("a restart", LIVES["restarts"])).splitlines()
    assert max(map(len, lines)) <= LONGEST_LINE
    last = max(place for place, line in enumerate(lines) if " asks: " in line)
    told = " ".join(map(str.strip, lines[last:]))
    assert f"(phase is 'Restarting', was 'Running'; {counts}" in told
    assert "nextStep" in told
    assert told.endswith(")")
    assert [line for line in lines[:last] if line.endswith(" ...")]


@pytest.mark.parametrize(
    ("planned", "said"),
    [
        (Faults(), "none"),
        (faults(CrashAt(10, Moment.WITHOUT_REPLY)), "crash at (write 10, moment without reply)"),
        (
            faults(ClockJump(4, 9), LateChange(PODS, 1, 3)),
            "clock jump (at seconds 4, by seconds 9) and late change (resource pods, number 1, changes 3)",
        ),
        (
            faults(NOISE[2]),
            "refused write (write 3, error too many requests, has effect False)",
        ),
    ],
)
def test_a_fault_is_told_in_words(planned: Faults, said: str) -> None:
    assert in_words(planned) == said
