"""Bugs of time: whose clock is trusted, when a deadline passes, and who leads until when."""

from datetime import timedelta
from typing import Any

from pytest import MonkeyPatch  # noqa: PT013 (it is in every line here)

from paddle_operator.api.core import Lease
from paddle_operator.api.meta import Manifest
from paddle_operator.api.resources import LEASES, Target
from paddle_operator.paddlejob import deadlines, reconcile
from paddle_operator.paddlejob.observed import Observed
from paddle_operator.runtime.clock import SteadyClock
from paddle_operator.runtime.lease import Fenced, LeaderLease
from seeded_bugs.bug import ANOTHER_END, simulated, tabled

RUNS_TOO_LONG = [("calm", "runs-too-long")]
LEASE = "tests/runtime/test_lease.py::"


@simulated(24, breaks={"nothing_happens_before_its_time"}, hunts=[("clock", "runs-too-long-after-a-restart")])
def the_machines_own_clock_is_trusted(patch: MonkeyPatch) -> None:
    patch.setattr(SteadyClock, "heed", lambda *_: None)
    patch.setattr(SteadyClock, "__call__", lambda clock: clock._wall())
    sound = SteadyClock.__init__

    def with_wall(clock: Any, wall: Any, monotonic: Any) -> None:
        sound(clock, wall, monotonic)
        clock._wall = wall

    patch.setattr(SteadyClock, "__init__", with_wall)


@simulated(24, breaks={ANOTHER_END}, hunts=RUNS_TOO_LONG)
def deadlines_wake_nobody(patch: MonkeyPatch) -> None:
    patch.setattr(reconcile, "_deadlines", lambda _: ())
    patch.setattr(reconcile, "expires_at", lambda _: None)


@simulated(24, breaks={"deadlines_are_kept"}, hunts=[("crashes", "runs-too-long")])
def deadlines_pass_late(patch: MonkeyPatch) -> None:
    sound = deadlines.active_until

    def late(seen: Observed) -> Any:
        due = sound(seen)
        return due + timedelta(seconds=100) if due is not None else None

    patch.setattr(deadlines, "active_until", late)
    patch.setattr(reconcile, "active_until", late)


@tabled(
    fails=[
        "tests/paddlejob/test_deadlines.py::test_of_servers_it_matters_that_they_have_started_and_not_that_they_end"
    ]
)
def servers_are_asked_whether_they_have_ended(patch: MonkeyPatch) -> None:
    patch.setattr(Observed, "workers", property(lambda seen: tuple(seen.slots)))


@simulated(24, breaks={"nothing_happens_before_its_time"}, hunts=RUNS_TOO_LONG)
def deadlines_count_from_birth(patch: MonkeyPatch) -> None:
    def since_birth(seen: Observed) -> Any:
        seconds, born = seen.job.run_policy.active_deadline_seconds, seen.job.metadata.creation_timestamp
        return born + timedelta(seconds=seconds - 10) if seconds is not None and born is not None else None

    patch.setattr(deadlines, "active_until", since_birth)
    patch.setattr(reconcile, "active_until", since_birth)


@tabled(25, fails=[LEASE + "test_who_was_paused_beyond_the_deadline_writes_nothing_even_before_it_knows"])
def who_no_longer_leads_still_writes(patch: MonkeyPatch) -> None:
    patch.setattr(Fenced, "_check", lambda _: None)


@tabled(
    25,
    fails=["tests/runtime/test_lease_race.py::test_of_two_that_find_it_free_in_the_same_moment_one_gets_it"],
)
def a_lease_is_taken_in_whatever_version(patch: MonkeyPatch) -> None:
    async def grab(self: Any, seen: Lease, changes: Manifest) -> Any:
        return await self._cluster.patch(Target.of(LEASES, seen), {"spec": changes})

    patch.setattr(LeaderLease, "_write", grab)


@tabled(25, fails=[LEASE + "test_a_standby_waits_while_the_leader_renews"])
def a_lease_that_another_holds_is_free(patch: MonkeyPatch) -> None:
    patch.setattr(LeaderLease, "_is_free", lambda *_: True)
