"""Does the simulator see? Each bug that it must catch is put into the operator, and lived with.

A hunt goes through lives of one kind, calm or with a fault at every step, until the invariants that know this
bug are broken, or an end is not that of a healthy operator. Bugs for plain tests: tests/test_seeded_bugs.py.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, product
from math import inf

import pytest
from seeded_bugs import ANOTHER_END, BUGS, Bug, Level
from simulator import invariants
from simulator.cases import BESIDE_ANOTHER_LEADER, MADE_TOO_LATE, tried
from simulator.deeds import DEEDS
from simulator.faults import ClockJump, CrashAt, Faults, LateChange, Moment, RefusedFor, StaleList, faults
from simulator.life import live
from simulator.oracle import end_of, undisturbed
from simulator.sweeps import GROUPS
from simulator.workloads import LIVES

from paddle_operator.api.resources import PADDLE_JOBS, PODS
from paddle_operator.cluster import Forbidden

STEPS = range(1, 25)

HUNTS: dict[str, Callable[[], Iterable[Faults]]] = {
    "calm": lambda: [Faults()],
    "late watches": lambda: (
        faults(LateChange(kind, number, lag))
        for kind, number, lag in product((PODS, PADDLE_JOBS), STEPS, (1, inf))
    ),
    "crashes": lambda: (faults(CrashAt(write, moment)) for write, moment in product(STEPS, Moment)),
    "stale lists of jobs": lambda: (
        faults(CrashAt(write, Moment.AFTER), StaleList(PADDLE_JOBS, 2, lag))
        for write, lag in product(STEPS, (6, 9, 12))
    ),
    "refusals": lambda: [faults(RefusedFor("create", PODS, Forbidden("exceeded quota"), 120.0))],
    "clock": lambda: [faults(ClockJump(4.0, 3600.0))],
}

SIMULATED = [bug for bug in BUGS.values() if bug.level is Level.SIMULATION]


@pytest.mark.parametrize("bug", SIMULATED, ids=lambda bug: bug.name)
def test_a_seeded_bug_is_caught(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    for _, name in bug.hunts:
        undisturbed(name)  # as a healthy operator lives it
    bug.seed(monkeypatch)
    expected, caught = {*bug.caught_by}, set[str]()
    for broken in chain.from_iterable(hunt(*one) for one in bug.hunts):
        caught |= broken
        if expected <= caught:
            break
    print(f"{bug.name}: caught by {', '.join(sorted(caught))}")
    assert expected <= caught


@pytest.mark.parametrize(("kind", "name"), sorted({one for bug in SIMULATED for one in bug.hunts}))
def test_in_a_hunt_without_a_bug_nothing_is_caught(kind: str, name: str) -> None:
    assert [broken for broken in hunt(kind, name) if broken] == []


def hunt(kind: str, name: str) -> Iterator[set[str]]:
    """What is broken in each life."""
    for planned in HUNTS[kind]():
        life = live(LIVES[name], planned)
        broken = {one.invariant.__name__ for one in life.witness.violations}
        yield broken if end_of(life) == undisturbed(name)[1] else {*broken, ANOTHER_END}


@pytest.mark.parametrize(
    ("group", "life", "bug"),
    [
        ("second-leader", "restarts", "the_gate_opens_when_its_patience_ends"),
        ("broken-watches", "completes", "gone_is_taken_for_a_cut"),
        ("edits", "restarts", "nobody_looks_for_what_no_watch_shows"),
        ("refused-writes", "expires", "what_was_not_found_once_is_waited_for_for_ever"),
        ("lasting-refusals", "does-not-start", "a_plan_that_failed_forgets_its_deadline"),
    ],
)
def test_a_group_that_no_hunt_needs_sees_what_a_plain_test_sees(
    group: str, life: str, bug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [*GROUPS[group].cases(life)]
    BUGS[bug].seed(monkeypatch)
    assert any(tried(case).broken for case in cases)


KNOWN = {
    one.__name__
    for known in (
        invariants.ALL.of_a_request,
        invariants.ALL.of_an_answer,
        invariants.ALL.of_a_change,
        invariants.ALL.at_rest,
    )
    for one in known
}


def test_every_invariant_is_broken_by_some_bug() -> None:
    """An invariant that nothing breaks might say nothing."""
    broken = set[str]().union(*(bug.caught_by for bug in SIMULATED))
    assert broken - {ANOTHER_END} == KNOWN


def test_what_is_waived_is_known() -> None:
    waived = BESIDE_ANOTHER_LEADER | MADE_TOO_LATE
    assert waived.union(*(deed.waives for deed in DEEDS.values())) <= KNOWN
