"""The clock of the manager's machine is set by an hour, at any moment: nothing is early or forgotten."""

import pytest
from oracle import check_end, undisturbed
from simulated import live
from simulated_connection import ClockJump, CrashAt, Faults, Moment
from tally import TALLY
from workloads import LIVES

TIMED = [
    "runs-too-long",
    "runs-too-long-after-a-restart",
    "does-not-start",
    "expires",
    "loses-a-node",
    "restarts",
]
JUMPS = [3600.0, -3600.0]
# Before the manager starts, while pods start, while they run, while a deadline is awaited.
MOMENTS = [0.0, 1.0, 4.0, 40.0]


@pytest.mark.parametrize("name", TIMED)
@pytest.mark.parametrize("by_seconds", JUMPS)
@pytest.mark.parametrize("at_seconds", MOMENTS)
def test_a_clock_that_is_set_changes_nothing_in_the_end(
    name: str, by_seconds: float, at_seconds: float
) -> None:
    _, end = undisturbed(name)
    life = live(LIVES[name], Faults(clock=ClockJump(at_seconds, by_seconds)))
    life.check()
    check_end(life, end, f"clock set by {by_seconds} at {at_seconds}")
    TALLY["clocks set"] += 1


@pytest.mark.parametrize("name", TIMED)
@pytest.mark.parametrize("by_seconds", JUMPS)
def test_nor_does_a_manager_that_comes_back_believe_such_a_clock(name: str, by_seconds: float) -> None:
    calm, end = undisturbed(name)
    for write in range(1, len(calm.witness.writes) + 1):
        crash = CrashAt(write, Moment.AFTER)
        life = live(LIVES[name], Faults(crash=crash, clock=ClockJump(1.0, by_seconds)))
        life.check()
        check_end(life, end, f"clock set by {by_seconds}, {crash}")
        TALLY["clocks set"] += 1
