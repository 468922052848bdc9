"""What others have in the namespace is neither taken over nor taken for ours, and does not start our pods."""

from itertools import combinations, product

import pytest
from simulator.life import Life, Workload, live
from simulator.oracle import undisturbed
from simulator.workloads import IMPOSTOR, MISFIT, job

from paddle_operator.api.names import GROUP, pod_name
from paddle_operator.api.paddlejob import Role
from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS, SERVICES

FOREIGN_MAP = {"metadata": {"name": "resnet"}, "data": {"color": "blue"}}
FOREIGN_SERVICE = {"metadata": {"name": "resnet-worker-1"}, "spec": {"selector": {"app": "web"}}}


def made_pods(life: Life) -> list[str]:
    return [request.key.name for request in life.witness.writes if request.resource == PODS]


@pytest.mark.parametrize(
    ("name", "stranger"), [("fails", "impostor"), ("completes-by-default", "resnet-misfit-1")]
)
def test_a_stranger_is_as_it_was_born(name: str, stranger: str) -> None:
    life, _ = undisturbed(name)
    births = [change.after for change in life.history.entries if change.resource == PODS]
    born = next(pod for pod in births if pod is not None and pod["metadata"]["name"] == stranger)
    assert life.history.of_kind(PODS)[stranger] == born


@pytest.mark.parametrize("intranet", ["PodIP", "Service", "Host"])
def test_no_pod_is_made_while_a_foreign_config_map_would_start_it(intranet: str) -> None:
    life = live(Workload(job(intranet=intranet), others=((CONFIG_MAPS, FOREIGN_MAP),)))
    assert made_pods(life) == []
    assert "ConfigMapTaken" in str(life.job["status"])


def test_no_pod_is_made_while_a_foreign_service_would_lead_peers_astray() -> None:
    life = live(Workload(job(intranet="Service"), others=((SERVICES, FOREIGN_SERVICE),)))
    assert made_pods(life) == []
    assert "service resnet-worker-1 exists and does not belong to this job" in str(life.job["status"])
    assert life.history.of_kind(SERVICES)["resnet-worker-1"]["spec"] == FOREIGN_SERVICE["spec"]


def test_nor_if_a_pod_without_a_slot_names_the_job() -> None:
    life = live(Workload(job(), others=((CONFIG_MAPS, FOREIGN_MAP),), misfits=(MISFIT,)))
    assert made_pods(life) == []


def test_children_of_two_jobs_are_never_called_alike() -> None:
    """Whatever the jobs are called: role and number stand last, with a dash before each."""
    jobs = ["a", "a-worker", "a-worker-0", "a-ps-0", "a-ps", "a-worker-0-ps-1", "worker", "worker-0"]
    names = {one: {pod_name(one, *slot) for slot in product(Role, range(12))} for one in jobs}
    assert [pair for pair in combinations(jobs, 2) if names[pair[0]] & names[pair[1]]] == []


FIRST_UID = "00000000-0000-4000-8000-000000000001"
OF_ANOTHER = {"apiVersion": f"{GROUP}/v1", "kind": "PaddleJob", "name": "bert", "uid": FIRST_UID}


def test_a_pod_of_another_job_that_has_our_name_is_said_and_left_to_it() -> None:
    """Somebody made it by hand, and says that it is the other job's."""
    metadata = {"name": "resnet-worker-1", "ownerReferences": [{**OF_ANOTHER, "controller": True}]}
    pod = {**IMPOSTOR, "metadata": metadata}
    others = ((PADDLE_JOBS, job(workers=1, name="bert")), (PODS, pod))
    life = live(Workload(job(), others=others))
    assert "pod resnet-worker-1 exists and does not belong to this job" in str(life.job["status"])
    assert life.history.of_kind(PODS)["resnet-worker-1"]["metadata"]["ownerReferences"][0]["name"] == "bert"
    assert life.jobs["bert"]["status"]["phase"] == "Completed"
    assert {one.verb for one in life.witness.writes if one.key.name == "resnet-worker-1"} == {"create"}
