"""What others have in the namespace is neither taken over nor taken for ours, and does not start our pods."""

import pytest
from oracle import undisturbed
from simulated import Life, Workload, live
from workloads import MISFIT, job

from paddle_operator.api.resources import CONFIG_MAPS, PODS, SERVICES

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
