"""What the status says, and when it is written."""

import make
import msgspec
import pytest
from make import NOW, seconds
from plans import actions, changes, running_job, settled

from paddle_operator.api.core import Pod
from paddle_operator.api.meta import Condition, Manifest, find_condition
from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.api.resources import PODS
from paddle_operator.paddlejob.news import write_due, write_status
from paddle_operator.paddlejob.observed import Observed
from paddle_operator.paddlejob.obstacles import find_obstacle
from paddle_operator.paddlejob.reconcile import reconcile
from paddle_operator.paddlejob.status import next_status
from paddle_operator.plan import Create, Emit, Plan, Refusal, SetStatus


@pytest.mark.parametrize(
    ("phases", "expected"),
    [
        (["Pending", "Pending"], "Pending"),
        (["Running", "Pending"], "Starting"),
        (["Running", "Running"], "Running"),
        (["Succeeded", "Running"], "Running"),
        (["Succeeded", "Pending"], "Starting"),
        (["Succeeded", "Succeeded"], "Completed"),
        (["Failed", "Running"], "Failed"),
        (["Failed", "Succeeded"], "Failed"),
        (["Failed", "Pending"], "Failed"),
        (["Unknown", "Running"], "Starting"),
    ],
)
def test_the_phase_follows_from_the_pods(phases: list[str], expected: str) -> None:
    job = make.paddlejob()
    pods = [make.pod(job, rank, phase) for rank, phase in enumerate(phases)]
    seen = make.observed(job, *pods, config_map=make.config_map(job), now=NOW + seconds(5))
    assert changes(reconcile(seen))["phase"] == expected


def test_a_probe_that_flaps_does_not_take_running_back() -> None:
    job = make.paddlejob(status={"phase": "Running", "startTime": NOW.isoformat()})
    unready = make.pod(job, 0, "Running", containerStatuses=[{"name": "paddle", "ready": False}])
    plan = reconcile(
        make.observed(job, unready, make.pod(job, 1, "Running"), config_map=make.config_map(job))
    )
    assert "phase" not in changes(plan)


def test_other_words_for_the_same_refusal_are_not_written_at_once() -> None:
    told = {"type": "Created", "status": "False", "reason": "CreateRefused", "message": "used: pods=3"}
    job = make.paddlejob(status={"phase": "Pending", "conditions": [told]})
    before = settled(make.observed(job))
    old = msgspec.structs.replace(
        before.job, status=msgspec.structs.replace(before.job.status, conditions=job.status.conditions)
    )
    refusal = Refusal(PODS, "resnet-worker-0", taken=False, message="used: pods=4")

    def at(age_seconds: float) -> Plan:
        written = NOW - seconds(age_seconds)
        return reconcile(make.observed(old, refusals=(refusal,), status_written_at=written))

    assert isinstance(at(31).steps[0][0], SetStatus)
    assert len(actions(at(31), SetStatus)) == 1
    assert isinstance(at(5).steps[0][0], Create)


def test_that_nothing_is_refused_any_more_is_written_as_soon_as_all_is_made() -> None:
    """Else a pod that is lost right then would be taken for one that is still to be made."""
    refusal = Refusal(PODS, "resnet-worker-0", taken=False, message="exceeded quota")
    refused = settled(make.observed(make.paddlejob(), refusals=(refusal,)))
    told = next_status(
        make.observed(refused.job, refusals=(refusal,)),
        find_obstacle(make.observed(refused.job, refusals=(refusal,))),
    )
    job = msgspec.structs.replace(refused.job, status=told)
    plan = reconcile(make.observed(job, refusals=(refusal,)))
    last = plan.steps[-2][0]
    assert [type(step[0]) for step in plan.steps] == [Create, Create, SetStatus, Emit]
    assert isinstance(last, SetStatus)
    assert last.changes["conditions"][0]["status"] == "True"


def test_a_change_of_counts_alone_waits_and_wakes_us_when_it_may_be_written() -> None:
    job = make.paddlejob()
    before = settled(make.observed(job, make.pod(job, 0), make.pod(job, 1), config_map=make.config_map(job)))
    pods = (make.pod(before.job, 0, "Pending", waiting="x"), make.pod(before.job, 1, "Unknown"))
    recent = make.observed(before.job, *pods, config_map=before.config_map, status_written_at=NOW)
    plan = reconcile(recent)
    assert actions(plan, SetStatus) == []
    assert plan.wake_at is not None
    assert plan.wake_at > NOW
    later = make.observed(
        before.job, *pods, config_map=before.config_map, now=NOW + seconds(60), status_written_at=NOW
    )
    assert set(changes(reconcile(later))) == {"worker"}


def test_foreign_conditions_are_kept() -> None:
    foreign = {"type": "example.com/Checked", "status": "True", "reason": "Fine"}
    job = make.paddlejob(status={"conditions": [foreign]})
    status = next_status(make.observed(job), None)
    assert find_condition(status.conditions, "example.com/Checked") == job.status.conditions[0]


def test_who_ended_well_is_written_down_and_not_lost_when_its_pod_is_collected() -> None:
    job = running_job()
    pods = [make.pod(job, 0, "Running"), make.pod(job, 1, "Succeeded")]
    plan = reconcile(make.observed(job, *pods, config_map=make.config_map(job)))
    assert changes(plan)["worker"]["succeededRanks"] == "1"

    told = {
        "phase": "Running",
        "startTime": NOW.isoformat(),
        "worker": {"succeeded": 1, "succeededRanks": "1"},
    }
    later = make.paddlejob(status=told)
    plan = reconcile(make.observed(later, pods[0], config_map=make.config_map(job)))
    assert "phase" not in changes(plan)
    assert actions(plan, Create) == []
    plan = reconcile(make.observed(later, make.pod(job, 0, "Succeeded"), config_map=make.config_map(job)))
    assert changes(plan)["phase"] == "Completed"


def test_that_a_pod_ended_well_is_written_soon_also_for_an_old_job() -> None:
    job = make.paddlejob(
        metadata={"creationTimestamp": (NOW - seconds(86400)).isoformat()},
        status={"phase": "Running", "startTime": NOW.isoformat()},
    )
    before = settled(make.observed(job, *(make.pod(job, rank, "Running") for rank in (0, 1))))
    pods = (make.pod(job, 0, "Running"), make.pod(job, 1, "Succeeded"))
    written = NOW - seconds(1.5)
    seen = make.observed(
        before.job, *pods, config_map=make.config_map(job), status_written_at=written, now=NOW
    )
    assert changes(reconcile(seen))["worker"]["succeededRanks"] == "1"


def failed_before_it_began(job: PaddleJob) -> Pod:
    broken = {"name": "fetch", "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}
    return make.pod(job, 0, "Failed", initContainerStatuses=[broken], containerStatuses=[])


def test_that_all_pods_were_created_is_said_also_of_a_job_that_failed_before_it_could_be() -> None:
    job = make.paddlejob()
    plan = reconcile(make.observed(job, make.pod(job, 0, "Failed"), make.pod(job, 1)))
    assert [one["type"] for one in changes(plan)["conditions"]] == ["Created", "Failed"]
    plan = reconcile(make.observed(job, failed_before_it_began(job)))
    assert [one["type"] for one in changes(plan)["conditions"]] == ["Failed"]


def test_a_failure_does_not_change_what_was_said_about_creation() -> None:
    refused = {"type": "Created", "status": "False", "reason": "CreateRefused", "message": "quota"}
    job = make.paddlejob(status={"phase": "Starting", "conditions": [refused]})
    plan = reconcile(make.observed(job, failed_before_it_began(job)))
    created = [one for one in changes(plan)["conditions"] if one["type"] == "Created"]
    assert created == [refused]


def reference(pod: Pod) -> Manifest:
    return {"kind": "Pod", "name": pod.metadata.name, "uid": pod.metadata.uid}


def test_a_pod_that_failed_and_was_replaced_hides_nothing_of_what_comes_after() -> None:
    """Deleted before all pods of the try were made, it is made again in the same try."""
    known = make.paddlejob()
    refs = [reference(make.pod(known, 0)) | {"uid": "deleted"}, reference(make.pod(known, 1))]
    told = {"failed": 1, "running": 1, "replicas": 2, "refs": refs}
    job = make.paddlejob(status={"phase": "Running", "mode": "Collective", "worker": told})
    worker = next_status(make.observed(job, *(make.pod(job, one, "Running") for one in (0, 1))), None).worker
    assert worker is not None
    assert (worker.failed, worker.running) == (0, 2)


def test_that_a_pod_ended_well_is_written_down_whatever_was_counted_before() -> None:
    known = make.paddlejob()
    refs = [reference(make.pod(known, rank)) for rank in (0, 1)]
    told = {"failed": 1, "running": 1, "replicas": 2, "refs": refs}
    job = make.paddlejob(status={"phase": "Running", "mode": "Collective", "worker": told})
    pods = make.pod(job, 0, "Running"), make.pod(job, 1, "Succeeded")
    worker = next_status(make.observed(job, *pods), None).worker
    assert worker is not None
    assert worker.succeeded_ranks == "1"


def test_what_another_manager_saw_to_have_failed_is_not_taken_back() -> None:
    """Of two that lead at once one may have the older picture of the pods, and the newer one of the job."""
    known = make.paddlejob()
    refs = [reference(make.pod(known, rank)) for rank in (0, 1)]
    counted = {"failed": 1, "pending": 1, "replicas": 2, "refs": refs}
    job = make.paddlejob(status={"phase": "Starting", "mode": "Collective", "worker": counted})
    before = make.observed(job, make.pod(job, 0), make.pod(job, 1))
    assert not changes(reconcile(before)).keys() & {"phase", "worker"}
    after = make.observed(job, make.pod(job, 0, "Failed"), make.pod(job, 1), now=NOW + seconds(5))
    assert changes(reconcile(after))["phase"] == "Failed"


@pytest.mark.parametrize(
    ("written", "seen", "expected"),
    [
        # A pod never comes back to Pending: whoever sees it there has an older picture.
        ({"running": 2}, ("Pending", "Pending"), {"running": 2}),
        ({"running": 1, "pending": 1}, ("Pending", "Pending"), {"running": 1, "pending": 1}),
        ({"pending": 2}, ("Running", "Pending"), {"running": 1, "pending": 1}),
        ({"running": 2}, ("Failed", "Pending"), {"failed": 1, "pending": 1}),
        # That one is not ready any more is no older picture.
        ({"running": 2}, ("Unknown", "Running"), {"unknown": 1, "running": 1}),
    ],
)
def test_that_a_pod_is_past_pending_is_not_taken_back(
    written: dict[str, int], seen: tuple[str, ...], expected: dict[str, int]
) -> None:
    """Two managers lead, and the watch of one has stopped: they would answer each other without end."""
    known = make.paddlejob()
    refs = [reference(make.pod(known, rank)) for rank in (0, 1)]
    job = make.paddlejob(status={"phase": "Running", "worker": {**written, "replicas": 2, "refs": refs}})
    pods = [make.pod(job, rank, phase) for rank, phase in enumerate(seen)]
    told = next_status(make.observed(job, *pods), None).worker
    assert told is not None
    counts = {name: getattr(told, name) for name in ("pending", "running", "failed", "unknown")}
    assert {name: count for name, count in counts.items() if count} == expected


@pytest.mark.parametrize(("before", "now", "pending"), [(0, 1, 1), (1, 1, 0), (2, 1, 0)])
def test_but_for_one_that_was_restarted_with_its_node(before: int, now: int, pending: int) -> None:
    """Its init containers run once more, and it is Pending until they have. Restarts are not taken back."""
    job = make.paddlejob(workers=1, pod=make.template(make.container(), restartPolicy="OnFailure"))
    restarted = [{"name": "paddle", "restartCount": now, "state": {"waiting": {}}}]
    pod = make.pod(job, 0, containerStatuses=restarted)
    told = {"running": 1, "restarts": before, "replicas": 1, "refs": [reference(pod)]}
    known = make.paddlejob(
        workers=1,
        pod=make.template(make.container(), restartPolicy="OnFailure"),
        status={"phase": "Running", "worker": told},
    )
    worker = next_status(make.observed(known, pod), None).worker
    assert worker is not None
    assert (worker.pending, worker.restarts) == (pending, max(before, now))


def test_a_count_that_nobody_can_confirm_does_not_hide_that_the_job_runs() -> None:
    """Whoever wrote it: a user may have sent it along with the job."""
    job = make.paddlejob(status={"phase": "Starting", "worker": {"failed": 1}})
    seen = make.observed(job, make.pod(job, 0, "Running"), make.pod(job, 1, "Running"))
    told = next_status(seen, None)
    assert (told.phase, told.start_time) == ("Running", NOW)
    ended = make.observed(job, make.pod(job, 0, "Succeeded"), make.pod(job, 1, "Succeeded"))
    worker = next_status(ended, None).worker
    assert worker is not None
    assert (worker.failed, worker.succeeded) == (0, 2)


def test_a_job_that_failed_with_all_its_pods_made_says_so() -> None:
    """Whatever was in the way of them before."""
    refused = {"type": "Created", "status": "False", "reason": "CreateRefused", "message": "exceeded quota"}
    job = make.paddlejob(status={"phase": "Starting", "conditions": [refused]})
    pods = [make.pod(job, 0, "Failed"), make.pod(job, 1, "Failed")]
    told = changes(
        reconcile(make.observed(job, *pods, config_map=make.config_map(job), now=NOW + seconds(5)))
    )
    created = next(one for one in told["conditions"] if one["type"] == "Created")
    assert (created["status"], created["reason"]) == ("True", "PodsCreated")


def test_what_was_said_just_now_is_not_taken_back_at_once() -> None:
    """Two managers that both lead would else answer each other, twenty times a second."""
    job = said("True", "PodsCreated")
    refused = said("False", "CreateRefused").status

    def after(age_seconds: float) -> Observed:
        return make.observed(job, now=NOW + seconds(age_seconds))

    assert write_status(after(1), refused) == ()
    assert write_due(after(1), refused) == NOW + seconds(2)
    assert write_status(after(2), refused) != ()


def test_but_that_all_pods_are_made_is_said_at_once() -> None:
    """From then on one that is missing was lost, and is not made again in the same try."""
    job = said("False", "CreateRefused")
    seen = make.observed(job, make.pod(job, 0), make.pod(job, 1), now=NOW + seconds(1))
    assert changes(reconcile(seen))["conditions"][0]["status"] == "True"


def test_that_nothing_is_in_the_way_of_pods_any_more_can_wait() -> None:
    """Of two managers that both lead one may not see why they do not start: they would say it in turns."""
    job = said("False", "ImagePullBackOff", of="Running")
    soothing = said("False", "PodsStart", of="Running").status

    def after(seconds_since: float) -> Observed:
        return make.observed(job, now=NOW + seconds(seconds_since), status_written_at=NOW)

    assert write_status(after(29), soothing) == ()
    assert write_due(after(29), soothing) == NOW + seconds(30)
    assert write_status(after(30), soothing) != ()


def test_but_why_pods_do_not_start_is_said_at_once() -> None:
    job = said("False", "PodsStart", of="Running")
    told = said("False", "ImagePullBackOff", of="Running").status
    seen = make.observed(job, now=NOW + seconds(3), status_written_at=NOW + seconds(3))
    assert write_status(seen, told) != ()


def said(status: str, reason: str, *, of: str = "Created") -> PaddleJob:
    """A job of which that was just said of its pods."""
    job = make.paddlejob()
    told = next_status(make.observed(job, make.pod(job, 0), make.pod(job, 1)), None)
    about = {"type": of, "status": status, "reason": reason, "lastTransitionTime": NOW.isoformat()}
    conditions = msgspec.convert([about], tuple[Condition, ...])
    return msgspec.structs.replace(job, status=msgspec.structs.replace(told, conditions=conditions))
