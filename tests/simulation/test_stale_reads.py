"""A stale cache at every read: each change that a watch shows comes late; each list is from the past.

GETs are not made stale: the operator's are quorum reads, which a real server does not answer from a cache. So
are its lists; one from the past is here because a manager that survives that survives more.
"""

from math import inf

import pytest
from oracle import check_end, undisturbed
from simulated import live
from simulated_connection import CrashAt, Faults, LateChange, Moment, StaleList
from tally import TALLY
from workloads import LIVES

from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS, AnyResource

KINDS = [PADDLE_JOBS, PODS, CONFIG_MAPS]
LAGS = [1, 3, inf]
# Lists are only from the past after a restart, at each write: some lives will do.
LISTED = ["completes", "fails", "single"]


@pytest.mark.parametrize("lag", LAGS)
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("name", LIVES)
def test_a_watch_that_is_late_from_any_change_on_changes_nothing_in_the_end(
    lag: float, kind: AnyResource, name: str
) -> None:
    calm, end = undisturbed(name)
    for number in range(1, calm.witness.told[kind] + 1):
        life = live(LIVES[name], Faults(late=LateChange(kind, number, lag)))
        life.check()
        check_end(life, end, f"{kind} late by {lag} from change {number} on")
        assert life.witness.faults == 1
        TALLY["late watches"] += 1


@pytest.mark.parametrize("lag", LAGS)
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("name", LISTED)
def test_a_restart_that_looks_back_in_time_changes_nothing_in_the_end(
    lag: float, kind: AnyResource, name: str
) -> None:
    """Crash after each write in turn; the first list of a kind that the next process makes is an old one."""
    calm, end = undisturbed(name)
    for write in range(1, len(calm.witness.writes) + 1):
        faults = Faults(crash=CrashAt(write, Moment.AFTER), stale=StaleList(kind, 2, lag))
        life = live(LIVES[name], faults)
        life.check()
        check_end(life, end, f"{kind} stale by {lag} after write {write}")
        assert life.witness.faults == 2
        TALLY["stale lists"] += 1
