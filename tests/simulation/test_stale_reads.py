"""A stale cache at every read: each change that a watch shows comes late; each list is from the past.

GETs are not made stale: the operator's are quorum reads, which a real server does not answer from a cache. So
are its lists; one from the past is here because a manager that survives that survives more.
"""

from collections.abc import Iterator
from itertools import product
from math import inf

import pytest
from oracle import check_end, undisturbed
from sampling import sample
from simulated import live
from simulated_connection import CrashAt, Faults, LateChange, Moment, StaleList
from tally import TALLY
from workloads import LIVES

from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS, SERVICES, AnyResource

KINDS = [PADDLE_JOBS, PODS, CONFIG_MAPS, SERVICES]
LAGS = [1, 3, inf]
# Lists are only from the past after a restart, at each write: some lives will do. One kind does not survive
# it: of a server that is known to have ended, and is not listed, nobody knows when, so nobody waits.
LISTED = [
    "completes",
    "fails",
    "single",
    "ps-completes-and-is-cleaned",
    "service-ps-is-cleaned",
    "host-completes",
    "restarts",
    "service-restarts",
    "loses-a-pod",
    "is-suspended",
    "is-suspended-and-grows",
    "loses-a-node",
    "expires",
    "runs-too-long",
]


# A watch of pods that is silent for minutes hides more than a deadline of one leaves time to see.
IN_HASTE = {"does-not-start", "runs-too-long-after-a-restart"}


def reads(*names: str) -> Iterator[tuple[str, AnyResource]]:
    """Each kind that a life reads; services are only there in Service mode."""
    for name, kind in product(names, KINDS):
        if kind == SERVICES and LIVES[name].manifest["spec"].get("intranet") != "Service":
            continue
        if kind != PODS or name not in IN_HASTE:
            yield name, kind


@pytest.mark.parametrize("lag", LAGS)
@pytest.mark.parametrize(("name", "kind"), [*reads(*LIVES)], ids=str)
def test_a_watch_that_is_late_from_any_change_on_changes_nothing_in_the_end(
    lag: float, name: str, kind: AnyResource
) -> None:
    calm, end = undisturbed(name)
    for number in sample(range(1, calm.witness.told[kind] + 1), "late", name, kind, lag):
        life = live(LIVES[name], Faults(late=LateChange(kind, number, lag)))
        life.check()
        check_end(life, end, f"{kind} late by {lag} from change {number} on")
        assert life.witness.faults == 1
        TALLY["late watches"] += 1


# The barrier between two tries relies on the list of pods, as that of a real server can be relied on. So does
# the count of failed pods, of which no record is kept before the verdict.
LISTS = [
    (name, kind)
    for name, kind in reads(*LISTED)
    if kind != PODS
    or not (name == "fails" or LIVES[name].acts or "runPolicy" in LIVES[name].manifest["spec"])
]


@pytest.mark.parametrize("lag", LAGS)
@pytest.mark.parametrize(("name", "kind"), LISTS, ids=str)
def test_a_restart_that_looks_back_in_time_changes_nothing_in_the_end(
    lag: float, name: str, kind: AnyResource
) -> None:
    """Crash after each write in turn; the first list of a kind that the next process makes is an old one."""
    calm, end = undisturbed(name)
    for write in sample(range(1, len(calm.witness.writes) + 1), "stale", name, kind, lag):
        faults = Faults(crash=CrashAt(write, Moment.AFTER), stale=StaleList(kind, 2, lag))
        life = live(LIVES[name], faults)
        life.check()
        check_end(life, end, f"{kind} stale by {lag} after write {write}")
        assert life.witness.faults == 2
        TALLY["stale lists"] += 1
