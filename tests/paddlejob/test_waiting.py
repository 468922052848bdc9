"""Why a job does not run yet, in words."""

from typing import Any

import make
import pytest
from make import NOW, seconds
from plans import actions, changes

from paddle_operator.api.core import Pod
from paddle_operator.api.meta import Manifest
from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.paddlejob.observed import Observed
from paddle_operator.paddlejob.reconcile import reconcile
from paddle_operator.paddlejob.waiting import mounted_config_maps
from paddle_operator.plan import Emit

SCHEDULER = '0/4 nodes are available: 4 Insufficient nvidia.com/gpu. persistentvolumeclaim "data" not found'


def waiting(job: PaddleJob, rank: int, reason: str, message: str = "", **status: Any) -> Pod:
    state = {"waiting": {"reason": reason, "message": message}}
    return make.pod(job, rank, containerStatuses=[{"name": "paddle", "state": state}], **status)


def unscheduled(job: PaddleJob, rank: int) -> Pod:
    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": SCHEDULER}
    return make.pod(job, rank, ip="", conditions=[told], containerStatuses=[])


def running_condition(seen: Observed) -> Manifest:
    found = changes(reconcile(seen)).get("conditions", ())
    return next((one for one in found if one["type"] == "Running"), {})


def world(job: PaddleJob, *pods: Pod, **fields: Any) -> Observed:
    return make.observed(job, *pods, config_map=make.config_map(job), **fields)


def test_the_schedulers_own_words_are_passed_on_with_an_event() -> None:
    job = make.paddlejob()
    seen = world(job, make.pod(job, 0, "Running"), unscheduled(job, 1))
    told = running_condition(seen)
    assert (told["status"], told["reason"]) == ("False", "Unschedulable")
    assert SCHEDULER in told["message"]
    assert "worker 1 (pod resnet-worker-1)" in told["message"]
    events = [event for event in actions(reconcile(seen), Emit) if event.reason == "Unschedulable"]
    assert [event.warning for event in events] == [True]


@pytest.mark.parametrize(
    ("reason", "message", "said", "text"),
    [
        ("ErrImagePull", "manifest unknown", "ImagePullBackOff", "demo-resnet:v1: manifest unknown"),
        (
            "ImagePullBackOff",
            'Back-off pulling image "x": ErrImagePull: manifest unknown',
            "ImagePullBackOff",
            "demo-resnet:v1: manifest unknown",
        ),
        (
            "CreateContainerConfigError",
            'secret "key" not found',
            "CreateContainerConfigError",
            'secret "key"',
        ),
        ("CreateContainerConfigError", 'configmap "resnet" not found', None, ""),
        ("ContainerCreating", "", None, ""),
    ],
)
def test_what_a_kubelet_says_is_explained_and_our_own_list_of_peers_is_no_news(
    reason: str, message: str, said: str | None, text: str
) -> None:
    job = make.paddlejob()
    told = running_condition(world(job, waiting(job, 0, reason, message), waiting(job, 1, reason, message)))
    assert told.get("reason") == said
    assert text in told.get("message", "")


def test_of_several_the_one_that_tells_most_is_named_and_the_others_are_counted() -> None:
    job = make.paddlejob(workers=3)
    pods = unscheduled(job, 0), unscheduled(job, 1), waiting(job, 2, "ErrImagePull", "not found")
    told = running_condition(world(job, *pods))
    assert told["reason"] == "ImagePullBackOff"
    assert told["message"].startswith("worker 2 (pod resnet-worker-2) cannot get the image ")
    assert "(3 pods wait)" in told["message"]


def slow(job: PaddleJob, rank: int) -> Pod:
    return waiting(job, rank, "ContainerCreating", startTime=NOW.isoformat())


def test_a_pod_that_its_node_cannot_start_is_wondered_about_after_a_minute() -> None:
    job = make.paddlejob(workers=1)
    early = world(job, slow(job, 0), now=NOW + seconds(59))
    assert running_condition(early) == {}
    assert reconcile(early).wake_at is not None
    late = world(job, slow(job, 0), now=NOW + seconds(60))
    assert running_condition(late)["reason"] == "SlowStart"


def test_a_config_map_that_it_mounts_and_nobody_has_made_is_named() -> None:
    volumes = [
        {"name": "a", "configMap": {"name": "settings"}},
        {"name": "b", "configMap": {"name": "perhaps", "optional": True}},
        {"name": "c", "emptyDir": {}},
    ]
    job = make.paddlejob(workers=1, pod=make.template(make.container(), volumes=volumes))
    assert mounted_config_maps(make.observed(job)) == ("settings",)
    seen = world(job, slow(job, 0), now=NOW + seconds(60), missing_config_maps=("settings",))
    told = running_condition(seen)
    assert told["reason"] == "ConfigMapMissing"
    assert "settings" in told["message"]


def test_words_that_no_longer_hold_are_taken_back_without_an_event() -> None:
    old = {"type": "Running", "status": "False", "reason": "Unschedulable", "message": SCHEDULER}
    job = make.paddlejob(status={"phase": "Starting", "conditions": [old]})
    seen = world(job, make.pod(job, 0, "Running"), make.pod(job, 1, waiting="ContainerCreating"))
    assert running_condition(seen)["reason"] == "PodsStart"
    assert "PodsStart" not in [event.reason for event in actions(reconcile(seen), Emit)]


def test_a_job_that_runs_is_not_said_to_wait() -> None:
    job = make.paddlejob(status={"phase": "Running", "startTime": NOW.isoformat()})
    seen = world(job, make.pod(job, 0, "Running"), make.pod(job, 1, "Running"))
    assert running_condition(seen)["status"] == "True"
