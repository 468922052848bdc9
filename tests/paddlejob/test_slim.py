"""What the cache keeps of a pod is enough for every decision, and what many pods share it has once."""

from datetime import timedelta
from typing import Any

import make
import pytest
from make import NOW

from paddle_operator.api.meta import Manifest
from paddle_operator.api.names import ANNOTATION_NUDGE, LABEL_ATTEMPT
from paddle_operator.paddlejob.reconcile import reconcile
from paddle_operator.paddlejob.slim import slim


def condition(kind: str, status: str, **said: str) -> Manifest:
    return {"type": kind, "status": status, **said}


HOLDS = [condition(kind, "True") for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")]
NO_ROOM = condition("PodScheduled", "False", reason="Unschedulable", message="0/3 nodes are available")
OOM = {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": NOW.isoformat()}}
IN_PLACE = {"name": "paddle", "restartCount": 3, "state": {"running": {}}, "lastState": OOM}
STATES: dict[str, dict[str, Any]] = {
    "waits for room": {"ip": "", "conditions": [NO_ROOM]},
    "waits for its image": {"waiting": "ImagePullBackOff", "startTime": NOW.isoformat()},
    "waits for the map, nudged": {
        "waiting": "CreateContainerConfigError",
        "metadata": {"annotations": {ANNOTATION_NUDGE: f"1 {(NOW - make.seconds(5)).isoformat()}", "a": "b"}},
    },
    "runs": {"phase": "Running", "conditions": HOLDS},
    "is not ready any more": {"phase": "Running", "conditions": [condition("Ready", "False")]},
    "is to be ended": {
        "phase": "Failed",
        "conditions": [*HOLDS, condition("DisruptionTarget", "True", reason="EvictionByEvictionAPI")],
    },
    "is being deleted": {"metadata": {"deletionTimestamp": NOW.isoformat(), "finalizers": ["a.org/b"]}},
    "ended badly": {"phase": "Failed", "reason": "Evicted"},
    "was killed": {"phase": "Failed", "containerStatuses": [{"name": "paddle", "state": OOM}]},
    "ended well": {"phase": "Succeeded"},
    "is restarted in place": {"phase": "Running", "containerStatuses": [IN_PLACE]},
    "has a side-car that fails first": {
        "phase": "Pending",
        "initContainerStatuses": [{"name": "first", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
    },
    "has addresses of both kinds": {"ip": "fd00::1", "podIPs": [{"ip": "fd00::1"}, {"ip": "198.18.0.9"}]},
    "has no labels": {"metadata": {"labels": {}}},
    "is of a later try": {"metadata": {"labels": {LABEL_ATTEMPT: "2"}}},
}


@pytest.mark.parametrize("intranet", ["PodIP", "Service", "Host"])
@pytest.mark.parametrize("others", ["Running", "Succeeded", "Pending"])
@pytest.mark.parametrize("phase", ["", "Starting", "Running"])
@pytest.mark.parametrize("state", STATES)
def test_a_decision_is_the_same_as_on_the_whole_pod(
    state: str, phase: str, others: str, intranet: str
) -> None:
    status = {"phase": phase, "hostPort": 35000}
    job = make.paddlejob(workers=3, status=status, intranet=intranet, runPolicy={"backoffLimit": 1})
    pods = [make.pod(job, 0, **STATES[state]), make.pod(job, 1, others), make.pod(job, 2, others)]
    cached = [*map(slim, pods)]
    for seconds in (0, 60):
        now = NOW + timedelta(seconds=seconds)
        for config_map in (None, make.config_map(job)):
            whole = reconcile(make.observed(job, *pods, now=now, config_map=config_map))
            assert reconcile(make.observed(job, *cached, now=now, config_map=config_map)) == whole


def test_the_end_of_a_log_is_not_shared_and_goes_with_its_pod() -> None:
    end = {"name": "paddle", "state": {"terminated": {"exitCode": 1, "message": "the end of a log"}}}
    job = make.paddlejob()
    first, second = (slim(make.pod(job, rank, "Failed", containerStatuses=[end])) for rank in (0, 1))
    assert first.status.container_statuses == second.status.container_statuses
    assert first.status.container_statuses is not second.status.container_statuses


def test_what_pods_of_a_job_say_alike_is_there_once() -> None:
    job = make.paddlejob()
    first, second = (slim(make.pod(job, rank, "Running")) for rank in (0, 1))
    assert first.metadata.owner_references is second.metadata.owner_references
    assert first.metadata.labels is second.metadata.labels
    assert first.spec is second.spec
    assert first.status.container_statuses is second.status.container_statuses


def test_of_what_those_who_ended_well_say_only_a_report_is_kept() -> None:
    job = make.paddlejob()
    report = '{"paddlepaddle.org/report": 1, "nodes": 2, "processes": [{"rank": 0, "step": 7}]}'
    ends = [{"terminated": {"exitCode": 0, "message": said}} for said in ("nice weather", report)]
    statuses = [[{"name": "paddle", "state": end}] for end in ends]
    pods = [slim(make.pod(job, 0, "Succeeded", containerStatuses=one)) for one in statuses]
    found = [pod.status.container_statuses[0].state.terminated for pod in pods]
    assert [end.message if end else None for end in found] == [
        "",
        '{"paddlepaddle.org/report":1,"nodes":2,"processes":[{"rank":0}]}',
    ]
