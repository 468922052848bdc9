"""Pods that should be gone and are not: said, waited for, and deleted by force where the job asks for it."""

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
from paddle_operator.plan import Delete

BEFORE = make.paddlejob(status={"phase": "Running", "startTime": NOW.isoformat()})


def restarting(**policy: Any) -> PaddleJob:
    told = {"phase": "Restarting", "attempt": 1, "restarts": 1, "attemptTime": NOW.isoformat()}
    told |= {"mode": "Collective", "observedGeneration": 1}
    condition = {"type": "Restarting", "status": "True", "reason": "NodeLost"}
    return make.paddlejob(status={**told, "conditions": [condition]}, runPolicy=policy)


def leaving(job: PaddleJob, rank: int = 1, **metadata: Any) -> Pod:
    """Its grace period is over now."""
    return make.pod(job, rank, "Running", metadata={"deletionTimestamp": NOW.isoformat(), **metadata})


def stuck(after: float, **policy: Any) -> Observed:
    return make.observed(restarting(**policy), leaving(BEFORE), now=NOW + seconds(after))


def created_in(changed: Manifest) -> Manifest:
    return next(one for one in changed["conditions"] if one["type"] == "Created")


def test_a_pod_that_does_not_go_is_said_to_be_stuck_with_its_node_and_the_remedy() -> None:
    assert changes(reconcile(stuck(29))) == {}
    assert reconcile(stuck(29)).wake_at == NOW + seconds(30)
    told = created_in(changes(reconcile(stuck(30))))
    assert told["reason"] == "PodStuck"
    assert "node node-1 has not confirmed" in told["message"]
    assert "runPolicy.forceDeleteAfterSeconds" in told["message"]


def test_that_a_pod_was_stuck_is_taken_back_when_it_is_gone() -> None:
    stuck_once = {"type": "Created", "status": "False", "reason": "PodStuck", "message": "it is not gone"}
    status = {"phase": "Suspended", "attempt": 1, "conditions": [stuck_once]}
    suspended = make.paddlejob(status=status, runPolicy={"suspend": True})
    assert created_in(changes(reconcile(make.observed(suspended))))["reason"] == "Suspended"


def test_a_list_of_peers_that_does_not_go_is_said_too() -> None:
    gone_since = {"deletionTimestamp": NOW.isoformat(), "finalizers": ["example.com/keep"]}
    old = make.config_map(BEFORE, **gone_since)
    seen = make.observed(restarting(), config_map=old, now=NOW + seconds(30))
    assert "configmap resnet should be gone and is not" in created_in(changes(reconcile(seen)))["message"]


def test_a_pod_that_never_began_is_lost_with_its_node_as_well() -> None:
    job = make.paddlejob()
    pods = make.pod(job, 0), make.pod(job, 1, metadata={"deletionTimestamp": NOW.isoformat()})
    told = changes(reconcile(make.observed(job, *pods, now=NOW + seconds(30))))
    assert (told["phase"], told["failure"]["reason"]) == ("Restarting", "NodeLost")


def test_a_finalizer_is_named_as_what_holds_a_pod() -> None:
    held = leaving(BEFORE, finalizers=["example.com/keep"])
    seen = make.observed(restarting(), held, now=NOW + seconds(30))
    assert "its finalizer example.com/keep" in created_in(changes(reconcile(seen)))["message"]


@pytest.mark.parametrize(("after", "forced"), [(59, []), (60, ["resnet-worker-1"])])
def test_it_is_deleted_by_force_when_the_job_asks_for_it(after: float, forced: list[str]) -> None:
    plan = reconcile(stuck(after, forceDeleteAfterSeconds=60))
    assert [one.target.key.name for one in actions(plan, Delete) if one.force] == forced


def test_against_a_finalizer_no_force_is_used() -> None:
    held = leaving(BEFORE, finalizers=["example.com/keep"])
    seen = make.observed(restarting(forceDeleteAfterSeconds=0), held, now=NOW + seconds(90))
    assert actions(reconcile(seen), Delete) == []


def test_a_pod_on_its_way_out_within_its_time_is_not_forced() -> None:
    ahead = (NOW + seconds(30)).isoformat()
    pod = make.pod(BEFORE, 1, "Running", metadata={"deletionTimestamp": ahead})
    plan = reconcile(make.observed(restarting(forceDeleteAfterSeconds=0), pod))
    assert actions(plan, Delete) == []
    assert plan.wake_at == NOW + seconds(30)


def test_a_pod_of_a_job_that_runs_is_lost_with_its_node_when_it_does_not_go() -> None:
    pods = make.pod(BEFORE, 0, "Running"), leaving(BEFORE)
    config_map = make.config_map(BEFORE)
    early = reconcile(make.observed(BEFORE, *pods, config_map=config_map, now=NOW + seconds(29)))
    assert changes(early).get("phase") is None
    assert early.wake_at == NOW + seconds(30)
    told = changes(reconcile(make.observed(BEFORE, *pods, config_map=config_map, now=NOW + seconds(30))))
    assert (told["phase"], told["disruptions"]) == ("Restarting", 1)
    assert (told["failure"]["reason"], told["failure"]["class"]) == ("NodeLost", "node")


def test_pods_of_a_job_that_has_ended_are_forced_too() -> None:
    ended = make.paddlejob(
        status={"phase": "Failed"}, cleanPodPolicy="Always", runPolicy={"forceDeleteAfterSeconds": 60}
    )
    plan = reconcile(make.observed(ended, leaving(ended), now=NOW + seconds(60)))
    assert [one.force for one in actions(plan, Delete)] == [True]


def test_victims_wait_for_a_peer_that_seems_to_run_and_its_node_is_blamed_once_it_is_known_to_be_silent() -> (
    None
):
    job = BEFORE
    victim = make.pod(job, 0, "Failed", exit_code=250)
    config_map = make.config_map(job)
    waits = make.observed(
        job, victim, make.pod(job, 1, "Running"), config_map=config_map, now=NOW + seconds(20)
    )
    assert changes(reconcile(waits)).get("phase") is None
    silent = make.pod(job, 1, "Running", conditions=[{"type": "Ready", "status": "False"}])
    seen = make.observed(job, victim, silent, config_map=config_map, now=NOW + seconds(20))
    told = changes(reconcile(seen))
    assert (told["phase"], told["failure"]["pod"], told["failure"]["reason"]) == (
        "Restarting",
        "resnet-worker-1",
        "NodeLost",
    )
    assert told["failure"]["victims"] == "worker 0"


def test_a_list_of_peers_that_no_watch_shows_is_looked_for_again_after_its_deletion() -> None:
    """The Go operator's has no label of ours: nothing tells that it goes, and the job would wait for ever."""
    unseen = make.config_map(BEFORE, labels={})
    plan = reconcile(make.observed(restarting(), config_map=unseen, now=NOW + seconds(30)))
    assert [one.target.key.name for one in actions(plan, Delete)] == ["resnet"]
    assert plan.wake_at == NOW + seconds(32)
    shown = reconcile(make.observed(restarting(), config_map=make.config_map(BEFORE), now=NOW + seconds(30)))
    assert shown.wake_at is None


def test_and_less_often_the_longer_somebody_holds_it() -> None:
    held = make.config_map(
        BEFORE, labels={}, deletionTimestamp=NOW.isoformat(), finalizers=["example.com/audit"]
    )
    plan = reconcile(make.observed(restarting(), config_map=held, now=NOW + seconds(400)))
    assert plan.wake_at == NOW + seconds(500)
