"""Bugs around a decision: one that raises takes others along; a plan, or what it leaves out, is lost."""

from typing import Any

from pytest import MonkeyPatch  # noqa: PT013 (it is in every line here)

from paddle_operator import app, plan
from paddle_operator.api.meta import Manifest
from paddle_operator.paddlejob import reconcile
from paddle_operator.paddlejob.observed import Observed
from paddle_operator.plan import Plan
from paddle_operator.runtime.controller import Controller
from seeded_bugs.bug import simulated, tabled

CONTROLLER = "tests/runtime/test_controller.py::"


@simulated(20, breaks={"nothing_fails_unforeseen"}, hunts=[("calm", "fails-and-is-cleaned")])
def a_decision_raises(patch: MonkeyPatch) -> None:
    def fragile(seen: Observed) -> Plan:
        if len(seen.own) == 1:
            raise KeyError("the other one")
        return reconcile.reconcile(seen)

    patch.setattr(app, "reconcile", fragile)


@tabled(
    20,
    fails=[
        CONTROLLER + "TestAFailure::test_of_one_key_harms_no_other_and_is_tried_again_less_and_less",
    ],
)
def a_turn_that_fails_takes_all_with_it(patch: MonkeyPatch) -> None:
    async def fragile(office: Any) -> None:
        while True:
            key = await office._queue.take()
            await office.turn(key)
            office._queue.done(key)

    patch.setattr(Controller, "_work", fragile)


@tabled(
    21,
    fails=[
        "tests/test_plan.py::test_a_patch_holds_what_changed_and_nothing_else",
        "tests/test_plan.py::test_applying_the_patch_to_the_old_gives_the_new",
    ],
)
def what_is_removed_is_left_out_of_the_patch(patch: MonkeyPatch) -> None:
    def changes_only(old: Any, new: Any) -> Manifest:
        return {name: value for name, value in new.items() if old.get(name) != value}

    # The code itself: others have imported the function by its name.
    patch.setattr(plan.merge_patch, "__code__", changes_only.__code__)


@tabled(24, fails=[CONTROLLER + "TestAFailure::test_of_a_plan_does_not_hide_a_deadline"])
def a_plan_that_failed_forgets_its_deadline(patch: MonkeyPatch) -> None:
    sound = Controller._schedule

    def forgetful(office: Any, key: Any, uid: str, plan: Plan, outcome: Any) -> None:
        sound(office, key, uid, Plan(plan.steps, plan.wake_at), outcome)

    patch.setattr(Controller, "_schedule", forgetful)


@tabled(24, fails=[CONTROLLER + "test_a_turn_comes_when_the_plan_asks_for_it"])
def a_plan_wakes_nobody(patch: MonkeyPatch) -> None:
    sound = Controller._schedule

    def sleepy(office: Any, key: Any, uid: str, plan: Plan, outcome: Any) -> None:
        sound(office, key, uid, Plan(plan.steps), outcome)

    patch.setattr(Controller, "_schedule", sleepy)
