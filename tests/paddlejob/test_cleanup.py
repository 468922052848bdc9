"""What becomes of the pods of a job that has ended."""

import make
import msgspec
import pytest
from make import NOW
from plans import actions, changes, finished, shape

from paddle_operator.paddlejob.reconcile import reconcile
from paddle_operator.plan import Delete, Patch, Plan


@pytest.mark.parametrize(
    ("policy", "phase", "cleaned"),
    [
        ("", "Completed", True),
        ("", "Failed", False),
        ("Always", "Completed", True),
        ("Always", "Failed", True),
        ("Never", "Completed", False),
        ("Never", "Failed", False),
        ("OnCompletion", "Completed", True),
        ("OnCompletion", "Failed", False),
        ("OnFailure", "Completed", False),
        ("OnFailure", "Failed", True),
    ],
)
@pytest.mark.parametrize("field", ["cleanPodPolicy", "cleanPolicy"])
def test_the_clean_pod_policy_decides_about_the_pods(
    policy: str, phase: str, field: str, *, cleaned: bool
) -> None:
    job = finished(phase, **{field: policy})
    ended = [make.pod(job, rank, "Succeeded" if phase == "Completed" else "Failed") for rank in (0, 1)]
    plan = reconcile(make.observed(job, *ended, config_map=make.config_map(job)))
    assert len(actions(plan, Delete)) == (2 if cleaned else 0)
    assert len(actions(plan, Patch)) == 0


def test_survivors_that_are_kept_are_stopped_once() -> None:
    job = finished("Failed")
    survivor, dead = make.pod(job, 0, "Running"), make.pod(job, 1, "Failed")
    plan = reconcile(make.observed(job, survivor, dead))
    assert [(one.target.key.name, one.body) for one in actions(plan, Patch)] == [
        ("resnet-worker-0", {"spec": {"activeDeadlineSeconds": 1}})
    ]
    stopped = msgspec.structs.replace(
        survivor, spec=msgspec.structs.replace(survivor.spec, active_deadline_seconds=1)
    )
    assert reconcile(make.observed(job, stopped, dead)) == Plan()


def test_the_end_is_written_before_pods_are_cleaned() -> None:
    job = make.paddlejob(status={"phase": "Running", "startTime": NOW.isoformat()})
    pods = [make.pod(job, rank, "Succeeded") for rank in (0, 1)]
    plan = reconcile(make.observed(job, *pods, config_map=make.config_map(job)))
    assert shape(plan) == ["1 setstatus", "2 emit and 2 delete"]
    assert changes(plan)["phase"] == "Completed"


@pytest.mark.parametrize("deadline", [None, 86400])
def test_a_pod_that_is_kept_alive_by_its_sidecar_is_stopped(deadline: int | None) -> None:
    template = make.template(make.container(), make.container(name="logger"))
    job = make.paddlejob(pod=template, cleanPodPolicy="Never", status={"phase": "Completed"})
    statuses = [
        {"name": "paddle", "state": {"terminated": {"exitCode": 0}}},
        {"name": "logger", "ready": True, "state": {"running": {}}},
    ]
    pod = make.pod(job, 0, "Running", containerStatuses=statuses)
    spec = msgspec.structs.replace(pod.spec, active_deadline_seconds=deadline)
    plan = reconcile(make.observed(job, msgspec.structs.replace(pod, spec=spec)))
    assert [one.body for one in actions(plan, Patch)] == [{"spec": {"activeDeadlineSeconds": 1}}]


def test_a_survivor_that_never_found_a_node_is_deleted() -> None:
    job = finished("Failed")
    pod = make.pod(job, 0)
    homeless = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=""))
    assert len(actions(reconcile(make.observed(job, homeless)), Delete)) == 1
