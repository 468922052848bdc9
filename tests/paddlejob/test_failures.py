"""How pods are judged, and whom to blame."""

from dataclasses import replace
from typing import Any

import make
import pytest
from make import NOW, seconds

from paddle_operator.api.core import Pod
from paddle_operator.api.paddlejob import Failure, PaddleJob
from paddle_operator.paddlejob.failures import find_failure
from paddle_operator.paddlejob.verdicts import Verdict, has_started, judge


def terminated(code: int, after: float = 0, reason: str = "Error") -> dict[str, Any]:
    return {
        "terminated": {"exitCode": code, "reason": reason, "finishedAt": (NOW + seconds(after)).isoformat()}
    }


def with_sidecar(training: dict[str, Any], restart_policy: str = "Never") -> Pod:
    pod = make.template(make.container(name="logger"), make.container(), restartPolicy=restart_policy)
    statuses = [
        {"name": "logger", "ready": True, "state": {"running": {}}},
        {"name": "paddle", "ready": False, "state": training},
    ]
    return make.pod(make.paddlejob(pod=pod), 0, "Running", containerStatuses=statuses)


@pytest.mark.parametrize(
    ("training", "policy", "expected"),
    [
        (terminated(0), "Never", Verdict.SUCCEEDED),
        (terminated(3), "Never", Verdict.FAILED),
        (terminated(3), "OnFailure", Verdict.STARTING),
        (terminated(0), "OnFailure", Verdict.SUCCEEDED),
        ({"waiting": {"reason": "ContainerCreating"}}, "Never", Verdict.STARTING),
    ],
)
def test_a_sidecar_that_runs_on_does_not_hide_the_end_of_training(
    training: dict[str, Any], policy: str, expected: Verdict
) -> None:
    assert judge(with_sidecar(training, policy), "paddle") is expected


def test_a_sidecar_that_runs_does_not_mean_that_training_has_begun() -> None:
    assert not has_started(with_sidecar({"waiting": {"reason": "CreateContainerConfigError"}}), "paddle")
    assert has_started(with_sidecar({"running": {}}), "paddle")


def failed(job: PaddleJob, rank: int, code: int, after: float = 0) -> Pod:
    state = terminated(code, after)
    return make.pod(job, rank, "Failed", containerStatuses=[{"name": "paddle", "state": state}])


@pytest.mark.parametrize(
    ("ends", "blamed"),
    [
        ({0: (1, 5.0), 1: (1, 2.0)}, 1),
        ({0: (1, 2.0), 1: (1, 2.0)}, 0),
        ({0: (250, 1.0), 1: (3, 2.0)}, 1),
        ({0: (134, 1.0), 2: (137, 1.0)}, 2),
        ({1: (250, 2.0), 2: (250, 1.0)}, 2),
    ],
    ids=str,
)
def test_causes_go_before_victims_then_the_earliest_then_the_lowest_rank(
    ends: dict[int, tuple[int, float]], blamed: int
) -> None:
    job = make.paddlejob(workers=3)
    pods = [
        failed(job, rank, *ends[rank]) if rank in ends else make.pod(job, rank, "Running")
        for rank in range(3)
    ]
    later = NOW + seconds(70)
    failure = find_failure(make.observed(job, *pods, config_map=make.config_map(job), now=later)).failure
    assert failure is not None
    assert failure.rank == blamed


@pytest.mark.parametrize(
    ("ends", "after", "blamed"),
    [
        ({0: 250}, 0, None),
        ({0: 250, 1: 134}, 59.9, None),
        ({0: 250}, 60, 0),
        ({0: 250}, -1, None),
        ({0: 250}, -3600, 0),
        ({0: 250, 1: 7}, 5, 1),
        ({0: 250, 1: 250, 2: 250}, 0, 0),
    ],
    ids=["a victim", "two", "long enough", "a clock ahead", "a wrong clock", "the cause", "nobody is left"],
)
def test_while_only_victims_have_ended_their_cause_is_waited_for(
    ends: dict[int, int], after: float, blamed: int | None
) -> None:
    job = make.paddlejob(workers=3)
    pods = [
        failed(job, rank, ends[rank]) if rank in ends else make.pod(job, rank, "Running") for rank in range(3)
    ]
    seen = make.observed(job, *pods, config_map=make.config_map(job))
    seen = replace(seen, now=NOW + seconds(after))
    failure = find_failure(seen).failure
    assert (failure.rank if failure is not None else None) == blamed
    assert find_failure(seen).open_until == (NOW + seconds(60) if blamed is None else None)


def test_the_reason_of_the_pod_goes_before_that_of_the_container() -> None:
    job = make.paddlejob(workers=1)
    evicted = make.pod(job, 0, "Failed", reason="Evicted", containerStatuses=[])
    failure = find_failure(make.observed(job, evicted, config_map=make.config_map(job))).failure
    assert failure is not None
    assert (failure.reason, failure.exit_code) == ("Evicted", None)
    assert failure.kind == "node"
    assert failure.message.startswith("worker 0 (pod resnet-worker-0 on node node-1) was evicted by its node")


def test_a_failure_reads_as_one_sentence() -> None:
    job = make.paddlejob(workers=1)
    failure = find_failure(make.observed(job, failed(job, 0, 3), config_map=make.config_map(job))).failure
    assert failure is not None
    who, how = "worker 0 (pod resnet-worker-0 on node node-1)", "container paddle exited with 3 (Error)"
    assert failure.message == f"{who} ended with an error of its own: {how}"
    assert failure.next_step == "look at the end of its log: kubectl logs resnet-worker-0 -c paddle"


def test_a_failed_init_container_is_named() -> None:
    job = make.paddlejob(workers=1)
    broken = [{"name": "fetch", "state": terminated(4)}]
    pod = make.pod(job, 0, "Failed", initContainerStatuses=broken, containerStatuses=[])
    failure = find_failure(make.observed(job, pod)).failure
    assert failure is not None
    assert (failure.container, failure.exit_code) == ("fetch", 4)


def test_the_training_container_is_that_of_the_template_whatever_was_put_before_it() -> None:
    job = make.paddlejob(workers=1, pod=make.template(make.container(name="trainer")))
    statuses = [
        {"name": "injected-proxy", "ready": True, "state": {"running": {}}},
        {"name": "trainer", "state": terminated(0)},
    ]
    pod = make.pod(job, 0, "Running", containerStatuses=statuses)
    assert make.observed(job, pod).verdicts == {"resnet-worker-0": Verdict.SUCCEEDED}


@pytest.mark.parametrize(
    ("reason", "expected"), [("", Verdict.SUCCEEDED), ("DeadlineExceeded", Verdict.FAILED)]
)
def test_a_sidecar_that_fails_after_training_ended_well_does_not_fail_the_worker(
    reason: str, expected: Verdict
) -> None:
    job = make.paddlejob(pod=make.template(make.container(), make.container(name="logger")))
    statuses = [{"name": "logger", "state": terminated(137)}, {"name": "paddle", "state": terminated(0)}]
    pod = make.pod(job, 0, "Failed", containerStatuses=statuses, reason=reason)
    assert judge(pod, "paddle") is expected


def test_a_recorded_success_holds_whatever_becomes_of_the_pod() -> None:
    job = make.paddlejob(status={"worker": {"succeededRanks": "0"}})
    seen = make.observed(job, make.pod(job, 0, "Failed"), make.pod(job, 1, "Running"))
    assert seen.verdicts["resnet-worker-0"] is Verdict.SUCCEEDED


def test_a_container_renamed_in_the_template_does_not_change_who_trains_in_a_live_pod() -> None:
    old = make.paddlejob(workers=1)
    job = make.paddlejob(workers=1, pod=make.template(make.container(name="renamed")))
    pod = make.pod(old, 0, "Running")
    assert make.observed(job, pod).verdicts == {"resnet-worker-0": Verdict.RUNNING}


def test_the_training_container_is_blamed_before_its_sidecars() -> None:
    job = make.paddlejob(workers=1, pod=make.template(make.container(name="logger"), make.container()))
    statuses = [{"name": "logger", "state": terminated(143)}, {"name": "paddle", "state": terminated(1)}]
    failure = find_failure(make.observed(job, make.pod(job, 0, "Failed", containerStatuses=statuses))).failure
    assert failure is not None
    assert (failure.container, failure.exit_code) == ("paddle", 1)


def test_a_pod_that_ends_because_it_is_deleted_is_lost_and_not_at_fault() -> None:
    job = make.paddlejob(workers=1)
    leaving = make.pod(job, 0, "Failed", exit_code=143, metadata={"deletionTimestamp": NOW.isoformat()})
    failure = find_failure(make.observed(job, leaving)).failure
    assert failure is not None
    assert failure.reason == "PodLost"


def found(job: PaddleJob, *pods: Pod, after: float = 0) -> Failure:
    seen = make.observed(job, *pods, config_map=make.config_map(job), now=NOW + seconds(after))
    failure = find_failure(seen).failure
    assert failure is not None
    return failure


def killed(job: PaddleJob, rank: int, code: int, reason: str, **status: Any) -> Pod:
    state = terminated(code, reason=reason)
    return make.pod(job, rank, "Failed", containerStatuses=[{"name": "paddle", "state": state}], **status)


@pytest.mark.parametrize("code", [137, 247])
def test_out_of_memory_is_named_with_its_limit_whatever_the_exit_code(code: int) -> None:
    pod = make.template(make.container(resources={"limits": {"memory": "200Mi"}}))
    job = make.paddlejob(workers=1, pod=pod)
    failure = found(job, killed(job, 0, code, "OOMKilled"))
    assert (failure.kind, failure.reason, failure.exit_code) == ("OOM", "OOMKilled", code)
    assert "limit, 200Mi," in failure.message


def test_a_cause_goes_before_what_followed_from_it_by_its_class_whenever_it_ended() -> None:
    job = make.paddlejob(workers=4)
    late = [{"name": "paddle", "state": terminated(247, 3, "OOMKilled")}]
    pods = [
        failed(job, 0, 1),
        failed(job, 1, 250, 1),
        make.pod(job, 2, "Failed", containerStatuses=late),
        failed(job, 3, 134, 2),
    ]
    failure = found(job, *pods)
    assert (failure.rank, failure.kind, failure.victims) == (2, "OOM", "worker 1,3")


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("PreemptionByScheduler", "preempted"),
        ("EvictionByEvictionAPI", "preempted"),
        ("DeletionByTaintManager", "node"),
        ("example.com/Rebalanced", "preempted"),
    ],
)
def test_what_was_done_to_a_pod_goes_before_what_its_process_did(reason: str, kind: str) -> None:
    job = make.paddlejob(workers=1)
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason}
    assert found(job, killed(job, 0, 137, "Error", conditions=[condition])).kind == kind


def test_a_lost_pod_is_blamed_before_those_who_failed_because_of_it() -> None:
    job = make.paddlejob(workers=3, status={"phase": "Running", "startTime": NOW.isoformat()})
    failure = found(job, failed(job, 0, 250), failed(job, 2, 1))
    assert (failure.rank, failure.reason, failure.victims) == (1, "PodLost", "worker 0")


def test_a_pod_that_is_being_evicted_is_not_waited_for() -> None:
    job = make.paddlejob(status={"phase": "Running", "startTime": NOW.isoformat()})
    told = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    leaving = make.pod(
        job, 1, "Running", conditions=[told], metadata={"deletionTimestamp": (NOW + seconds(30)).isoformat()}
    )
    failure = found(job, make.pod(job, 0, "Running"), leaving)
    assert (failure.rank, failure.reason, failure.kind) == (1, "EvictionByEvictionAPI", "preempted")


@pytest.mark.parametrize(("after", "blamed"), [(4.9, None), (5, 2)])
def test_an_error_of_its_own_may_be_that_of_a_victim_so_others_are_waited_for_a_little(
    after: float, blamed: int | None
) -> None:
    """A script that finds its peer gone may raise, and ends with 1, before the peer is seen to have ended."""
    job = make.paddlejob(workers=3)
    pods = failed(job, 0, 1), make.pod(job, 1, "Running"), failed(job, 2, 7, 1)
    seen = make.observed(job, *pods, config_map=make.config_map(job), now=NOW + seconds(after))
    failure = find_failure(seen).failure
    assert (failure.rank if failure is not None else None) == blamed


def test_what_gloo_says_of_a_peer_that_is_gone_makes_a_victim() -> None:
    job = make.paddlejob(workers=2)
    said = {"exitCode": 1, "reason": "Error", "message": "RuntimeError: [/x/gloo/transport/tcp/pair.cc:584]"}
    victim = make.pod(job, 0, "Failed", containerStatuses=[{"name": "paddle", "state": {"terminated": said}}])
    failure = found(job, victim, failed(job, 1, 1))
    assert (failure.rank, failure.victims) == (1, "worker 0")


def test_a_pod_that_was_told_to_end_and_did_so_politely_has_not_come_to_its_end() -> None:
    job = make.paddlejob(workers=1)
    told = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    pod = make.pod(job, 0, "Succeeded", conditions=[told])
    assert judge(pod, "paddle") is Verdict.FAILED
    assert found(job, pod).reason == "EvictionByEvictionAPI"


def test_a_disruption_that_the_table_does_not_know_is_none_of_the_jobs_own_faults() -> None:
    job = make.paddlejob(status={"phase": "Running", "startTime": NOW.isoformat()})
    told = {"type": "DisruptionTarget", "status": "True", "reason": "example.com/Rebalanced"}
    leaving = make.pod(job, 1, "Running", conditions=[told], metadata={"deletionTimestamp": NOW.isoformat()})
    seen = make.observed(job, make.pod(job, 0, "Running"), leaving, config_map=make.config_map(job))
    assert find_failure(seen).counts == "disruption"
