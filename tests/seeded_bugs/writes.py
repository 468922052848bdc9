"""Bugs of what is sent: conflicts, refusals, repetitions, events, rights."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import world
from pytest import MonkeyPatch  # noqa: PT013 (it is in every line here)

from paddle_operator import app
from paddle_operator.api import validate
from paddle_operator.api.names import ANNOTATION_NUDGE
from paddle_operator.api.paddlejob import PaddleJobStatus
from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS, Target
from paddle_operator.cluster import Conflict, NotFound
from paddle_operator.paddlejob import news, nudge, obstacles, reconcile
from paddle_operator.paddlejob.observed import Observed
from paddle_operator.plan import Delete, Patch, Plan, SetStatus, Step
from paddle_operator.runtime import controller, queue
from paddle_operator.runtime.events import EventRecorder
from paddle_operator.runtime.executor import Executor
from paddle_operator.runtime.queue import KeyQueue
from seeded_bugs.bug import served, simulated, tabled

EXECUTOR = "tests/runtime/test_executor.py::"
REST = "it_comes_to_rest"
REFUSED = [("refusals", "completes")]


@simulated(10, 25, breaks={"a_job_is_only_written_to_as_it_was_read"}, hunts=[("calm", "completes")])
def status_is_written_without_a_version(patch: MonkeyPatch) -> None:
    async def blind(self: Executor, action: SetStatus, owner_uid: str) -> None:
        body = {"metadata": {"uid": action.target.uid}, "status": action.changes}
        result = await self._cluster.patch(action.target, body, subresource="status")
        self._gate.wrote(owner_uid, action.target.resource, result)

    patch.setattr(Executor, "_set_status", blind)


@tabled(10, 25, fails=[EXECUTOR + "test_a_conflict_on_the_status_means_outdated_and_is_no_error"])
def a_conflict_on_the_status_is_passed_over(patch: MonkeyPatch) -> None:
    sound = Executor._set_status

    async def careless(self: Executor, action: SetStatus, owner_uid: str) -> None:
        try:
            await sound(self, action, owner_uid)
        except Conflict:
            return

    patch.setattr(Executor, "_set_status", careless)


@tabled(10, fails=[EXECUTOR + "test_nothing_is_deleted_behind_a_status_that_found_no_object"])
def a_status_that_finds_no_object_is_passed_over(patch: MonkeyPatch) -> None:
    async def careless(self: Executor, action: SetStatus, owner_uid: str) -> None:
        target = action.target
        identity = {"uid": target.uid, "resourceVersion": target.resource_version}
        try:
            body = {"metadata": identity, "status": action.changes}
            result = await self._cluster.patch(target, body, subresource="status")
        except NotFound:
            return
        self._gate.wrote(owner_uid, target.resource, result)

    patch.setattr(Executor, "_set_status", careless)


@tabled(10, fails=["tests/runtime/test_controller.py::TestAFailure::test_is_not_what_an_outdated_plan_is"])
def an_outdated_plan_is_not_made_again(patch: MonkeyPatch) -> None:
    sound = controller.Controller._schedule

    def resigned(office: Any, key: Any, uid: str, plan: Plan, outcome: Any) -> None:
        if not outcome.outdated:
            sound(office, key, uid, plan, outcome)

    patch.setattr(controller.Controller, "_schedule", resigned)


@tabled(
    16,
    fails=["tests/paddlejob/test_go_operator_faults.py::test_fault_6_what_is_written_is_not_written_again"],
)
def a_status_is_written_in_every_turn(patch: MonkeyPatch) -> None:
    def restless(seen: Observed, status: PaddleJobStatus) -> tuple[Step, ...]:
        written = SetStatus(Target.of(PADDLE_JOBS, seen.job), {"phase": status.phase})
        return news.write_status(seen, status) or ((written,),)

    patch.setattr(reconcile, "write_status", restless)


@simulated(16, breaks={"no_patch_says_what_is_known"}, hunts=[("calm", "completes")])
def a_nudge_is_always_the_same(patch: MonkeyPatch) -> None:
    def nudges(seen: Observed) -> tuple[Patch, ...]:
        body = {"metadata": {"annotations": {ANNOTATION_NUDGE: "1"}}}
        return tuple(Patch(Target.of(PODS, pod), body, "nudge") for pod, _, _ in nudge._waiting(seen))

    patch.setattr(reconcile, "nudges", nudges)


@simulated(
    16,
    breaks={REST, "a_goal_is_reached_in_few_turns", "a_job_costs_few_requests"},
    hunts=[("calm", "completes")],
)
def somebody_polls(patch: MonkeyPatch) -> None:
    sound = app.PaddleJobManager._gather

    async def look_up_always(self: Any, job: Any, memory: Any) -> Observed:
        await self._look_up(CONFIG_MAPS, job.metadata.key)
        return await sound(self, job, memory)

    def again(seen: Observed) -> Plan:
        plan = reconcile.reconcile(seen)
        return Plan(plan.steps, seen.now + timedelta(seconds=30))

    patch.setattr(app.PaddleJobManager, "_gather", look_up_always)
    patch.setattr(app, "reconcile", again)


@tabled(
    17,
    fails=[
        "tests/runtime/test_events.py::test_one_object_gets_25_events_at_once_and_then_one_in_five_minutes"
    ],
)
def events_have_no_budget(patch: MonkeyPatch) -> None:
    patch.setattr(EventRecorder, "_may_speak_of", lambda *_: True)


@tabled(
    18,
    fails=[
        "tests/api/test_validate.py::test_the_longest_pod_name_decides_how_long_a_name_may_be",
    ],
)
def names_may_have_253_characters(patch: MonkeyPatch) -> None:
    patch.setattr(validate, "LONGEST_LABEL", 253)


@tabled(
    18,
    fails=[
        "tests/runtime/test_queue.py::test_failures_double_the_delay_up_to_a_minute_and_a_success_starts_afresh",
        (
            "tests/runtime/test_controller.py::TestAFailure::"
            "test_of_one_key_harms_no_other_and_is_tried_again_less_and_less"
        ),
    ],
)
def a_failure_is_tried_again_at_once(patch: MonkeyPatch) -> None:
    def hasty(queue: KeyQueue, key: Any) -> float:
        queue.add(key, 0.2)
        return 0.2

    patch.setattr(KeyQueue, "retry", hasty)


@tabled(
    18,
    fails=[
        (
            "tests/runtime/test_controller.py::TestAFailure::"
            "test_of_a_kind_of_writes_is_not_forgotten_after_a_turn_without_one"
        )
    ],
)
def any_success_ends_a_back_off(patch: MonkeyPatch) -> None:
    """We had it."""
    sound = controller.Controller._schedule

    def careless(self: Any, key: Any, uid: str, plan: Plan, outcome: Any) -> None:
        if outcome.complete:
            self._queue.succeeded(key)
        sound(self, key, uid, plan, outcome)

    patch.setattr(controller.Controller, "_schedule", careless)


@tabled(
    18,
    fails=["tests/api/test_validate.py::test_a_name_that_cannot_begin_the_names_of_pods_is_refused"],
)
def names_need_not_be_those_of_dns(patch: MonkeyPatch) -> None:
    patch.setattr(validate, "DNS_LABEL", r".*")


@simulated(18, breaks={"what_is_refused_is_not_asked_in_haste"}, hunts=REFUSED)
def retries_never_slow_down(patch: MonkeyPatch) -> None:
    patch.setattr(queue, "LONGEST_RETRY_SECONDS", 0.2)


@served(22, fails=["tests/apiserver/test_jobs.py::test_the_operator_gets_along_with_its_rights"])
def the_right_to_the_finalizers_of_jobs_is_missing(patch: MonkeyPatch) -> None:
    (rule,) = (one for one in world.OPERATOR_RULES if one["resources"] == ["paddlejobs/finalizers"])
    patch.setitem(rule, "verbs", ["get"])


@tabled(
    23,
    fails=[
        EXECUTOR + "test_a_create_that_is_turned_down_is_a_refusal",
    ],
)
def a_refusal_is_an_error_like_others(patch: MonkeyPatch) -> None:
    async def create(self: Executor, action: Any, owner_uid: str) -> None:
        made = await self._cluster.create(action.resource, action.manifest)
        self._gate.wrote(owner_uid, action.resource, made)

    patch.setattr(Executor, "_create", create)


@tabled(
    23, fails=["tests/paddlejob/test_obstacles.py::test_what_was_refused_is_said_first_and_then_tried_again"]
)
def a_refusal_is_not_said(patch: MonkeyPatch) -> None:
    patch.setattr(obstacles, "_refused", lambda _: None)


@simulated(23, breaks={"what_may_not_be_made_is_said"}, hunts=REFUSED)
def refusals_are_forgotten(patch: MonkeyPatch) -> None:
    sound = app.PaddleJobManager._gather

    async def forgetful(self: Any, job: Any, memory: controller.Recollection) -> Observed:
        return await sound(self, job, replace(memory, refusals=()))

    patch.setattr(app.PaddleJobManager, "_gather", forgetful)


@tabled(
    23,
    fails=["tests/runtime/test_controller.py::test_an_error_that_does_not_pass_is_as_good_as_a_refusal"],
)
def an_error_that_does_not_pass_is_never_said(patch: MonkeyPatch) -> None:
    patch.setattr(controller, "FAILURES_BEFORE_SAID", 1_000_000)


@tabled(29, fails=[EXECUTOR + "test_who_is_gone_already_is_not_asked_for_again_before_the_cache_shows_it"])
def who_is_gone_is_deleted_again_and_again(patch: MonkeyPatch) -> None:
    async def stubborn(self: Executor, action: Delete, owner_uid: str) -> None:
        await self._cluster.delete(action.target, as_seen=action.as_seen, force=action.force)
        self._gate.deleted(owner_uid, action.target, at_once=action.force)

    patch.setattr(Executor, "_delete", stubborn)
