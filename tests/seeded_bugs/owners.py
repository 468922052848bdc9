"""Bugs of whose something is: names, UIDs, labels, finalizers, and what belongs to others."""

from dataclasses import replace
from typing import Any

from pytest import MonkeyPatch  # noqa: PT013 (it is in every line here)

from paddle_operator import app
from paddle_operator.api.meta import KubeObject, Manifest, ObjectMeta
from paddle_operator.api.names import LABEL_RES_NAME, LABEL_RES_TYPE, OLD_FINALIZER
from paddle_operator.api.paddlejob import PaddleJob, Phase
from paddle_operator.api.resources import PADDLE_JOBS, PODS, Target
from paddle_operator.paddlejob import cleanup, labels, pods, reconcile, render, services, sweep
from paddle_operator.paddlejob.endpoints import Slot
from paddle_operator.paddlejob.observed import Observed
from paddle_operator.plan import Create, Delete, Patch, Plan, Refusal, Step
from paddle_operator.runtime.executor import Executor
from seeded_bugs.bug import simulated, tabled

OLD_FINALIZER_GOES = (
    "tests/paddlejob/test_reconcile.py::test_the_old_finalizer_is_taken_off_and_others_are_left"
)
NAME_IS_TAKEN = "tests/runtime/test_executor.py::TestAnameThatIsTaken::"


@simulated(
    4, breaks={"a_pod_is_named_after_its_slot", "a_slot_has_one_live_pod"}, hunts=[("calm", "completes")]
)
def pods_have_names_of_the_moment(patch: MonkeyPatch) -> None:
    sound = pods.build_pod

    def named_anew(job: PaddleJob, slot: Slot, init_image: str) -> Manifest:
        pod = sound(job, slot, init_image)
        pod["metadata"]["name"] += f"-{job.metadata.resource_version}"
        return pod

    patch.setattr(reconcile, "build_pod", named_anew)


@simulated(5, breaks={"a_status_names_only_pods_of_its_job"}, hunts=[("calm", "is-recreated")])
def owners_are_known_by_name(patch: MonkeyPatch) -> None:
    patch.setattr(ObjectMeta, "controlled_by", lambda meta, _: meta.controller is not None)


@simulated(
    5, 6, breaks={"every_change_of_a_child_names_its_uid"}, hunts=[("calm", "completes-and-is-cleaned")]
)
def deletes_name_no_uid(patch: MonkeyPatch) -> None:
    sound = Executor._delete

    async def careless(self: Executor, action: Delete, owner_uid: str) -> None:
        await sound(self, Delete(replace(action.target, uid="")), owner_uid)

    patch.setattr(Executor, "_delete", careless)


@simulated(5, 6, 30, breaks={"only_children_of_the_job_are_changed"}, hunts=[("calm", "is-recreated")])
def a_namesake_is_swept_away(patch: MonkeyPatch) -> None:
    def impatient(seen: Observed) -> Plan:
        swept = tuple(Delete(Target.of(PODS, pod)) for pod in seen.namesakes)
        return Plan((swept,)) if swept else reconcile.reconcile(seen)

    patch.setattr(app, "reconcile", impatient)


@simulated(
    6,
    breaks={"nothing_of_a_try_is_deleted_before_the_next_is_written"},
    hunts=[("stale lists of jobs", "single-restarts-and-is-cleaned")],
)
def an_old_picture_of_a_job_is_believed(patch: MonkeyPatch) -> None:
    patch.setattr(app, "is_ahead", lambda *_: False)


@tabled(5, 31, fails=[NAME_IS_TAKEN + "test_by_somebody_else_is_a_refusal_and_is_left_alone"])
def whatever_has_the_name_is_ours(patch: MonkeyPatch) -> None:
    async def trusting(_self: Executor, _action: Create, _owner_uid: str) -> None:
        return None

    patch.setattr(Executor, "_find_existing", trusting)


@tabled(31, fails=[NAME_IS_TAKEN + "test_by_ourselves_is_as_good_as_made"])
def what_we_made_and_did_not_hear_of_is_a_strangers(patch: MonkeyPatch) -> None:
    async def suspicious(_self: Executor, action: Create, _owner_uid: str) -> Refusal:
        return Refusal(action.resource, action.manifest["metadata"]["name"], taken=True, message="taken")

    patch.setattr(Executor, "_find_existing", suspicious)


@tabled(
    5,
    30,
    fails=[
        (
            "tests/paddlejob/test_obstacles.py::"
            "test_pods_of_a_dead_namesake_are_neither_counted_nor_touched_and_waited_for"
        ),
        (
            "tests/paddlejob/test_go_operator_faults.py::"
            "test_fault_5_pods_and_services_of_another_owner_are_neither_counted_nor_changed"
        ),
    ],
)
def labels_are_trusted(patch: MonkeyPatch) -> None:
    def own(seen: Observed) -> dict[str, Any]:
        labelled = {pod.metadata.labels.get(LABEL_RES_NAME, ""): pod for pod in seen.pods}
        return {name: pod for name, pod in labelled.items() if name in seen.slots}

    patch.setattr(Observed, "own", property(own))


@tabled(
    fails=[
        (
            "tests/paddlejob/test_reconcile.py::"
            "test_the_number_of_its_try_is_put_back_on_a_pod_that_the_status_lists"
        )
    ]
)
def a_pod_that_lost_its_labels_is_of_the_first_try(patch: MonkeyPatch) -> None:
    """We had it: such a pod of a later try was called lost."""
    patch.setattr(Observed, "attempt_of", lambda _, pod: labels.attempt_of(pod.metadata))


@simulated(30, breaks={"a_child_without_a_slot_is_left_alone"}, hunts=[("calm", "completes-by-default")])
def all_that_names_the_job_is_cleaned_up(patch: MonkeyPatch) -> None:
    sound = cleanup.clean_up

    def thorough(seen: Observed, end: Phase) -> Step:
        return tuple(Delete(Target.of(PODS, pod)) for pod in seen.pods) if sound(seen, end) else ()

    patch.setattr(reconcile, "clean_up", thorough)


@tabled(
    19,
    fails=[
        (
            "tests/paddlejob/test_seed_objects.py::"
            "test_every_field_that_is_shown_is_there_and_only_what_the_contract_names_is_added"
        ),
    ],
)
def a_name_leads_to_the_pods_of_every_job(patch: MonkeyPatch) -> None:
    sound = services.build_service

    def by_role(job: PaddleJob, pod: str) -> Manifest:
        made = sound(job, pod)
        made["spec"]["selector"] = {LABEL_RES_TYPE: pod.rsplit("-", 2)[1]}
        return made

    for module in (services, render):
        patch.setattr(module, "build_service", by_role)


@simulated(13, breaks={"we_hold_nobody_back"}, hunts=[("calm", "completes")])
def a_finalizer_is_left_on_jobs(patch: MonkeyPatch) -> None:
    def clinging(seen: Observed) -> Step:
        meta = seen.job.metadata
        if meta.finalizers:
            return ()
        body = {"metadata": {"finalizers": ["example.org/hold"], "resourceVersion": meta.resource_version}}
        return (Patch(Target.of(PADDLE_JOBS, seen.job), body, "hold"),)

    patch.setattr(reconcile, "release", clinging)


@tabled(
    13,
    fails=[
        OLD_FINALIZER_GOES,
        "tests/paddlejob/test_reconcile.py::test_the_old_finalizer_goes_as_soon_as_it_is_seen",
    ],
)
def the_old_finalizer_stays(patch: MonkeyPatch) -> None:
    patch.setattr(reconcile, "release", lambda _: ())


@tabled(30, fails=[OLD_FINALIZER_GOES])
def the_finalizers_of_others_are_taken_off(patch: MonkeyPatch) -> None:
    def rude(seen: Observed) -> Step:
        meta = seen.job.metadata
        body = {"metadata": {"finalizers": [], "resourceVersion": meta.resource_version}}
        is_there = OLD_FINALIZER in meta.finalizers
        return (Patch(Target.of(PADDLE_JOBS, seen.job), body, "take off"),) if is_there else ()

    patch.setattr(reconcile, "release", rude)


@tabled(30, fails=["tests/paddlejob/test_sweep.py::test_against_a_finalizer_no_force_is_used"])
def force_is_used_against_finalizers(patch: MonkeyPatch) -> None:
    def ruthless(seen: Observed, thing: KubeObject) -> Any:
        forced = seen.job.run_policy.force_delete_after_seconds is not None
        return thing.metadata.deletion_timestamp if forced else None

    patch.setattr(sweep, "_force_at", ruthless)
