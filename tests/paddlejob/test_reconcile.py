"""The checklist as a table: what is seen, and what shall be done."""

from typing import Any

import make
import msgspec
import pytest
from make import NOW, seconds

from paddle_operator.api.core import Pod
from paddle_operator.api.meta import find_condition
from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.api.resources import CONFIG_MAPS, PODS
from paddle_operator.paddlejob.observed import Observed
from paddle_operator.paddlejob.reconcile import reconcile
from paddle_operator.paddlejob.status import next_status
from paddle_operator.plan import Action, Create, Delete, Emit, Patch, Plan, Refusal, SetStatus


def actions(plan: Plan, kind: type[Action]) -> list[Any]:
    return [action for step in plan.steps for action in step if isinstance(action, kind)]


def shape(plan: Plan) -> list[str]:
    """The steps in short: what each does, and to how many."""
    words = []
    for step in plan.steps:
        names = [
            f"create {one.resource.plural}" if isinstance(one, Create) else type(one).__name__.lower()
            for one in step
        ]
        words.append(f"{len(names)} {names[0]}")
    return words


def changes(plan: Plan) -> dict[str, Any]:
    found: list[SetStatus] = actions(plan, SetStatus)
    assert len(found) <= 1
    return found[0].changes if found else {}


def settled(seen: Observed) -> Observed:
    """The same, after the status has been written: what is left is not about the status."""
    job = msgspec.structs.replace(seen.job, status=next_status(seen, None, None))
    return make.observed(job, *seen.pods, now=seen.now, config_map=seen.config_map)


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
    plan = reconcile(make.observed(job, *pods, config_map=make.config_map(job)))
    assert changes(plan)["phase"] == expected


def test_a_probe_that_flaps_does_not_take_running_back() -> None:
    job = make.paddlejob(status={"phase": "Running", "startTime": NOW.isoformat()})
    unready = make.pod(job, 0, "Running", containerStatuses=[{"name": "paddle", "ready": False}])
    plan = reconcile(
        make.observed(job, unready, make.pod(job, 1, "Running"), config_map=make.config_map(job))
    )
    assert "phase" not in changes(plan)


def finished(phase: str, **spec: Any) -> PaddleJob:
    return make.paddlejob(status={"phase": phase, "startTime": NOW.isoformat()}, **spec)


@pytest.mark.parametrize(
    ("policy", "phase", "cleaned"),
    [
        ("", "Completed", True),
        ("", "Failed", False),
        ("Always", "Completed", True),
        ("Always", "Failed", True),
        ("Never", "Completed", False),
        ("Never", "Failed", False),
        ("OnCompletion", "Completed", True),
        ("OnCompletion", "Failed", False),
        ("OnFailure", "Completed", False),
        ("OnFailure", "Failed", True),
    ],
)
@pytest.mark.parametrize("field", ["cleanPodPolicy", "cleanPolicy"])
def test_the_clean_pod_policy_decides_about_the_pods(
    policy: str, phase: str, field: str, *, cleaned: bool
) -> None:
    job = finished(phase, **{field: policy})
    ended = [make.pod(job, rank, "Succeeded" if phase == "Completed" else "Failed") for rank in (0, 1)]
    plan = reconcile(make.observed(job, *ended, config_map=make.config_map(job)))
    assert len(actions(plan, Delete)) == (2 if cleaned else 0)
    assert len(actions(plan, Patch)) == 0


@pytest.mark.parametrize("phase", ["Completed", "Failed"])
def test_a_finished_job_makes_nothing_again_and_keeps_its_status(phase: str) -> None:
    job = finished(phase, cleanPodPolicy="Never")
    assert reconcile(make.observed(job)) == Plan()


def test_survivors_that_are_kept_are_stopped_once() -> None:
    job = finished("Failed")
    survivor, dead = make.pod(job, 0, "Running"), make.pod(job, 1, "Failed")
    plan = reconcile(make.observed(job, survivor, dead))
    assert [(one.target.key.name, one.body) for one in actions(plan, Patch)] == [
        ("resnet-worker-0", {"spec": {"activeDeadlineSeconds": 1}})
    ]
    stopped = msgspec.structs.replace(
        survivor, spec=msgspec.structs.replace(survivor.spec, active_deadline_seconds=1)
    )
    assert reconcile(make.observed(job, stopped, dead)) == Plan()


def test_the_end_is_written_before_pods_are_cleaned() -> None:
    job = make.paddlejob(status={"phase": "Running", "startTime": NOW.isoformat()})
    pods = [make.pod(job, rank, "Succeeded") for rank in (0, 1)]
    plan = reconcile(make.observed(job, *pods, config_map=make.config_map(job)))
    assert shape(plan) == ["1 setstatus", "2 emit", "2 delete"]
    assert changes(plan)["phase"] == "Completed"


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
def test_a_pod_that_vanishes_after_peers_know_it_fails_the_job(reason: str) -> None:
    job = make.paddlejob()
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


def namesakes_pod(rank: int = 0) -> Pod:
    return make.pod(make.paddlejob(uid="dead-0000"), rank, "Running")


@pytest.mark.parametrize(
    ("job", "seen", "reason"),
    [
        (make.paddlejob("Not.A.Label"), {}, "InvalidSpec"),
        (make.paddlejob(ps={"replicas": 1, "template": make.template()}), {}, "NotServed"),
        (make.paddlejob(intranet="Host"), {}, "NotServed"),
        (make.paddlejob(elastic=1), {}, "NotServed"),
        (
            make.paddlejob(),
            {"config_map": make.config_map(make.paddlejob(uid="dead"))},
            "NamesakeTerminating",
        ),
        (
            make.paddlejob(),
            {"config_map": make.config_map(make.paddlejob(), ownerReferences=[])},
            "ConfigMapTaken",
        ),
    ],
    ids=str,
)
def test_an_obstacle_is_said_and_nothing_is_created(
    job: PaddleJob, seen: dict[str, Any], reason: str
) -> None:
    plan = reconcile(make.observed(job, **seen))
    assert actions(plan, Create) == []
    (condition,) = changes(plan)["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Created", "False", reason)
    (event,) = actions(plan, Emit)
    assert event.warning
    assert event.reason == reason


def test_pods_of_a_dead_namesake_are_neither_counted_nor_touched_and_waited_for() -> None:
    job = make.paddlejob()
    plan = reconcile(make.observed(job, namesakes_pod(0), namesakes_pod(1)))
    assert actions(plan, Create) + actions(plan, Delete) + actions(plan, Patch) == []
    assert changes(plan)["worker"] == {}
    assert changes(plan)["conditions"][0]["reason"] == "NamesakeTerminating"


def test_a_mistake_in_the_spec_is_not_looked_at_again_by_itself() -> None:
    assert reconcile(make.observed(make.paddlejob("Not.A.Label"))).wake_at is None


def test_what_was_refused_is_said_first_and_then_tried_again() -> None:
    refusal = Refusal(PODS, "resnet-worker-0", taken=False, message="exceeded quota: small")
    plan = reconcile(make.observed(make.paddlejob(), refusals=(refusal,)))
    assert shape(plan) == ["1 setstatus", "1 emit", "1 create pods", "1 create pods"]
    (condition,) = changes(plan)["conditions"]
    assert condition["reason"] == "CreateRefused"
    assert "exceeded quota: small" in condition["message"]


def test_after_a_refusal_one_pod_goes_ahead_of_the_rest() -> None:
    refusal = Refusal(PODS, "resnet-worker-0", taken=False, message="exceeded quota: small")
    plan = reconcile(make.observed(make.paddlejob(workers=5), refusals=(refusal,)))
    assert shape(plan) == ["1 setstatus", "1 emit", "1 create pods", "4 create pods"]


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

    assert actions(at(5), SetStatus) == []
    assert len(actions(at(31), SetStatus)) == 1


def test_a_foreign_config_map_that_came_later_is_named() -> None:
    job = make.paddlejob()
    refusal = Refusal(CONFIG_MAPS, "resnet", taken=True, message="the name is taken")
    plan = reconcile(make.observed(job, make.pod(job, 0), make.pod(job, 1), refusals=(refusal,)))
    assert changes(plan)["conditions"][0]["reason"] == "ConfigMapTaken"


def test_an_ipv6_only_pod_is_explained_and_of_dual_stack_ipv4_is_taken() -> None:
    job = make.paddlejob()
    dual = make.pod(job, 0, ip="2001:db8::1", podIPs=[{"ip": "2001:db8::1"}, {"ip": "198.18.0.9"}])
    plan = reconcile(make.observed(job, dual, make.pod(job, 1, ip="2001:db8::2")))
    assert changes(plan)["conditions"][0]["reason"] == "NoIPv4Address"
    plan = reconcile(make.observed(job, dual, make.pod(job, 1)))
    assert actions(plan, Create)[0].manifest["data"]["PADDLE_TRAINERS"] == "198.18.0.9,198.18.0.2"


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


def test_variables_that_the_operator_sets_are_dropped_with_a_warning_once() -> None:
    pod = make.template(make.container(env=[{"name": "PADDLE_TRAINER_ID", "value": "7"}]))
    job = make.paddlejob(pod=pod)
    reasons = [event.reason for event in actions(reconcile(make.observed(job)), Emit)]
    assert reasons == ["VariableDropped", "PodsCreated"]
    again = reconcile(make.observed(job, make.pod(job, 0, ip="")))
    assert "VariableDropped" not in [event.reason for event in actions(again, Emit)]


def test_foreign_conditions_are_kept() -> None:
    foreign = {"type": "example.com/Checked", "status": "True", "reason": "Fine"}
    job = make.paddlejob(status={"conditions": [foreign]})
    status = next_status(make.observed(job), None, None)
    assert find_condition(status.conditions, "example.com/Checked") == job.status.conditions[0]


def running_job(**spec: Any) -> PaddleJob:
    return make.paddlejob(status={"phase": "Running", "startTime": NOW.isoformat()}, **spec)


@pytest.mark.parametrize(
    "edit",
    [{"elastic": 1}, {"intranet": "Host"}, {"schedulingPolicy": {"queue": "q"}}],
    ids=str,
)
def test_an_edit_that_asks_for_what_is_not_served_is_said_and_harms_nothing(edit: dict[str, Any]) -> None:
    job = running_job(**edit)
    pods = [make.pod(running_job(), rank, "Running") for rank in (0, 1)]
    plan = reconcile(make.observed(job, *pods, config_map=make.config_map(job)))
    assert "phase" not in changes(plan)
    assert changes(plan)["conditions"][0]["reason"] == "NotServed"
    assert actions(plan, Create) + actions(plan, Delete) + actions(plan, Patch) == []


def test_an_edit_that_breaks_the_template_of_a_half_made_job_is_said() -> None:
    job = make.paddlejob(pod={"spec": {"containers": []}})
    plan = reconcile(make.observed(job, make.pod(make.paddlejob(), 0)))
    assert changes(plan)["conditions"][0]["reason"] == "InvalidSpec"
    assert actions(plan, Create) == []


def test_a_stored_job_without_workers_is_invalid_and_not_completed() -> None:
    plan = reconcile(make.observed(make.paddlejob(workers=0)))
    assert changes(plan)["phase"] == "Pending"
    assert [one["reason"] for one in changes(plan)["conditions"]] == ["InvalidSpec"]


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


@pytest.mark.parametrize("deadline", [None, 86400])
def test_a_pod_that_is_kept_alive_by_its_sidecar_is_stopped(deadline: int | None) -> None:
    template = make.template(make.container(), make.container(name="logger"))
    job = make.paddlejob(pod=template, cleanPodPolicy="Never", status={"phase": "Completed"})
    statuses = [
        {"name": "paddle", "state": {"terminated": {"exitCode": 0}}},
        {"name": "logger", "ready": True, "state": {"running": {}}},
    ]
    pod = make.pod(job, 0, "Running", containerStatuses=statuses)
    spec = msgspec.structs.replace(pod.spec, active_deadline_seconds=deadline)
    plan = reconcile(make.observed(job, msgspec.structs.replace(pod, spec=spec)))
    assert [one.body for one in actions(plan, Patch)] == [{"spec": {"activeDeadlineSeconds": 1}}]


def test_a_survivor_that_never_found_a_node_is_deleted() -> None:
    job = finished("Failed")
    pod = make.pod(job, 0)
    homeless = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=""))
    assert len(actions(reconcile(make.observed(job, homeless)), Delete)) == 1


def test_pods_that_share_an_address_are_explained_and_not_told() -> None:
    job = make.paddlejob()
    plan = reconcile(make.observed(job, make.pod(job, 0, ip="198.18.0.7"), make.pod(job, 1, ip="198.18.0.7")))
    assert changes(plan)["conditions"][0]["reason"] == "SharedAddress"
    assert actions(plan, Create) == []


def test_a_failure_does_not_change_what_was_said_about_creation() -> None:
    refused = {"type": "Created", "status": "False", "reason": "CreateRefused", "message": "quota"}
    job = make.paddlejob(status={"phase": "Starting", "conditions": [refused]})
    plan = reconcile(make.observed(job, make.pod(job, 0, "Failed")))
    created = [one for one in changes(plan)["conditions"] if one["type"] == "Created"]
    assert created == [refused]


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
