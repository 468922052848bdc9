"""Host mode: 20 ports for each pod, which no other Host job has, written down before the first pod."""

from typing import Any

import make
import msgspec
import pytest
from make import NOW, seconds
from plans import actions, changes, shape

from paddle_operator.api.core import Pod
from paddle_operator.api.paddlejob import PaddleJob, Role
from paddle_operator.api.resources import PODS
from paddle_operator.paddlejob.endpoints import Slot
from paddle_operator.paddlejob.observed import Observed
from paddle_operator.paddlejob.pods import build_pod
from paddle_operator.paddlejob.ports import Promises, free_ports, holds_before, may_give_way, next_glance
from paddle_operator.paddlejob.reconcile import reconcile
from paddle_operator.plan import Create, Delete, Refusal


def host_job(**fields: Any) -> PaddleJob:
    return make.paddlejob(intranet="Host", **fields)


@pytest.mark.parametrize(
    ("workers", "taken", "first"),
    [
        (2, [], 35000),
        (2, [range(35000, 35040)], 35040),
        (2, [range(35040, 35080)], 35000),
        (2, [range(35020, 35060)], 35060),
        (2, [range(35060, 35100), range(35000, 35040)], 35100),
        (1, [range(35060, 35100), range(35000, 35040)], 35040),
        (2, [range(35000, 35040), range(35000, 35040)], 35040),
        (1, [range(35010, 35030)], 35040),
        (2, [range(20000, 20040)], 35000),
        (2, [range(0)], 35000),
        (2, [range(35000, 64980)], 0),
        (1, [range(35000, 64980)], 64980),
        (1500, [], 35000),
        (1501, [], 0),
    ],
)
def test_a_job_gets_the_first_ports_in_a_row_that_nobody_holds(
    workers: int, taken: list[range], first: int
) -> None:
    assert free_ports(host_job(workers=workers), taken) == first


def test_a_job_that_names_its_port_has_it() -> None:
    job = host_job(metadata={"annotations": {"paddlepaddle.org/port": "40000"}})
    assert free_ports(job, [range(35000, 65000)]) == 40000


def test_a_promise_is_kept_until_the_status_has_it_and_nobody_else_gets_the_same() -> None:
    a, b, early = (host_job(name=name, uid=name) for name in ("a", "b", "early"))
    promises = Promises()
    assert promises.to(early, [early, a]) == 35000
    assert promises.to(a, [early, a]) == 35040
    assert promises.to(a, [a, b]) == 35040, "also when what was taken has come free"
    assert promises.to(b, [a, b]) == 35000
    told = host_job(name="a", uid="a", status={"hostPort": 35040})
    assert promises.to(host_job(name="c", uid="c"), [told, b]) == 35080


def test_what_is_not_to_be_had_now_may_be_later() -> None:
    large, small = host_job(uid="large", workers=1500), host_job(uid="small")
    promises = Promises()
    assert promises.to(small, [small, large]) == 35000
    assert promises.to(large, [small, large]) == 0
    assert promises.to(large, [large]) == 35000


def test_ports_are_written_down_before_the_first_pod() -> None:
    plan = reconcile(make.observed(host_job(), free_host_port=35040))
    assert shape(plan) == ["1 setstatus"]
    assert changes(plan) == {"hostPort": 35040, "phase": "Pending", "mode": "Collective"}


def test_a_job_that_moves_to_the_host_network_after_a_refusal_has_ports_before_pods_too() -> None:
    refusal = Refusal(PODS, "resnet-worker-0", taken=False, message="exceeded quota")
    plan = reconcile(make.observed(host_job(), free_host_port=35000, refusals=(refusal,)))
    assert actions(plan, Create) == []
    assert changes(plan)["hostPort"] == 35000


def test_pods_are_made_with_the_ports_that_are_written_down() -> None:
    plan = reconcile(make.observed(host_job(status={"hostPort": 35040}), free_host_port=35000))
    assert len(actions(plan, Create)) == 2
    pod = actions(plan, Create)[1].manifest
    assert pod["spec"]["hostNetwork"]
    assert pod["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"
    declared = pod["spec"]["containers"][0]["ports"]
    assert [one["hostPort"] for one in declared] == list(range(35060, 35080))
    assert all(one["hostPort"] == one["containerPort"] for one in declared)


def test_what_the_template_says_of_ports_and_dns_stays() -> None:
    port = {"containerPort": 8080, "name": "web"}
    pod = make.template(make.container(ports=[port]), dnsPolicy="Default")
    built = build_pod(host_job(pod=pod, status={"hostPort": 35000}), Slot(Role.WORKER, 0))
    assert built["spec"]["dnsPolicy"] == "Default"
    assert built["spec"]["containers"][0]["ports"][0] == port


def test_workers_that_share_a_node_are_no_obstacle_and_the_map_has_the_ports_of_each() -> None:
    job = host_job(status={"hostPort": 35000})
    pods = [make.pod(job, rank, ip="198.18.0.1") for rank in (0, 1)]
    (config_map,) = actions(reconcile(make.observed(job, *pods)), Create)
    assert config_map.manifest["data"]["PADDLE_MASTER"] == "198.18.0.1:35000"


def placed(job: PaddleJob, rank: int, node: str) -> Pod:
    pod = make.pod(job, rank, ip="198.18.0.1" if node else "")
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))


def waiting(job: PaddleJob, **fields: Any) -> Observed:
    """One pod has a place, the other has none."""
    return make.observed(job, placed(job, 0, "node-1"), placed(job, 1, ""), **fields)


PORTS = {"hostPort": 35000, "attempt": 1, "failures": 1, "phase": "Pending"}


def test_a_job_that_waits_with_the_ports_of_an_older_one_begins_anew_with_others() -> None:
    """Two managers that led at once gave them out: pods of both jobs would wait for each other for ever."""
    seen = waiting(host_job(status=PORTS), ports_are_of="team/bert")
    plan = reconcile(seen)
    told = changes(plan)
    assert (told["hostPort"], told["attempt"]) == (None, 2)
    assert not told.keys() & {"failures", "disruptions", "restarts"}
    assert told["conditions"][0]["reason"] == "PortsTaken"
    assert "job team/bert has ports of this one" in told["conditions"][0]["message"]
    assert [one.target.key.name for one in actions(plan, Delete)] == ["resnet-worker-0", "resnet-worker-1"]


@pytest.mark.parametrize(
    ("other", "keeps_them"),
    [
        ({}, True),
        ({"status": {"hostPort": 35020}}, True),
        ({"status": {"hostPort": 35040}}, False),
        ({"status": {"hostPort": 34960}}, False),
        ({"status": {}}, False),
        ({"status": {"hostPort": 35000, "phase": "Completed"}}, False),
        ({"metadata": {"creationTimestamp": NOW.isoformat()}}, False),
        ({"uid": "older", "metadata": {"creationTimestamp": (NOW - seconds(11)).isoformat()}}, True),
        ({"uid": "b"}, False),
    ],
)
def test_of_two_jobs_with_the_same_ports_the_older_one_keeps_them(
    other: dict[str, Any], *, keeps_them: bool
) -> None:
    """Of the same second the one of the smaller UID: whoever looks, says the same."""
    mine = host_job(uid="a", status={"hostPort": 35000})
    one = host_job(**{"name": "bert", "uid": "0", "status": {"hostPort": 35000}, **other})
    assert holds_before(one, mine) == keeps_them
    assert not holds_before(mine, mine)


def test_a_job_looks_whether_others_have_its_ports_while_it_waits_and_less_and_less_often() -> None:
    job = host_job(status=PORTS)
    assert next_glance(waiting(job, now=NOW)) == NOW + seconds(10)
    assert next_glance(waiting(job, now=NOW + seconds(90))) == NOW + seconds(90 + 50)


ON_HOST = host_job(status=PORTS)
ANNOTATED = {"metadata": {"annotations": {"paddlepaddle.org/port": "35000"}}}


@pytest.mark.parametrize(
    ("seen", "why_not"),
    [
        (make.observed(host_job()), "it has none yet"),
        (waiting(host_job(status=PORTS, **ANNOTATED)), "its user chose them"),
        (waiting(host_job(status={**PORTS, "phase": "Running"})), "it runs"),
        (
            waiting(host_job(status=PORTS), config_map=make.config_map(host_job(status=PORTS))),
            "all have a place",
        ),
        (waiting(host_job(status=PORTS, runPolicy={"suspend": True})), "a suspension gives them back"),
        (waiting(make.paddlejob(status=PORTS)), "it is not on the host network"),
        (make.observed(ON_HOST, placed(ON_HOST, 0, "a"), placed(ON_HOST, 1, "b")), "all have a place"),
    ],
)
def test_but_it_does_not_look_nor_begin_anew_without_need(seen: Observed, why_not: str) -> None:
    assert not may_give_way(seen), why_not
    assert next_glance(seen) is None
