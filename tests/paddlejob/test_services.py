"""Service mode: names are known before pods are, so nothing waits."""

from dataclasses import replace
from typing import Any

import make
import pytest
from make import NOW
from plans import actions, changes, finished, settled, shape

from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.paddlejob.observed import Observed, Settings
from paddle_operator.paddlejob.reconcile import reconcile
from paddle_operator.plan import Create, Delete, Patch, Plan

PODS = ("resnet-worker-0", "resnet-worker-1")


def service_job(**fields: Any) -> PaddleJob:
    return make.paddlejob(intranet="Service", **fields)


def world(job: PaddleJob, *phases: str) -> Observed:
    """With its map and its services, and these pods."""
    pods = [make.pod(job, rank, phase) for rank, phase in enumerate(phases)]
    services = tuple(make.service(job, name) for name in PODS)
    return make.observed(job, *pods, config_map=make.config_map(job), services=services)


def test_the_map_comes_first_then_services_then_pods_all_in_one_pass() -> None:
    plan = reconcile(make.observed(service_job()))
    assert shape(plan)[:3] == ["1 create configmaps", "2 create services", "2 create pods"]
    (config_map,) = plan.steps[0]
    assert isinstance(config_map, Create)
    assert config_map.manifest["data"]["PADDLE_TRAINER_ENDPOINTS"] == (
        "resnet-worker-0.team.svc:2379,resnet-worker-1.team.svc:2379"
    )


def test_nobody_is_nudged_who_is_not_stuck() -> None:
    job = service_job()
    assert actions(reconcile(world(job, "Pending", "Running")), Patch) == []
    stuck = make.pod(job, 0, waiting="CreateContainerConfigError")
    seen = replace(world(job), pods=(stuck, make.pod(job, 1, "Running")))
    assert [one.purpose for one in actions(reconcile(seen), Patch)] == ["nudge"]


def test_a_pod_that_was_not_made_before_others_began_is_made() -> None:
    plan = reconcile(world(service_job(), "Running"))
    assert [one.manifest["metadata"]["name"] for one in actions(plan, Create)] == ["resnet-worker-1"]
    assert changes(plan).get("phase") != "Failed"


def test_a_pod_that_is_gone_after_all_were_made_and_some_began_is_lost() -> None:
    seen = settled(world(service_job(), "Running", "Pending"))
    assert changes(reconcile(replace(seen, pods=seen.pods[:1])))["failure"]["reason"] == "PodLost"


def test_a_pod_that_is_gone_before_anybody_began_is_made_again() -> None:
    seen = settled(world(service_job(), "Pending", "Pending"))
    gone = replace(seen, pods=seen.pods[:1], services=world(service_job()).services)
    assert len(actions(reconcile(gone), Create)) == 1


def test_a_service_that_is_gone_is_made_again() -> None:
    seen = settled(world(service_job(), "Running", "Running"))
    seen = replace(seen, services=(make.service(seen.job, PODS[0]),))
    assert shape(reconcile(seen)) == ["1 create services"]


def test_at_rest_nothing_is_done() -> None:
    seen = world(service_job(), "Running", "Running")
    assert reconcile(replace(settled(seen), services=seen.services)) == Plan()


@pytest.mark.parametrize(("policy", "deletes"), [("Always", 4), ("Never", 0)])
def test_services_go_with_their_pods(policy: str, deletes: int) -> None:
    job = finished("Completed", intranet="Service", cleanPodPolicy=policy)
    plan = reconcile(world(job, "Succeeded", "Succeeded"))
    assert len(actions(plan, Delete)) == deletes


def test_a_service_that_somebody_holds_back_is_not_deleted_again_and_again() -> None:
    job = finished("Completed", intranet="Service")
    held = make.service(job, PODS[0], deletionTimestamp=NOW.isoformat(), finalizers=["example.com/hold"])
    assert reconcile(make.observed(job, services=(held,))) == Plan()


def test_services_of_a_namesake_are_waited_for() -> None:
    job = service_job()
    plan = reconcile(make.observed(job, services=(make.service(service_job(uid="dead"), PODS[0]),)))
    assert actions(plan, Create) == []
    (condition,) = changes(plan)["conditions"]
    assert condition["reason"] == "NamesakeTerminating"
    assert "service resnet-worker-0" in condition["message"]


def test_the_init_image_waits_for_names_with_few_rights_and_only_in_service_mode() -> None:
    settings = Settings(init_image="alpine:3.10")
    (pod, _) = reconcile(make.observed(service_job(), settings=settings)).steps[2]
    assert isinstance(pod, Create)
    (waiting,) = pod.manifest["spec"]["initContainers"]
    assert (waiting["name"], waiting["image"]) == ("coord-paddle", "alpine:3.10")
    (peers,) = waiting["env"]
    assert peers["valueFrom"]["configMapKeyRef"] == {"name": "resnet", "key": "PADDLE_TRAINERS"}
    assert waiting["securityContext"]["runAsNonRoot"]
    elsewhere = actions(reconcile(make.observed(make.paddlejob(), settings=settings)), Create)
    assert all("initContainers" not in one.manifest["spec"] for one in elsewhere)
