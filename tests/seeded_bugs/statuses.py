"""Bugs of what users are told: conditions, times, generations, events; and secrets, which they are not."""

from collections.abc import Callable
from typing import Any

import msgspec
import structlog
from pytest import MonkeyPatch  # noqa: PT013 (it is in every line here)
from simulator.invariants.of_requests import SECRET

from paddle_operator import app
from paddle_operator.api.meta import Condition, set_condition
from paddle_operator.api.paddlejob import PaddleJobStatus, Phase
from paddle_operator.paddlejob import conditions, failures, news, reconcile, status
from paddle_operator.paddlejob.observed import Observed
from paddle_operator.plan import Plan
from paddle_operator.runtime import events
from seeded_bugs.bug import simulated, tabled

COMPLETES = [("calm", "completes")]
FAILS = [("calm", "fails")]


@simulated(16, 26, breaks={"a_condition_moves_its_time_with_its_status"}, hunts=COMPLETES)
def a_condition_is_always_new(patch: MonkeyPatch) -> None:
    def restless(conditions: tuple[Condition, ...], wanted: Condition) -> tuple[Condition, ...]:
        return set_condition(tuple(one for one in conditions if one.type != wanted.type), wanted)

    patch.setattr(conditions, "set_condition", restless)


@simulated(30, breaks={"conditions_of_others_are_kept"}, hunts=COMPLETES)
def conditions_of_others_are_dropped(patch: MonkeyPatch) -> None:
    def alone(conditions: tuple[Condition, ...], wanted: Condition) -> tuple[Condition, ...]:
        return set_condition(tuple(one for one in conditions if one.type != "Billed"), wanted)

    patch.setattr(conditions, "set_condition", alone)


@simulated(17, breaks={"events_are_few"}, hunts=COMPLETES)
def everything_is_news(patch: MonkeyPatch) -> None:
    patch.setattr(news, "_is_news", lambda *_: True)


@simulated(17, breaks={"an_event_is_short"}, hunts=FAILS)
def a_failure_is_told_at_length(patch: MonkeyPatch) -> None:
    _tell_failures(patch, "worker 1 failed. " * 100)
    patch.setattr(conditions, "LONGEST_MESSAGE", 4096)
    patch.setattr(events, "LONGEST_MESSAGE", 4096)


@simulated(breaks={"no_secret_is_told"}, hunts=FAILS)
def a_failure_is_told_with_the_whole_pod(patch: MonkeyPatch) -> None:
    _tell_failures(patch, f"worker 1 failed, PASSWORD={SECRET}")


def _tell_failures(patch: MonkeyPatch, message: str) -> None:
    sound = failures._describe
    patch.setattr(
        failures,
        "_describe",
        lambda *facts: msgspec.structs.replace(sound(*facts), message=message),
    )


@simulated(breaks={"no_secret_is_logged"}, hunts=COMPLETES)
def a_secret_is_logged(patch: MonkeyPatch) -> None:
    def chatty(seen: Observed) -> Plan:
        structlog.get_logger().debug("looking", template=bytes(seen.job.spec.worker.template).decode())
        return reconcile.reconcile(seen)

    patch.setattr(app, "reconcile", chatty)


@simulated(16, 26, breaks={"times_are_written_once"}, hunts=COMPLETES)
def the_start_is_always_now(patch: MonkeyPatch) -> None:
    with_status(patch, lambda seen: {"start_time": seen.stamp})


@simulated(8, breaks={"the_observed_generation_never_goes_down"}, hunts=COMPLETES)
def a_generation_is_observed_before_it_comes(patch: MonkeyPatch) -> None:
    with_status(patch, lambda seen: {"observed_generation": seen.job.metadata.generation + 1})


def with_status(patch: MonkeyPatch, change: Callable[[Observed], dict[str, Any]]) -> None:
    """Of a job that goes on: something in its status is wrong."""
    sound = status.next_status

    def changed(seen: Observed, *facts: Any) -> PaddleJobStatus:
        return msgspec.structs.replace(sound(seen, *facts), **change(seen))

    patch.setattr(reconcile, "next_status", changed)


@tabled(
    25,
    26,
    fails=[
        "tests/paddlejob/test_status.py::test_what_another_manager_saw_to_have_failed_is_not_taken_back",
        "tests/paddlejob/test_status.py::test_that_a_pod_is_past_pending_is_not_taken_back",
    ],
)
def who_has_seen_less_takes_back_what_was_counted(patch: MonkeyPatch) -> None:
    """We had it, with two leaders."""
    patch.setattr(status, "_has_seen_less", lambda *_: False)


@tabled(26, fails=["tests/paddlejob/test_status.py::test_a_probe_that_flaps_does_not_take_running_back"])
def a_probe_that_flaps_takes_running_back(patch: MonkeyPatch) -> None:
    def nervous(seen: Observed) -> Phase:
        if seen.is_trained:
            return Phase.COMPLETED
        return Phase.RUNNING if seen.all_run else Phase.STARTING

    patch.setattr(status, "_phase", nervous)
