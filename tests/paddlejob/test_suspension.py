"""runPolicy.suspend: what goes, what is kept, and how the job comes back."""

from typing import Any

import make
import pytest
from make import NOW, seconds
from plans import actions, changes, shape

from paddle_operator.api.meta import Manifest
from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.paddlejob.reconcile import reconcile
from paddle_operator.plan import Create, Delete, Plan

KNOWN = {
    "phase": "Suspended",
    "mode": "Collective",
    "attempt": 1,
    "observedGeneration": 2,
    "startTime": (NOW - seconds(3600)).isoformat(),
}
SUSPENDED = {"type": "Suspended", "status": "True", "reason": "Suspended"}


def job(
    status: Manifest, generation: int = 2, workers: int = 2, *, suspend: bool = True, **policy: Any
) -> PaddleJob:
    return make.paddlejob(
        workers=workers,
        status=status,
        metadata={"generation": generation},
        runPolicy={"suspend": suspend, **policy},
    )


def told(plan: Plan, kind: str) -> Manifest:
    return next(one for one in changes(plan)["conditions"] if one["type"] == kind)


def test_a_running_job_is_suspended_by_a_new_try_that_is_not_begun() -> None:
    running = job({"phase": "Running", "failures": 1, "restarts": 1, "attempt": 1, "hostPort": 35000})
    pods = [make.pod(running, rank, "Running") for rank in (0, 1)]
    plan = reconcile(make.observed(running, *pods, config_map=make.config_map(running)))
    assert shape(plan) == ["1 setstatus", "1 emit and 3 delete"]
    after = changes(plan)
    assert (after["phase"], after["attempt"]) == ("Suspended", 2)
    assert not {"failures", "restarts", "disruptions"} & {*after}
    assert after["hostPort"] is None
    assert told(plan, "Suspended")["status"] == "True"


def test_nothing_is_made_for_a_job_that_is_suspended_and_a_new_size_is_noted() -> None:
    suspended = job({**KNOWN, "conditions": [SUSPENDED]})
    assert reconcile(make.observed(suspended)) == Plan()
    grown = job({**KNOWN, "conditions": [SUSPENDED]}, generation=3, workers=1)
    assert changes(reconcile(make.observed(grown))) == {"observedGeneration": 3, "mode": "Single"}


def test_one_that_was_born_so_has_its_first_try_still_before_it() -> None:
    plan = reconcile(make.observed(job({}, generation=1)))
    assert changes(plan)["phase"] == "Suspended"
    assert "attempt" not in changes(plan)
    assert actions(plan, Create) == []


def test_a_job_that_is_resumed_begins_a_try_that_uses_no_limit() -> None:
    status = {"phase": "Suspended", "attempt": 1, "failures": 1, "conditions": [SUSPENDED]}
    resumed = job(status, generation=3, suspend=False)
    plan = reconcile(make.observed(resumed))
    after = changes(plan)
    assert (after["phase"], after["attemptTime"], after["resumeTime"]) == (
        "Pending",
        "2026-11-18T12:00:00Z",
        "2026-11-18T12:00:00Z",
    )
    assert not {"attempt", "failures", "restarts"} & {*after}
    assert told(plan, "Suspended")["reason"] == "Resumed"
    running = job({**status, "phase": "Pending", "conditions": []}, generation=3, suspend=False)
    assert len(actions(reconcile(make.observed(running)), Create)) == 2


def test_it_is_not_resumed_before_its_old_pods_are_gone() -> None:
    resumed = job(KNOWN, suspend=False, activeDeadlineSeconds=1)
    old = make.pod(job({}), 0, "Running", metadata={"deletionTimestamp": NOW.isoformat()})
    plan = reconcile(make.observed(resumed, old))
    assert plan.steps == ()
    assert plan.wake_at == NOW + seconds(30)  # a deadline that has long passed must not wake us at once


@pytest.mark.parametrize("policy", [{"startDeadlineSeconds": 60}, {"activeDeadlineSeconds": 60}])
def test_the_time_of_a_suspension_counts_against_no_deadline(policy: Manifest) -> None:
    long_ago = (NOW - seconds(3600)).isoformat()
    status = {"phase": "Suspended", "attempt": 1, "startTime": long_ago, "attemptTime": long_ago}
    for suspend in (True, False):
        plan = reconcile(make.observed(job(status, generation=3, suspend=suspend, **policy)))
        assert changes(plan).get("phase") != "Failed"


def test_pods_beyond_a_smaller_number_go_too() -> None:
    before = make.paddlejob(workers=3)
    shrunk = job({"phase": "Suspended", "attempt": 1}, workers=1)
    pods = [make.pod(before, rank, "Running") for rank in range(3)]
    deleted = [one.target.key.name for one in actions(reconcile(make.observed(shrunk, *pods)), Delete)]
    assert deleted == ["resnet-worker-0", "resnet-worker-1", "resnet-worker-2"]


def test_a_pod_that_only_names_the_job_as_its_owner_is_left_alone() -> None:
    suspended = job(KNOWN)
    stranger = make.pod(suspended, 0, "Running", metadata={"name": "resnet-tensorboard"})
    assert reconcile(make.observed(suspended, stranger)) == Plan()


def test_pods_of_the_go_operator_beyond_a_smaller_number_go_too() -> None:
    before = make.paddlejob(workers=4)
    labels = {"labels": {"paddle-res-type": "worker"}}
    pods = [make.pod(before, rank, "Running", metadata=labels) for rank in range(4)]
    plan = reconcile(make.observed(job({"phase": "Suspended", "attempt": 1}, workers=2), *pods))
    assert len(actions(plan, Delete)) == 4


def test_fewer_workers_and_a_suspension_in_one_edit_do_not_complete_a_job() -> None:
    before = make.paddlejob(workers=3)
    shrunk = job({"phase": "Running", "startTime": NOW.isoformat()}, workers=1)
    pods = [make.pod(before, rank, "Running" if rank else "Succeeded") for rank in range(3)]
    plan = reconcile(make.observed(shrunk, *pods, config_map=make.config_map(before)))
    assert changes(plan)["phase"] == "Suspended"


def test_a_job_whose_workers_have_ended_well_is_completed_and_not_suspended() -> None:
    running = job({"phase": "Running", "startTime": NOW.isoformat()})
    pods = [make.pod(running, rank, "Succeeded") for rank in (0, 1)]
    assert changes(reconcile(make.observed(running, *pods)))["phase"] == "Completed"


@pytest.mark.parametrize(("workers", "phase"), [(3, "Pending"), (1, "Pending"), (2, None)])
def test_a_resize_that_nobody_saw_is_a_new_try_and_no_pod_is_lost_by_it(
    workers: int, phase: str | None
) -> None:
    before = make.paddlejob(status={"phase": "Running", "startTime": NOW.isoformat()})
    after = job({"phase": "Running", "startTime": NOW.isoformat()}, 4, workers, suspend=False)
    pods = [make.pod(before, rank, "Running") for rank in (0, 1)]
    plan = reconcile(make.observed(after, *pods, config_map=make.config_map(before)))
    changed = changes(plan)
    assert changed.get("phase") == phase
    assert not {"failures", "disruptions", "restarts"} & {*changed}
    assert len(actions(plan, Delete)) == (3 if phase else 0)
