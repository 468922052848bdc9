"""A try that fails: begun anew or for the last time, what is counted, what goes before anything is made."""

from dataclasses import replace
from typing import Any

import make
import pytest
from make import NOW, seconds
from plans import actions, changes, shape

from paddle_operator.api.core import Pod
from paddle_operator.api.meta import Manifest
from paddle_operator.api.names import LABEL_ATTEMPT
from paddle_operator.api.paddlejob import PaddleJob, Role
from paddle_operator.paddlejob.observed import Observed
from paddle_operator.paddlejob.reconcile import reconcile
from paddle_operator.plan import Create, Delete, Emit, SetStatus

RESTARTING = {"type": "Restarting", "status": "True", "reason": "PodFailed"}


def running(
    attempt: int = 0, workers: int = 2, status: Manifest | None = None, **run_policy: Any
) -> PaddleJob:
    told = {"phase": "Running", "startTime": NOW.isoformat(), "attempt": attempt, **(status or {})}
    return make.paddlejob(workers=workers, status=told, runPolicy=run_policy)


def world(job: PaddleJob, *pods: Pod, after: float = 5, **fields: Any) -> Observed:
    return make.observed(job, *pods, config_map=make.config_map(job), now=NOW + seconds(after), **fields)


def condition(seen: Observed, kind: str) -> Manifest:
    found: list[Manifest] = changes(reconcile(seen))["conditions"]
    return next(one for one in found if one["type"] == kind)


def test_a_restart_is_written_before_anything_is_deleted_and_nothing_is_made_in_the_same_turn() -> None:
    job = running(status={"worker": {"running": 2}}, backoffLimit=1)
    seen = world(job, make.pod(job, 0, "Failed"), make.pod(job, 1, "Running"))
    plan = reconcile(seen)
    assert shape(plan) == ["1 setstatus", "1 emit and 3 delete"]
    assert actions(plan, Create) == []
    told = changes(plan)
    assert (told["phase"], told["attempt"], told["restarts"], told["failures"]) == ("Restarting", 1, 1, 1)
    assert "disruptions" not in told
    assert told["worker"] is None
    assert condition(seen, "Restarting")["reason"] == "PodFailed"
    assert condition(seen, "Created")["status"] == "False"


@pytest.mark.parametrize(
    ("policy", "before", "end", "phase", "counts"),
    [
        ({}, {}, {"exit_code": 7}, "Failed", (0, 1, 0)),
        ({"backoffLimit": 1}, {}, {"exit_code": 7}, "Restarting", (1, 1, 0)),
        ({"backoffLimit": 1}, {"failures": 1, "restarts": 1}, {"exit_code": 7}, "Failed", (1, 2, 0)),
        ({}, {}, {"exit_code": 143}, "Restarting", (1, 0, 1)),
        ({}, {"disruptions": 3, "restarts": 3}, {"exit_code": 15}, "Failed", (3, 0, 4)),
        ({"maxDisruptions": 0}, {}, {"reason": "Evicted"}, "Failed", (0, 0, 1)),
        ({}, {}, {"reason": "Evicted"}, "Restarting", (1, 0, 1)),
        ({"backoffLimit": 5}, {"failures": 2, "restarts": 2}, {"reason": "Evicted"}, "Restarting", (3, 2, 1)),
    ],
    ids=str,
)
def test_what_is_the_jobs_own_fault_and_what_is_not_have_limits_of_their_own(
    policy: Manifest, before: Manifest, end: Manifest, phase: str, counts: tuple[int, int, int]
) -> None:
    job = running(status=before, **policy)
    told = changes(reconcile(world(job, make.pod(job, 0, "Failed", **end), make.pod(job, 1, "Running"))))
    merged = {"restarts": 0, "failures": 0, "disruptions": 0, **before, **told}
    assert merged["phase"] == phase
    assert (merged["restarts"], merged["failures"], merged["disruptions"]) == counts


def again() -> PaddleJob:
    """The job after its restart was written: the pods that there are belong to the try before."""
    told = {"phase": "Restarting", "mode": "Collective", "attempt": 1, "restarts": 1, "observedGeneration": 1}
    return make.paddlejob(status={**told, "attemptTime": NOW.isoformat(), "conditions": [RESTARTING]})


def test_nothing_is_made_while_a_pod_of_an_earlier_try_is_there() -> None:
    job = again()
    old = make.pod(running(), 0, "Running", metadata={"deletionTimestamp": NOW.isoformat()})
    plan = reconcile(make.observed(job, old, now=NOW + seconds(10)))
    assert (actions(plan, Create), actions(plan, Delete)) == ([], [])


def test_pods_and_the_list_of_peers_of_an_earlier_try_are_deleted() -> None:
    job, before = again(), running()
    seen = make.observed(
        job, make.pod(before, 0, "Running"), make.pod(before, 1, "Failed"), config_map=make.config_map(before)
    )
    deleted = [(one.target.resource.plural, one.target.key.name) for one in actions(reconcile(seen), Delete)]
    assert deleted == [("pods", "resnet-worker-0"), ("pods", "resnet-worker-1"), ("configmaps", "resnet")]


def test_how_pods_of_an_earlier_try_ended_is_not_counted_again() -> None:
    job = again()
    plan = reconcile(make.observed(job, make.pod(running(), 0, "Failed"), make.pod(running(), 1, "Failed")))
    assert actions(plan, SetStatus) == []


@pytest.mark.parametrize(("restarts", "pause"), [(1, 2), (2, 3), (5, 17), (20, 301)])
def test_the_pause_before_a_try_doubles_from_a_second_to_five_minutes_and_is_never_short(
    restarts: int, pause: int
) -> None:
    told = {"phase": "Restarting", "attempt": restarts, "restarts": restarts, "attemptTime": NOW.isoformat()}
    job = make.paddlejob(status={**told, "conditions": [RESTARTING]})
    early = reconcile(make.observed(job, now=NOW + seconds(pause - 0.1)))
    assert actions(early, Create) == []
    assert early.wake_at == NOW + seconds(pause)
    assert len(actions(reconcile(make.observed(job, now=NOW + seconds(pause))), Create)) == 2


def test_what_is_made_anew_is_marked_with_its_try_and_never_taken_for_an_older_one() -> None:
    creates = actions(reconcile(make.observed(again(), now=NOW + seconds(2))), Create)
    labels = {one.manifest["metadata"]["labels"]["paddlepaddle.org/attempt"] for one in creates}
    assert labels == {"1"}
    assert {one.identity for one in creates} == {("paddlepaddle.org/attempt",)}


def test_a_pod_of_the_go_operator_belongs_to_the_first_try() -> None:
    bare = make.pod(running(), 0, "Running", metadata={"labels": {"paddle-res-type": "worker"}})
    assert [*make.observed(running(), bare).own] == ["resnet-worker-0"]
    assert [*make.observed(again(), bare).own] == []


def test_the_job_runs_again_and_says_so() -> None:
    job = make.paddlejob(
        status={"phase": "Starting", "attempt": 1, "restarts": 1, "conditions": [RESTARTING]}
    )
    seen = world(job, make.pod(job, 0, "Running"), make.pod(job, 1, "Running"))
    assert changes(reconcile(seen))["phase"] == "Running"
    assert condition(seen, "Restarting")["status"] == "False"
    assert [event.reason for event in actions(reconcile(seen), Emit)] == ["AllPodsRun"]


def test_a_failure_is_forgotten_only_when_the_job_has_completed() -> None:
    failure = {"pod": "resnet-worker-1", "reason": "Error", "class": "code"}
    job = running(attempt=1, status={"failure": failure, "restarts": 1})
    seen = world(job, make.pod(job, 0, "Running"), make.pod(job, 1, "Running"))
    assert "failure" not in changes(reconcile(seen))
    done = world(job, make.pod(job, 0, "Succeeded"), make.pod(job, 1, "Succeeded"))
    assert changes(reconcile(done))["failure"] is None


# Restarts in place, which the template asks for.

ON_FAILURE = make.template(make.container(), restartPolicy="OnFailure")


def in_place(
    job: PaddleJob,
    rank: int,
    count: int,
    role: Role = Role.WORKER,
    ip: str | None = None,
    began: float = 0,
) -> Pod:
    end = {"exitCode": 3, "reason": "Error", "finishedAt": NOW.isoformat()}
    status = {
        "name": "paddle",
        "ready": True,
        "restartCount": count,
        "state": {"running": {"startedAt": (NOW + seconds(began)).isoformat()}},
        "lastState": {"terminated": end},
    }
    return make.pod(job, rank, "Running", role=role, ip=ip, containerStatuses=[status])


def on_failure(workers: int = 2, annotations: Manifest | None = None, **spec: Any) -> PaddleJob:
    told = {"phase": "Running", "startTime": NOW.isoformat()}
    metadata = {"annotations": annotations or {}}
    return make.paddlejob(workers=workers, status=told, pod=ON_FAILURE, metadata=metadata, **spec)


@pytest.mark.parametrize(
    ("counts", "limit", "phase"),
    [
        ((6, 6), None, None),
        ((7, 7), None, "Failed"),
        ((1, 1), 0, "Failed"),
        ((2, 1), 2, None),
        ((3, 2), 2, "Failed"),
    ],
    ids=str,
)
def test_of_a_collective_job_an_incident_that_restarts_everybody_counts_once(
    counts: tuple[int, int], limit: int | None, phase: str | None
) -> None:
    job = on_failure(runPolicy={} if limit is None else {"backoffLimit": limit})
    seen = world(job, *(in_place(job, rank, count) for rank, count in enumerate(counts)))
    told = changes(reconcile(seen))
    assert told.get("phase") == phase
    assert told["worker"]["restarts"] == sum(counts)
    if phase:
        assert (told["failure"]["reason"], told["failure"]["exitCode"]) == ("RestartedTooOften", 3)


def test_workers_that_came_back_together_are_not_alone_when_the_first_of_them_has_ended() -> None:
    job = on_failure()
    seen = world(job, make.pod(job, 0, "Succeeded"), in_place(job, 1, 1, began=-30))
    assert "phase" not in changes(reconcile(seen))
    end = {"terminated": {"exitCode": 0, "finishedAt": NOW.isoformat()}}
    also = [{"name": "paddle", "restartCount": 1, "state": end}]
    seen = world(job, in_place(job, 0, 1, began=-30), make.pod(job, 1, "Succeeded", containerStatuses=also))
    assert "phase" not in changes(reconcile(seen))


def test_a_worker_that_comes_back_after_a_peer_has_ended_would_wait_for_ever_so_all_begin_anew() -> None:
    job = on_failure()
    seen = world(job, make.pod(job, 0, "Succeeded"), in_place(job, 1, 1))
    told = changes(reconcile(seen))
    assert (told["phase"], told["failures"], told["restarts"]) == ("Restarting", 1, 1)
    assert told["failure"]["reason"] == "RestartedAlone"


@pytest.mark.parametrize(
    ("annotations", "phase"), [({}, "Restarting"), ({"paddlepaddle.org/async-ps": "true"}, None)]
)
def test_servers_have_forgotten_a_worker_that_comes_back_unless_they_are_asynchronous(
    annotations: Manifest, phase: str | None
) -> None:
    job = on_failure(ps=make.role(1, ON_FAILURE), annotations=annotations)
    pods = make.pod(job, 0, "Running", role=Role.PS), make.pod(job, 0, "Running"), in_place(job, 1, 1)
    assert changes(reconcile(world(job, *pods))).get("phase") == phase


def test_a_server_that_was_restarted_in_place_counts_once_and_begins_all_anew() -> None:
    job = on_failure(ps=make.role(1, ON_FAILURE))
    pods = in_place(job, 0, 1, Role.PS), make.pod(job, 0, "Running"), make.pod(job, 1, "Running")
    told = changes(reconcile(world(job, *pods)))
    assert (told["phase"], told["failures"], told["failure"]["reason"]) == ("Restarting", 1, "ServerEnded")
    assert told["failure"]["exitCode"] == 3


def test_out_of_memory_is_said_also_of_what_was_restarted_in_place() -> None:
    limited = make.template(
        make.container(resources={"limits": {"memory": "1Gi"}}), restartPolicy="OnFailure"
    )
    job = make.paddlejob(workers=1, pod=limited, status={"phase": "Running"})
    end = {"exitCode": 137, "reason": "OOMKilled", "finishedAt": NOW.isoformat()}
    status = {"name": "paddle", "restartCount": 7, "state": {"running": {}}, "lastState": {"terminated": end}}
    failure = changes(reconcile(world(job, make.pod(job, 0, "Running", containerStatuses=[status]))))[
        "failure"
    ]
    assert (failure["class"], failure["reason"], failure["exitCode"]) == ("OOM", "RestartedTooOften", 137)
    assert "limit, 1Gi," in failure["message"]


def test_a_side_car_that_is_always_restarted_says_nothing_of_training() -> None:
    sidecar = [{"name": "logs", "image": "x", "restartPolicy": "Always"}]
    for policy in ("Never", "OnFailure"):
        pod = make.template(make.container(), initContainers=sidecar, restartPolicy=policy)
        job = make.paddlejob(pod=pod, status={"phase": "Running"}, runPolicy={"backoffLimit": 0})
        again = [{"name": "logs", "restartCount": 3, "state": {"running": {}}}]
        pods = [make.pod(job, rank, "Running", initContainerStatuses=again) for rank in (0, 1)]
        assert "phase" not in changes(reconcile(world(job, *pods)))


def test_a_limit_that_was_lowered_does_not_fail_a_job_for_something_else() -> None:
    job = running(status={"disruptions": 2, "restarts": 2}, maxDisruptions=1, backoffLimit=5)
    seen = world(job, make.pod(job, 0, "Failed"), make.pod(job, 1, "Running"))
    assert changes(reconcile(seen))["phase"] == "Restarting"


def test_each_restart_is_told_as_an_event_also_if_it_is_for_the_same_reason() -> None:
    told = {"phase": "Starting", "attempt": 1, "restarts": 1, "failures": 1, "conditions": [RESTARTING]}
    job = make.paddlejob(status=told, runPolicy={"backoffLimit": 5})
    plan = reconcile(world(job, make.pod(job, 0, "Failed"), make.pod(job, 1)))
    assert "PodFailed" in [event.reason for event in actions(plan, Emit)]


def test_restarts_in_place_are_not_forgotten_when_the_whole_job_begins_anew() -> None:
    job = on_failure()
    seen = world(job, in_place(job, 0, 2), make.pod(job, 1, "Failed", reason="Evicted"))
    told = changes(reconcile(seen))
    assert (told["failures"], told["disruptions"]) == (2, 1)


# Addresses.


def test_a_list_of_peers_that_is_wrong_is_made_anew_while_nobody_has_begun() -> None:
    job = make.paddlejob()
    seen = world(job, make.pod(job, 0), make.pod(job, 1, ip="198.18.0.77"))
    assert shape(reconcile(seen))[-1] == "1 delete"
    assert actions(reconcile(seen), Create) == []
    gone = replace(seen, config_map=None)
    assert "1 create configmaps" in shape(reconcile(gone))


def test_nobody_is_told_anew_once_somebody_has_begun_with_what_was_wrong() -> None:
    job = make.paddlejob()
    woken = {"annotations": {"paddlepaddle.org/nudge": f"1 {NOW.isoformat()}"}}
    seen = make.observed(job, make.pod(job, 0, "Running"), make.pod(job, 1, metadata=woken))
    told = changes(reconcile(seen))
    assert (told["phase"], told["failure"]["reason"]) == ("Restarting", "AddressChanged")


OLD = {"labels": {LABEL_ATTEMPT: "0"}}
WOKEN = {"annotations": {"paddlepaddle.org/nudge": f"1 {NOW.isoformat()}"}}


@pytest.mark.parametrize("stands", [True, False], ids=["it still stands", "it was taken away"])
def test_who_has_begun_with_the_list_of_an_earlier_try_begins_anew(*, stands: bool) -> None:
    """A leader that was late made it once more, just when the pods of this try started."""
    job = running(attempt=1)
    pods = make.pod(job, 0, "Running"), make.pod(job, 1, "Running")
    late = make.config_map(job, **OLD) if stands else None
    told = changes(reconcile(make.observed(job, *pods, config_map=late)))
    assert told.get("attempt") == 2
    assert (told["disruptions"], told["failure"]["reason"]) == (1, "AddressChanged")


@pytest.mark.parametrize(
    ("job", "metadata", "phase"),
    [
        (running(attempt=1), WOKEN, "Running"),
        (running(attempt=1), {}, "Succeeded"),
        (running(), {}, "Running"),
        (make.paddlejob(status={"phase": "Running", "attempt": 1}, intranet="Service"), {}, "Running"),
    ],
    ids=["it was woken for its own", "it went well", "there was no earlier try", "names do not change"],
)
def test_a_list_that_is_missed_later_harms_nobody(job: PaddleJob, metadata: Manifest, phase: str) -> None:
    pods = [make.pod(job, rank, phase, metadata=metadata) for rank in range(2)]
    assert "attempt" not in changes(reconcile(make.observed(job, *pods)))


def test_once_somebody_has_begun_with_it_all_begin_anew() -> None:
    job = running()
    seen = world(job, make.pod(job, 0, "Running"), make.pod(job, 1, "Running", ip="198.18.0.77"))
    told = changes(reconcile(seen))
    assert (told["phase"], told["disruptions"]) == ("Restarting", 1)
    assert told["failure"]["reason"] == "AddressChanged"


def test_a_node_that_was_restarted_and_its_containers_with_it_count_once() -> None:
    job = on_failure()
    moved = in_place(job, 1, 1, ip="198.18.0.77")
    told = changes(reconcile(world(job, make.pod(job, 0, "Running"), moved)))
    assert (told.get("failures", 0), told["disruptions"]) == (0, 1)
