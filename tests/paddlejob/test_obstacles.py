"""What keeps a job from its pods, and how that is said."""

from typing import Any

import make
import pytest
from plans import actions, changes, running_job, shape

from paddle_operator.api.core import Pod
from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.api.resources import CONFIG_MAPS, PODS, SERVICES
from paddle_operator.paddlejob.reconcile import reconcile
from paddle_operator.plan import Create, Delete, Emit, Patch, Refusal


def namesakes_pod(rank: int = 0) -> Pod:
    return make.pod(make.paddlejob(uid="dead-0000"), rank, "Running")


@pytest.mark.parametrize(
    ("job", "seen", "reason"),
    [
        (make.paddlejob("Not.A.Label"), {}, "InvalidSpec"),
        (make.paddlejob(heter=make.role(1)), {}, "NotServed"),
        (make.paddlejob(intranet="Host"), {}, "PortsTaken"),
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
    ids=["bad name", "heter", "no ports left", "elastic", "namesake's map", "foreign map"],
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


def test_a_refusal_of_a_pod_that_has_come_in_since_is_no_obstacle() -> None:
    """Another manager may have made it."""
    job = make.paddlejob()
    refusal = Refusal(PODS, "resnet-worker-0", taken=False, message="exceeded quota: small")
    plan = reconcile(make.observed(job, make.pod(job, 0), make.pod(job, 1), refusals=(refusal,)))
    assert "CreateRefused" not in {one["reason"] for one in changes(plan)["conditions"]}


def test_nor_is_that_of_a_list_of_peers_which_nobody_waits_for_any_more() -> None:
    """Another manager has made it, and we look again only when all have ended well: nothing was missing."""
    job = make.paddlejob()
    refusal = Refusal(CONFIG_MAPS, "resnet", taken=False, message="the server has a fault")
    waiting, ended = ([make.pod(job, rank, phase) for rank in (0, 1)] for phase in ("Pending", "Succeeded"))
    for pods, config_map, reason in (
        (waiting, None, "CreateRefused"),
        (waiting, make.config_map(job), "PodsCreated"),
        (ended, None, "PodsCreated"),
    ):
        plan = reconcile(make.observed(job, *pods, config_map=config_map, refusals=(refusal,)))
        assert changes(plan)["conditions"][0]["reason"] == reason


def test_nor_that_of_a_service_that_is_there() -> None:
    job = make.paddlejob(intranet="Service")
    refusal = Refusal(SERVICES, "resnet-worker-0", taken=False, message="exceeded quota: small")
    service = make.service(job, "resnet-worker-0")
    for services, reason in (((), "CreateRefused"), ((service,), "PodsCreated")):
        plan = reconcile(make.observed(job, services=services, refusals=(refusal,)))
        assert changes(plan)["conditions"][0]["reason"] == reason


def test_after_a_refusal_one_pod_goes_ahead_of_the_rest() -> None:
    refusal = Refusal(PODS, "resnet-worker-0", taken=False, message="exceeded quota: small")
    plan = reconcile(make.observed(make.paddlejob(workers=5), refusals=(refusal,)))
    assert shape(plan) == ["1 setstatus", "1 emit", "1 create pods", "4 create pods"]


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


@pytest.mark.parametrize(
    "edit",
    [{"elastic": 1}, {"sampleSetRef": {"name": "a"}}, {"schedulingPolicy": {"queue": "q"}}],
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


def test_pods_that_share_an_address_are_explained_and_not_told() -> None:
    job = make.paddlejob()
    plan = reconcile(make.observed(job, make.pod(job, 0, ip="198.18.0.7"), make.pod(job, 1, ip="198.18.0.7")))
    assert changes(plan)["conditions"][0]["reason"] == "SharedAddress"
    assert actions(plan, Create) == []
