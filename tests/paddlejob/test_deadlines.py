"""Deadlines and the time to live: from stored times, with a wake-up for each."""

from typing import Any

import make
import pytest
from make import NOW, seconds
from plans import actions, changes

from paddle_operator.api.meta import Manifest
from paddle_operator.api.names import LABEL_ATTEMPT
from paddle_operator.api.paddlejob import PaddleJob, Role
from paddle_operator.paddlejob.deadlines import late_for_a_deadline
from paddle_operator.paddlejob.observed import Observed
from paddle_operator.paddlejob.reconcile import reconcile
from paddle_operator.plan import Create, Delete, Plan

RESTARTING = {"type": "Restarting", "status": "True", "reason": "PodFailed"}


def job(status: Manifest, **policy: Any) -> PaddleJob:
    born = {"creationTimestamp": NOW.isoformat()}
    return make.paddlejob(status=status, metadata=born, runPolicy=policy)


def at(after: float, job: PaddleJob, *phases: str, **fields: Any) -> Observed:
    pods = [make.pod(job, rank, phase) for rank, phase in enumerate(phases)]
    return make.observed(job, *pods, config_map=make.config_map(job), now=NOW + seconds(after), **fields)


def stamp(after: float) -> str:
    return (NOW + seconds(after)).isoformat()


RUNNING = {"phase": "Running", "startTime": stamp(0)}


@pytest.mark.parametrize(
    ("status", "after", "phase"),
    [
        (RUNNING, 60, None),
        (RUNNING, 61, "Failed"),
        ({**RUNNING, "resumeTime": stamp(30)}, 90, None),
        ({**RUNNING, "resumeTime": stamp(30)}, 91, "Failed"),
        ({**RUNNING, "attempt": 0, "attemptTime": stamp(30)}, 61, "Failed"),
        ({"phase": "Starting"}, 3600, "Running"),
    ],
    ids=["in time", "too long", "since it was resumed", "also then", "restarts included", "it has not begun"],
)
def test_a_job_that_does_not_end_in_time_has_failed(
    status: Manifest, after: float, phase: str | None
) -> None:
    seen = at(after, job(status, activeDeadlineSeconds=60), "Running", "Running")
    told = changes(reconcile(seen))
    assert told.get("phase") == phase
    if phase == "Failed":
        assert told["failure"]["reason"] == "ActiveDeadlineExceeded"
        assert not {"failures", "restarts"} & {*told}


def test_a_job_that_has_ended_in_time_has_not_failed_even_if_that_is_seen_late() -> None:
    seen = at(3600, job(RUNNING, activeDeadlineSeconds=60), "Succeeded", "Succeeded")
    assert changes(reconcile(seen))["phase"] == "Completed"


@pytest.mark.parametrize(
    ("status", "after", "phases", "phase"),
    [
        ({"phase": "Pending"}, 60, ("Running", "Pending"), "Starting"),
        ({"phase": "Starting"}, 61, ("Running", "Pending"), "Failed"),
        ({"phase": "Starting"}, 61, ("Running", "Running"), "Running"),
        (RUNNING, 61, ("Running", "Pending"), None),
        ({"phase": "Starting", "attemptTime": stamp(30)}, 90, ("Running", "Pending"), None),
    ],
    ids=["in time", "too late", "just now", "it has run", "since its last try"],
)
def test_a_job_that_does_not_start_in_time_has_failed(
    status: Manifest, after: float, phases: tuple[str, ...], phase: str | None
) -> None:
    told = changes(reconcile(at(after, job(status, startDeadlineSeconds=60), *phases)))
    assert told.get("phase") == phase


def test_the_pause_before_a_try_is_not_held_against_it() -> None:
    status = {
        "phase": "Restarting",
        "attempt": 9,
        "restarts": 9,
        "attemptTime": stamp(0),
        "conditions": [RESTARTING],
    }
    late = job(status, startDeadlineSeconds=60, backoffLimit=10)
    assert changes(reconcile(make.observed(late, now=NOW + seconds(256)))) == {}
    assert changes(reconcile(make.observed(late, now=NOW + seconds(317))))["phase"] == "Failed"


def test_who_does_not_start_is_named_with_what_it_waits_for() -> None:
    late = job({"phase": "Starting"}, startDeadlineSeconds=60)
    waiting = {"reason": "ErrImagePull", "message": "not found"}
    status = [{"name": "paddle", "state": {"waiting": waiting}}]
    pods = make.pod(late, 0, "Running"), make.pod(late, 1, containerStatuses=status)
    seen = make.observed(late, *pods, config_map=make.config_map(late), now=NOW + seconds(61))
    failure = changes(reconcile(seen))["failure"]
    assert (failure["pod"], failure["class"]) == ("resnet-worker-1", "image")
    assert "demo-resnet:v1" in failure["message"]


@pytest.mark.parametrize(
    ("policy", "status", "wake"),
    [
        ({"activeDeadlineSeconds": 60}, RUNNING, 61),
        ({"startDeadlineSeconds": 90}, {"phase": "Starting"}, 91),
        ({"activeDeadlineSeconds": 60, "startDeadlineSeconds": 90}, RUNNING, 61),
    ],
)
def test_a_deadline_wakes_us_also_if_nothing_else_happens(
    policy: Manifest, status: Manifest, wake: float
) -> None:
    plan = reconcile(at(10, job(status, **policy), "Running", "Pending"))
    assert plan.wake_at == plan.deadline_at == NOW + seconds(wake)


def test_a_deadline_wakes_us_also_while_something_of_an_older_try_does_not_go() -> None:
    late = job({**RUNNING, "attempt": 1}, activeDeadlineSeconds=60)
    left = make.pod(late, 0, "Running", metadata={"labels": {LABEL_ATTEMPT: "0"}})
    assert reconcile(make.observed(late, left)).deadline_at == NOW + seconds(61)


def test_a_deadline_that_is_past_wakes_nobody_while_something_of_an_older_try_is_left() -> None:
    """Its pods have all ended well; but one that was made too late for the try before does not go."""
    held = {"labels": {LABEL_ATTEMPT: "0"}, "deletionTimestamp": NOW.isoformat(), "finalizers": ["a.org/b"]}
    late = job({**RUNNING, "attempt": 1, "worker": {"succeededRanks": "0-1"}}, activeDeadlineSeconds=60)
    left = make.pod(late, 0, "Running", metadata=held)
    plan = reconcile(make.observed(late, left, now=NOW + seconds(100)))
    assert plan.wake_at is None or plan.wake_at > NOW + seconds(100)


@pytest.mark.parametrize(
    ("policy", "status", "phases", "asked"),
    [
        ({"activeDeadlineSeconds": 60}, RUNNING, ("Succeeded", "Running"), ("resnet-worker-1",)),
        ({"startDeadlineSeconds": 60}, {"phase": "Starting"}, ("Running", "Pending"), ("resnet-worker-1",)),
        ({"startDeadlineSeconds": 61}, {"phase": "Starting"}, ("Running", "Pending"), ()),
    ],
)
def test_who_may_have_been_quicker_than_our_watch_is_asked_first(
    policy: Manifest, status: Manifest, phases: tuple[str, ...], asked: tuple[str, ...]
) -> None:
    assert late_for_a_deadline(at(61, job(status, **policy), *phases)).pods == asked


@pytest.mark.parametrize(
    ("policy", "status", "asked"),
    [
        ({"activeDeadlineSeconds": 60}, RUNNING, ("resnet-worker-0",)),
        ({"startDeadlineSeconds": 60}, {"phase": "Starting"}, ("resnet-ps-0", "resnet-worker-0")),
    ],
)
def test_of_servers_it_matters_that_they_have_started_and_not_that_they_end(
    policy: Manifest, status: Manifest, asked: tuple[str, ...]
) -> None:
    late = make.paddlejob(workers=1, ps=make.role(1), status=status, runPolicy=policy)
    phase = "Running" if status is RUNNING else "Pending"
    pods = make.pod(late, 0, phase, role=Role.PS), make.pod(late, 0, phase)
    seen = make.observed(late, *pods, config_map=make.config_map(late), now=NOW + seconds(61))
    assert late_for_a_deadline(seen).pods == asked


def ended(after: float, ttl: int | None) -> Plan:
    policy = {} if ttl is None else {"ttlSecondsAfterFinished": ttl}
    done = job({"phase": "Completed", "startTime": stamp(0), "completionTime": stamp(0)}, **policy)
    return reconcile(make.observed(done, now=NOW + seconds(after)))


def test_a_job_that_has_ended_is_deleted_when_its_time_has_come_and_only_as_it_was_seen() -> None:
    assert actions(ended(60, ttl=60), Delete) == []
    assert ended(60, ttl=60).wake_at == NOW + seconds(61)
    (delete,) = actions(ended(61, ttl=60), Delete)
    assert (delete.target.resource.plural, delete.as_seen) == ("paddlejobs", True)
    assert len(actions(ended(0, ttl=0), Delete)) == 1


def test_a_job_that_asks_for_nothing_of_that_kind_stays() -> None:
    assert ended(1e9, ttl=None) == Plan()
    assert actions(ended(1e9, ttl=None), Create) == []


def test_an_init_container_that_still_runs_is_named() -> None:
    late = job({"phase": "Pending"}, startDeadlineSeconds=60)
    first = [{"name": "fetch", "state": {"running": {}}}]
    pods = [make.pod(late, rank, initContainerStatuses=first, containerStatuses=[]) for rank in (0, 1)]
    failure = changes(reconcile(make.observed(late, *pods, now=NOW + seconds(61))))["failure"]
    assert "worker 0 (pod resnet-worker-0): its init container fetch still runs" in failure["message"]
