"""The checklist as a table: what is seen, and what shall be done."""

from typing import Any

import make
import pytest
from make import NOW
from plans import actions, changes, finished, running_job, settled, shape

from paddle_operator.paddlejob.reconcile import reconcile
from paddle_operator.plan import Create, Delete, Emit, Patch, Plan


def test_a_new_job_gets_all_its_pods_in_one_step_then_its_status() -> None:
    plan = reconcile(make.observed(make.paddlejob(workers=5)))
    assert shape(plan) == ["5 create pods", "1 setstatus", "1 emit"]
    assert changes(plan)["phase"] == "Pending"
    assert changes(plan)["mode"] == "Collective"


def test_only_missing_pods_are_created() -> None:
    job = make.paddlejob(workers=3)
    plan = reconcile(make.observed(job, make.pod(job, 0, ip=""), make.pod(job, 2, ip="")))
    assert [one.manifest["metadata"]["name"] for one in actions(plan, Create)] == ["resnet-worker-1"]


def test_no_config_map_before_every_pod_has_an_address() -> None:
    job = make.paddlejob()
    plan = reconcile(make.observed(job, make.pod(job, 0), make.pod(job, 1, ip="")))
    assert actions(plan, Create) == []


def test_no_config_map_while_a_pod_is_on_its_way_out() -> None:
    job = make.paddlejob()
    leaving = make.pod(job, 1, metadata={"deletionTimestamp": NOW.isoformat()})
    assert actions(reconcile(make.observed(job, make.pod(job, 0), leaving)), Create) == []


def test_with_all_addresses_comes_the_map_and_then_a_nudge_for_each_pod() -> None:
    job = make.paddlejob()
    plan = reconcile(settled(make.observed(job, make.pod(job, 0), make.pod(job, 1))))
    assert shape(plan) == ["1 create configmaps", "2 patch"]
    data = actions(plan, Create)[0].manifest["data"]
    assert data["PADDLE_TRAINER_ENDPOINTS"] == "198.18.0.1:2379,198.18.0.2:2379"


def test_sidecars_that_start_without_the_map_do_not_keep_it_from_being_made() -> None:
    job = make.paddlejob(pod=make.template(make.container(name="logger"), make.container()))
    statuses = [
        {"name": "logger", "ready": True, "state": {"running": {}}},
        {"name": "paddle", "state": {"waiting": {"reason": "CreateContainerConfigError"}}},
    ]
    pods = [make.pod(job, rank, "Pending", containerStatuses=statuses) for rank in (0, 1)]
    assert shape(reconcile(settled(make.observed(job, *pods)))) == ["1 create configmaps", "2 patch"]
    assert len(actions(reconcile(make.observed(job, pods[0])), Create)) == 1


def test_at_rest_nothing_is_done() -> None:
    job = make.paddlejob()
    pods = [make.pod(job, rank, "Running") for rank in (0, 1)]
    plan = reconcile(settled(make.observed(job, *pods, config_map=make.config_map(job))))
    assert plan == Plan()


@pytest.mark.parametrize("phase", ["Completed", "Failed"])
def test_a_finished_job_makes_nothing_again_and_keeps_its_status(phase: str) -> None:
    job = finished(phase, cleanPodPolicy="Never")
    assert reconcile(make.observed(job)) == Plan()


def test_a_pod_that_vanishes_before_peers_know_it_is_made_again() -> None:
    job = make.paddlejob()
    plan = reconcile(make.observed(job, make.pod(job, 0)))
    assert len(actions(plan, Create)) == 1


@pytest.mark.parametrize("edit", [{"elastic": 1}, {"pod": {"spec": {"containers": []}}}], ids=str)
def test_an_edit_does_not_hide_that_a_pod_is_lost(edit: dict[str, Any]) -> None:
    job = running_job(**edit)
    plan = reconcile(
        make.observed(job, make.pod(running_job(), 0, "Running"), config_map=make.config_map(job))
    )
    assert changes(plan)["failure"]["reason"] == "PodLost"


def test_a_job_that_ran_is_never_started_again_by_itself() -> None:
    plan = reconcile(make.observed(running_job()))
    assert changes(plan)["failure"]["reason"] == "PodLost"
    assert actions(plan, Create) == []


@pytest.mark.parametrize("reason", ["map exists", "peer has started"])
def test_a_pod_that_vanishes_after_peers_know_it_is_lost_and_not_simply_made_anew(reason: str) -> None:
    job = make.paddlejob(runPolicy={"maxDisruptions": 0})
    peer = make.pod(job, 0, "Running" if reason == "peer has started" else "Pending")
    known = make.config_map(job) if reason == "map exists" else None
    plan = reconcile(make.observed(job, peer, config_map=known))
    assert changes(plan)["phase"] == "Failed"
    assert changes(plan)["failure"]["reason"] == "PodLost"
    assert actions(plan, Create) == []


def test_a_job_being_deleted_gets_no_children_and_says_so() -> None:
    job = make.paddlejob(
        metadata={"deletionTimestamp": NOW.isoformat(), "finalizers": ["foregroundDeletion"]}
    )
    plan = reconcile(make.observed(job))
    assert changes(plan) == {"phase": "Terminating"}
    assert actions(plan, Create) == []


def test_the_old_finalizer_is_taken_off_and_others_are_left() -> None:
    names = ["finalizers.paddlepaddle.org", "example.com/keep"]
    job = make.paddlejob(metadata={"deletionTimestamp": NOW.isoformat(), "finalizers": names})
    (patch,) = actions(reconcile(make.observed(job)), Patch)
    assert patch.body["metadata"] == {"finalizers": ["example.com/keep"], "resourceVersion": "100"}


def test_variables_that_the_operator_sets_are_dropped_with_a_warning_once() -> None:
    pod = make.template(make.container(env=[{"name": "PADDLE_TRAINER_ID", "value": "7"}]))
    job = make.paddlejob(pod=pod)
    reasons = [event.reason for event in actions(reconcile(make.observed(job)), Emit)]
    assert reasons == ["VariableDropped", "PodsCreated"]
    again = reconcile(make.observed(job, make.pod(job, 0, ip="")))
    assert "VariableDropped" not in [event.reason for event in actions(again, Emit)]


@pytest.mark.parametrize(
    ("resources", "annotation", "servers", "told"),
    [
        ({"limits": {"github.com/fuse": 1}}, None, 0, True),
        ({"limits": {"github.com/fuse": 1}}, "false", 0, False),
        ({"limits": {"github.com/fuse": 1, "nvidia.com/gpu": 8}}, None, 0, False),
        ({"limits": {"cpu": "4", "memory": "1Gi"}}, None, 0, False),
        # Servers and their workers know no such difference.
        ({"limits": {"github.com/fuse": 1}}, None, 1, False),
    ],
)
def test_of_a_resource_that_nobody_knows_it_is_told_once_that_it_counts_for_none(
    resources: dict[str, Any], annotation: str | None, servers: int, *, told: bool
) -> None:
    metadata = {"annotations": {"paddlepaddle.org/accelerator": annotation}} if annotation else {}
    roles: dict[str, Any] = {"ps": make.role(servers)} if servers else {}
    job = make.paddlejob(pod=make.template(make.container(resources=resources)), metadata=metadata, **roles)
    events = [one for one in actions(reconcile(make.observed(job)), Emit) if one.reason != "PodsCreated"]
    assert [event.reason for event in events] == (["TakenForNoAccelerator"] if told else [])
    assert all("github.com/fuse" in one.message and "annotation" in one.message for one in events)
    again = reconcile(make.observed(job, make.pod(job, 0, ip="")))
    assert "TakenForNoAccelerator" not in [event.reason for event in actions(again, Emit)]


def test_labels_that_somebody_took_off_are_put_back() -> None:
    job = running_job()
    bare = make.pod(job, 0, "Running", metadata={"labels": {}})
    seen = make.observed(job, bare, make.pod(job, 1, "Running"), config_map=make.config_map(job))
    (patch,) = actions(reconcile(seen), Patch)
    assert patch.body["metadata"]["labels"] == {
        "paddle-res-name": "resnet-worker-0",
        "paddle-res-type": "worker",
    }


def test_the_old_finalizer_goes_as_soon_as_it_is_seen() -> None:
    job = make.paddlejob(metadata={"finalizers": ["finalizers.paddlepaddle.org"]})
    assert shape(reconcile(make.observed(job))) == ["1 patch"]


def test_the_number_of_its_try_is_put_back_on_a_pod_that_the_status_lists() -> None:
    refs = [{"kind": "Pod", "name": "resnet-worker-0", "uid": "pod-0a0a-0"}]
    told = {"phase": "Running", "startTime": NOW.isoformat(), "attempt": 2, "worker": {"refs": refs}}
    job = make.paddlejob(status=told)
    bare = make.pod(job, 0, "Running", metadata={"labels": {"paddle-res-type": "worker"}})
    seen = make.observed(job, bare, make.pod(job, 1, "Running"), config_map=make.config_map(job))
    (patch,) = actions(reconcile(seen), Patch)
    assert patch.body["metadata"]["labels"]["paddlepaddle.org/attempt"] == "2"
    assert actions(reconcile(seen), Delete) == []
