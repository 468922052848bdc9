"""Bugs of how a try or a job ends: what is counted, what is kept, what is cleaned up, what begins again."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
from pytest import MonkeyPatch  # noqa: PT013 (it is in every line here)

from paddle_operator import app
from paddle_operator.api.paddlejob import Phase, Role
from paddle_operator.paddlejob import cleanup, limits, ranks, reconcile, restarts, status, suspects, sweep
from paddle_operator.paddlejob.observed import Observed
from paddle_operator.paddlejob.trainers import Trainers
from paddle_operator.paddlejob.verdicts import Question, Verdict
from paddle_operator.plan import Delete, Patch, Plan, Step
from seeded_bugs.bug import ANOTHER_END, simulated, tabled

RESTARTS = [("calm", "restarts")]
RECONCILE = "tests/paddlejob/test_reconcile.py::"
TRAINERS = "tests/paddlejob/test_failures_of_trainers.py::"


@simulated(
    7,
    11,
    14,
    breaks={ANOTHER_END, "nothing_of_a_try_is_deleted_before_the_next_is_written"},
    hunts=[("crashes", "completes-and-is-cleaned")],
)
def pods_are_cleaned_up_before_the_status_is_written(patch: MonkeyPatch) -> None:
    def cleanup_first(seen: Observed) -> Plan:
        plan = reconcile.reconcile(seen)
        return replace(plan, steps=tuple(sorted(plan.steps, key=deletes_nothing)))

    def deletes_nothing(step: Step) -> bool:
        return not any(isinstance(action, Delete) for action in step)

    patch.setattr(app, "reconcile", cleanup_first)


@tabled(7, fails=[RECONCILE + "test_only_missing_pods_are_created"])
def a_job_that_is_half_made_stays_so(patch: MonkeyPatch) -> None:
    sound = reconcile._pod_creates
    patch.setattr(reconcile, "_pod_creates", lambda seen, role: () if seen.own else sound(seen, role))


@simulated(
    8,
    breaks={"children_are_cleaned_up_as_asked", ANOTHER_END},
    hunts=[("crashes", "completes-and-is-cleaned")],
)
def an_end_that_is_written_is_taken_for_cleaned_up(patch: MonkeyPatch) -> None:
    patch.setattr(reconcile, "_after_the_end", lambda _: Plan())


@simulated(8, breaks={"tries_do_not_overlap"}, hunts=RESTARTS)
def nobody_waits_for_the_old_try_to_be_gone(patch: MonkeyPatch) -> None:
    sound = Observed.leftovers.func  # type: ignore[attr-defined]

    def impatient(seen: Observed) -> tuple[Any, ...]:
        return tuple(one for one in sound(seen) if not one.metadata.terminating)

    patch.setattr(Observed, "leftovers", property(impatient))
    patch.setattr(restarts, "FIRST_BACKOFF_SECONDS", 0)  # which would hide it mostly
    patch.setattr(restarts, "RESOLUTION", timedelta())


@tabled(
    9,
    fails=[
        (
            "tests/paddlejob/test_sweep.py::"
            "test_a_list_of_peers_that_no_watch_shows_is_looked_for_again_after_its_deletion"
        )
    ],
)
def nobody_looks_for_what_no_watch_shows(patch: MonkeyPatch) -> None:
    """We had it: a job that restarted waited for ever for a map to go that was gone."""
    patch.setattr(sweep, "_is_hidden", lambda _: False)


@simulated(11, breaks={"what_has_finished_stays_counted"}, hunts=[("calm", "completes")])
def only_the_last_success_is_recorded(patch: MonkeyPatch) -> None:
    patch.setattr(ranks, "to_text", lambda found: str(max(found)) if found else "")


@tabled(
    11,
    fails=[
        (
            "tests/paddlejob/test_status.py::"
            "test_who_ended_well_is_written_down_and_not_lost_when_its_pod_is_collected"
        ),
        "tests/paddlejob/test_failures.py::test_a_recorded_success_holds_whatever_becomes_of_the_pod",
    ],
)
def what_is_written_of_a_success_is_not_read(patch: MonkeyPatch) -> None:
    patch.setattr(Observed, "_succeeded_before", frozenset())


@tabled(
    11, fails=[RECONCILE + "test_a_pod_that_vanishes_after_peers_know_it_is_lost_and_not_simply_made_anew"]
)
def a_pod_that_is_lost_is_made_anew(patch: MonkeyPatch) -> None:
    patch.setattr(Observed, "peers_are_told", False)
    patch.setattr(Observed, "all_were_there", False)


@simulated(
    12,
    breaks={"no_child_is_made_for_a_job_that_is_over", "children_are_cleaned_up_as_asked"},
    hunts=[("calm", "fails-and-is-cleaned")],
)
def a_finished_job_gets_its_pods_back(patch: MonkeyPatch) -> None:
    def restless(seen: Observed) -> Plan:
        return Plan(reconcile.children(seen)) if seen.job.status.finished else reconcile.reconcile(seen)

    patch.setattr(app, "reconcile", restless)


@simulated(12, 26, breaks={"completed_and_failed_are_final"}, hunts=[("calm", "completes-and-is-cleaned")])
def a_finished_job_misses_its_pods(patch: MonkeyPatch) -> None:
    def forgetful(seen: Observed) -> Plan:
        if seen.job.status.phase == Phase.COMPLETED and not seen.own:
            status = msgspec.structs.replace(seen.job.status, phase="Running", worker=None)
            seen = replace(seen, job=msgspec.structs.replace(seen.job, status=status))
        return reconcile.reconcile(seen)

    patch.setattr(app, "reconcile", forgetful)
    patch.setattr(limits, "MAX_DISRUPTIONS", 0)  # else it would begin again and again


@simulated(12, breaks={"no_child_is_made_for_a_job_that_is_over"}, hunts=[("calm", "is-born-suspended")])
def a_suspended_job_gets_pods(patch: MonkeyPatch) -> None:
    patch.setattr(reconcile, "is_suspended", lambda _: False)


@simulated(14, breaks={"everybody_is_counted"}, hunts=[("calm", "fails")])
def failed_pods_are_not_counted(patch: MonkeyPatch) -> None:
    sound = status._role_status

    def kind(seen: Observed, role: Role) -> Any:
        found = sound(seen, role)
        return found and msgspec.structs.replace(found, failed=0)

    patch.setattr(status, "_role_status", kind)


@tabled(14, fails=["tests/paddlejob/test_status.py::test_the_phase_follows_from_the_pods"])
def a_job_is_completed_with_its_first_worker(patch: MonkeyPatch) -> None:
    trained = property(lambda seen: Verdict.SUCCEEDED in seen.verdicts.values())
    patch.setattr(Observed, "is_trained", trained)


@simulated(14, breaks={"a_try_is_counted_once"}, hunts=RESTARTS)
def a_failure_counts_twice(patch: MonkeyPatch) -> None:
    def doubled(*facts: Any) -> tuple[int, int]:
        failures, disruptions = limits.counted(*facts)
        return failures + 1, disruptions

    patch.setattr(restarts, "counted", doubled)


@simulated(14, breaks={"a_try_is_counted_once", ANOTHER_END}, hunts=RESTARTS)
def a_restart_counts_nothing(patch: MonkeyPatch) -> None:
    patch.setattr(restarts, "counted", lambda *_: (0, 0))


@simulated(14, breaks={ANOTHER_END}, hunts=RESTARTS)
def pods_of_older_tries_are_counted(patch: MonkeyPatch) -> None:
    patch.setattr(Observed, "attempt_of", lambda seen, _: seen.job.status.attempt)


@simulated(breaks={"no_limit_is_exceeded", ANOTHER_END}, hunts=[("calm", "fails")])
def limits_are_not_asked(patch: MonkeyPatch) -> None:
    patch.setattr(reconcile, "may_restart", lambda *_: True)


@simulated(breaks={ANOTHER_END}, hunts=[("late watches", "ps-server-ends-shortly-before-its-worker")])
def nobody_asks_how_the_workers_ended(patch: MonkeyPatch) -> None:
    patch.setattr(app, "unconfirmed_workers", lambda _: Question())


@simulated(breaks={"children_are_cleaned_up_as_asked"}, hunts=[("calm", "ps-completes")])
def servers_are_left_to_serve(patch: MonkeyPatch) -> None:
    sound = cleanup.clean_up

    def workers_only(seen: Observed, end: Phase) -> Step:
        return tuple(
            one for one in sound(seen, end) if not isinstance(one, Patch) or "-ps-" not in one.target.key.name
        )

    patch.setattr(reconcile, "clean_up", workers_only)


@tabled(
    fails=[
        TRAINERS + "test_rank_3_of_2_x_2_is_the_cause",
        TRAINERS + "test_process_2_of_4_in_a_lone_pod_is_the_cause_or_none_is_named",
    ],
)
def whom_the_launcher_names_is_to_blame(patch: MonkeyPatch) -> None:
    """We thought so: it looks once a second, and a victim may be dead by then."""
    patch.setattr(Trainers, "is_victim", lambda *_: False)
    patch.setattr(Trainers, "lost_a_peer", lambda *_: False)


@tabled(
    fails=[
        TRAINERS + "test_a_lone_end_is_that_of_no_victim",
        TRAINERS + "test_how_long_a_verdict_waits_for_a_pod_that_runs_on",
    ],
)
def who_is_alone_is_called_a_victim(patch: MonkeyPatch) -> None:
    """We had it: the one who had failed was called a victim, after a minute of waiting for the cause."""
    patch.setattr(suspects, "_by_itself", lambda _, found: found)
