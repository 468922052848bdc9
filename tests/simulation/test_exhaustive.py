"""All orders in which a small life can go break nothing, and a bug that needs one of them is found."""

from collections.abc import Callable

import pytest
from seeded_bugs.caches import gate_is_always_open
from seeded_bugs.ends import an_end_that_is_written_is_taken_for_cleaned_up
from simulator.exhaustive import Order, Scope, search
from simulator.life import live
from simulator.oracle import calm
from simulator.shrinking import shrink
from simulator.workloads import LIVES
from tally import TALLY

SMALL = Scope(answers_wait=False)
# Fewer writes than all others that end, and two pods.
LIFE = LIVES["completes"]


def test_no_order_of_a_small_life_breaks_anything() -> None:
    findings = search(LIFE, SMALL)
    print(findings)
    assert findings.broken == {}
    # The first life alone comes through 50; it would be strange if the others saw little else.
    assert findings.states > 500
    assert findings.ends > 1
    TALLY["states, all orders"] += findings.states


def test_a_search_is_the_same_each_time() -> None:
    findings = [search(LIVES["single"], SMALL) for _ in range(2)]
    assert findings[0] == findings[1]


@pytest.mark.parametrize(
    ("bug", "life", "scope", "breaks"),
    [
        (
            gate_is_always_open,
            "completes",
            Scope(late_changes=1, answers_wait=False),
            "no_decision_forgets_our_own_writes",
        ),
        (
            an_end_that_is_written_is_taken_for_cleaned_up,
            "completes-and-is-cleaned",
            Scope(crashes=1, answers_wait=False),
            "children_are_cleaned_up_as_asked",
        ),
    ],
)
def test_a_bug_that_needs_a_certain_order_or_a_crash_is_found(
    bug: Callable[[pytest.MonkeyPatch], None],
    life: str,
    scope: Scope,
    breaks: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calm(LIVES[life])  # as a healthy operator lives it
    bug(monkeypatch)
    assert not live(LIVES[life]).witness.violations
    findings = search(LIVES[life], scope, until=breaks)
    print(findings)
    order = Order("an order", LIVES[life], scope=scope, choices=findings.broken[breaks])
    small = shrink(order)
    assert breaks in {one.invariant.__name__ for one in small.lived().witness.violations}
    assert isinstance(small, Order)
    assert sum(map(bool, small.choices)) <= sum(map(bool, order.choices))
