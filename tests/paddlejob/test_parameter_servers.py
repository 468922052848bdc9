"""PS mode: the workers decide, and servers serve until they are stopped."""

from dataclasses import replace
from typing import Any

import make
import pytest
from make import NOW, seconds
from plans import actions, changes, shape

from paddle_operator.api.core import Pod
from paddle_operator.api.paddlejob import PaddleJob, Role
from paddle_operator.paddlejob.failures import unconfirmed_workers
from paddle_operator.paddlejob.hints import (
    NO_SERVERS_IN_PADDLE,
    PERHAPS_NO_SERVERS,
    PROTOBUF_TOO_NEW,
    SERVERS_NOT_AWAITED,
)
from paddle_operator.paddlejob.observed import Observed
from paddle_operator.paddlejob.reconcile import reconcile
from paddle_operator.plan import Create, Delete, Patch


def ps_job(**fields: Any) -> PaddleJob:
    return make.paddlejob(ps=make.role(2), **fields)


def world(
    job: PaddleJob, servers: tuple[str, str], workers: tuple[str, str], after: float = 0, **states: Any
) -> Observed:
    pods = [make.pod(job, rank, phase, role=Role.PS, **states) for rank, phase in enumerate(servers)]
    pods += [make.pod(job, rank, phase) for rank, phase in enumerate(workers)]
    return make.observed(job, *pods, config_map=make.config_map(job), now=NOW + seconds(after))


def condition(seen: Observed, kind: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = changes(reconcile(seen))["conditions"]
    return next(one for one in found if one["type"] == kind)


def test_servers_are_created_before_workers_and_nobody_waits_for_them() -> None:
    assert shape(reconcile(make.observed(ps_job())))[:2] == ["2 create pods", "2 create pods"]
    names = [one.manifest["metadata"]["name"] for one in actions(reconcile(make.observed(ps_job())), Create)]
    assert names[:2] == ["resnet-ps-0", "resnet-ps-1"]


def test_the_job_is_completed_when_its_workers_are_and_then_the_servers_are_stopped() -> None:
    kept = world(ps_job(cleanPodPolicy="Never"), ("Running", "Running"), ("Succeeded", "Succeeded"))
    assert changes(reconcile(kept))["phase"] == "Completed"
    assert condition(kept, "Completed")["reason"] == "AllWorkersSucceeded"
    stopped = [one.target.key.name for one in actions(reconcile(kept), Patch)]
    assert stopped == ["resnet-ps-0", "resnet-ps-1"]
    cleaned = world(ps_job(), ("Running", "Running"), ("Succeeded", "Succeeded"))
    assert len(actions(reconcile(cleaned), Delete)) == 4


@pytest.mark.parametrize("servers", [("Failed", "Running"), ("Succeeded", "Succeeded")])
def test_how_servers_end_does_not_matter_once_the_workers_have_ended_well(servers: tuple[str, str]) -> None:
    seen = world(ps_job(), servers, ("Succeeded", "Succeeded"), after=60)
    assert changes(reconcile(seen))["phase"] == "Completed"


def test_a_server_that_fails_fails_the_job() -> None:
    seen = world(ps_job(), ("Running", "Failed"), ("Running", "Running"), after=5)
    assert changes(reconcile(seen))["phase"] == "Failed"
    assert changes(reconcile(seen))["failure"]["pod"] == "resnet-ps-1"


def test_a_server_that_ends_well_fails_the_job_unless_the_workers_follow_at_once() -> None:
    early = world(ps_job(), ("Succeeded", "Running"), ("Running", "Running"), after=4)
    assert changes(reconcile(early)).get("phase") != "Failed"
    assert reconcile(early).wake_at == NOW + seconds(5)
    late = world(ps_job(), ("Succeeded", "Running"), ("Running", "Running"), after=5)
    assert changes(reconcile(late))["phase"] == "Failed"
    assert condition(late, "Failed")["reason"] == "ServerEnded"
    failure = changes(reconcile(late))["failure"]
    assert (failure["pod"], failure["exitCode"], failure["reason"]) == ("resnet-ps-0", 0, "ServerEnded")


@pytest.mark.parametrize(("ahead", "failed"), [(0, False), (4, False), (3600, True)])
def test_a_clock_that_is_a_little_ahead_does_not_end_the_patience_and_nonsense_is_not_waited_for(
    ahead: float, *, failed: bool
) -> None:
    seen = world(ps_job(), ("Succeeded", "Running"), ("Running", "Running"), after=-ahead)
    assert (changes(reconcile(seen)).get("phase") == "Failed") == failed


def test_a_server_that_ended_well_and_whose_pod_is_gone_fails_the_job_at_once() -> None:
    job = ps_job(status={"phase": "Running", "ps": {"succeededRanks": "1"}})
    pods = [make.pod(job, 0, "Running", role=Role.PS), *(make.pod(job, rank, "Running") for rank in (0, 1))]
    plan = reconcile(make.observed(job, *pods, config_map=make.config_map(job)))
    assert changes(plan)["failure"]["reason"] == "ServerEnded"


@pytest.mark.parametrize("code", [1, 134])
def test_a_server_that_ended_well_is_blamed_for_the_worker_that_failed_after_it(code: int) -> None:
    job = ps_job()
    seen = world(job, ("Succeeded", "Running"), ("Running", "Running"), after=2)
    worker = ended_with(job, "", code, after=1)
    failure = changes(reconcile(replace(seen, pods=(*seen.pods[:2], worker, seen.pods[3]))))["failure"]
    assert (failure["pod"], failure["reason"]) == ("resnet-ps-0", "ServerEnded")


def test_a_server_that_was_restarted_in_place_has_lost_what_it_knew() -> None:
    job = ps_job()
    again = {"name": "paddle", "ready": True, "restartCount": 1, "state": {"running": {}}}
    seen = world(job, ("Running", "Running"), ("Running", "Running"))
    restarted = make.pod(job, 1, "Running", role=Role.PS, containerStatuses=[again])
    seen = replace(seen, pods=(seen.pods[0], restarted, *seen.pods[2:]))
    assert changes(reconcile(seen))["failure"]["pod"] == "resnet-ps-1"
    assert condition(seen, "Failed")["reason"] == "ServerEnded"


def ended_with(job: PaddleJob, message: str, code: int = 1, after: float = 0) -> Pod:
    ended = (NOW + seconds(after)).isoformat()
    end = {"exitCode": code, "reason": "Error", "message": message, "finishedAt": ended}
    return make.pod(job, 0, "Failed", containerStatuses=[{"name": "paddle", "state": {"terminated": end}}])


@pytest.mark.parametrize(
    ("said", "code", "meaning"),
    [
        ('ValueError: Operator "send" has not been registered.', 1, NO_SERVERS_IN_PADDLE),
        ('ValueError: Operator "listen_and_serv" has not been registered.', 1, NO_SERVERS_IN_PADDLE),
        (
            "ImportError: cannot import name 'CommContext' from 'paddle.base.libpaddle'",
            1,
            NO_SERVERS_IN_PADDLE,
        ),
        ("module 'paddle.base.libpaddle' has no attribute 'DistFleetWrapper'", 1, NO_SERVERS_IN_PADDLE),
        ("a_sync_configs is not a attribute of DistributedStrategy", 1, PROTOBUF_TOO_NEW),
        ("InvalidArgumentError: The ret status must be 0 when barrier with table", 134, SERVERS_NOT_AWAITED),
        ("push dense param failed", 1, SERVERS_NOT_AWAITED),
        ("", 1, PERHAPS_NO_SERVERS),
        ("", 137, ""),
        ("ZeroDivisionError: password is hunter2", 1, ""),
    ],
)
def test_what_paddle_says_of_its_servers_is_explained_and_not_repeated(
    said: str, code: int, meaning: str
) -> None:
    job = ps_job()
    pods = [make.pod(job, rank, "Running", role=Role.PS) for rank in (0, 1)]
    others = (*pods, make.pod(job, 1, "Failed", exit_code=code))
    now = NOW + seconds(60)  # when nobody waits any more for another cause
    seen = make.observed(job, ended_with(job, said, code), *others, config_map=make.config_map(job), now=now)
    message = condition(seen, "Failed")["message"]
    assert f"exited with {code} (Error); " in message
    assert message.endswith(meaning)
    assert "hunter2" not in message


@pytest.mark.parametrize(
    ("servers", "workers", "after", "asked"),
    [
        (("Succeeded", "Running"), ("Succeeded", "Running"), 10, ("resnet-worker-1",)),
        (("Succeeded", "Running"), ("Succeeded", "Running"), 4, ()),
        (("Failed", "Running"), ("Succeeded", "Running"), 5, ("resnet-worker-1",)),
        (("Running", "Running"), ("Succeeded", "Failed"), 0, ()),
        (("Succeeded", "Running"), ("Succeeded", "Succeeded"), 10, ()),
        (("Running", "Running"), ("Running", "Running"), 10, ()),
    ],
)
def test_workers_are_asked_for_by_name_before_the_end_of_a_server_is_held_against_the_job(
    servers: tuple[str, str], workers: tuple[str, str], after: float, asked: tuple[str, ...]
) -> None:
    assert unconfirmed_workers(world(ps_job(), servers, workers, after)).pods == asked


def test_only_the_end_of_the_server_itself_counts_and_not_that_of_a_side_car() -> None:
    job = ps_job()
    long_ago = {"exitCode": 0, "finishedAt": (NOW - seconds(3600)).isoformat()}
    sidecar = {"name": "sync", "state": {"terminated": long_ago}}
    server = {"name": "paddle", "state": {"terminated": {"exitCode": 0, "finishedAt": NOW.isoformat()}}}
    seen = world(job, ("Succeeded", "Running"), ("Running", "Running"), after=1)
    ended = make.pod(job, 0, "Succeeded", role=Role.PS, containerStatuses=[sidecar, server])
    seen = replace(seen, pods=(ended, *seen.pods[1:]))
    assert changes(reconcile(seen)).get("phase") != "Failed"
    assert reconcile(seen).wake_at == NOW + seconds(5)
