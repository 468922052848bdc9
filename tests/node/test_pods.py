"""The testbed itself: real containers run, end, and talk to each other in every way that a job may use."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from real_cluster import Cluster, pod, service

from testbed.controlplane import ControlPlane
from testbed.errors import ControlPlaneError
from testbed.node_services import KUBE_PROXY, SERVICES, Hardware

TOP = Path(__file__).parents[2]

pytestmark = pytest.mark.node


async def test_a_pod_prints_and_exits_3(cluster: Cluster) -> None:
    cluster.apply(pod("three", "echo hello; exit 3"))
    ended = await cluster.world.pod_until("three", lambda seen: seen.status.phase == "Failed")
    (container,) = ended.status.container_statuses
    assert container.state.terminated is not None
    assert container.state.terminated.exit_code == 3
    assert cluster.logs("three") == "hello\n"


async def test_pods_talk_over_addresses_services_and_names(cluster: Cluster) -> None:
    serve = "mkdir /www; echo served > /www/index.html; exec httpd -f -p 8080 -h /www"
    cluster.apply(
        pod("server", serve),
        service("balanced", "server"),
        service("headless", "server", clusterIP="None", publishNotReadyAddresses=True),
    )
    server = await cluster.world.pod_until("server", lambda seen: seen.status.phase == "Running")
    namespace = cluster.world.namespace
    # In turn: the pod's address, a service's, and the pod's own again by a name of a service without one.
    places = [f"{server.status.pod_ip}:8080", "balanced", f"headless.{namespace}.svc.cluster.local:8080"]
    fetch = [f"until wget -qO- http://{place}/; do sleep 0.2; done" for place in places]
    cluster.apply(pod("client", "; ".join(fetch)))
    await cluster.world.pod_until("client", lambda seen: seen.status.phase == "Succeeded")
    assert cluster.logs("client") == "served\n" * 3


async def test_nothing_can_be_reached_beyond_the_machine(cluster: Cluster) -> None:
    cluster.apply(pod("routes", "ip route; nc -w 2 192.0.2.1 80 </dev/null || echo unreachable"))
    await cluster.world.pod_until("routes", lambda seen: seen.status.phase == "Succeeded")
    assert "default" not in cluster.logs("routes")
    assert "unreachable" in cluster.logs("routes")


@pytest.mark.alone
async def test_gpus_are_counted_and_labels_select(cluster: Cluster) -> None:
    asks = {"resources": {"limits": {"nvidia.com/gpu": 4}}}
    where = {"accelerator": "nvidia-tesla-p100"}
    cluster.apply(
        pod("first", "sleep 600", container=asks, nodeSelector=where, terminationGracePeriodSeconds=0)
    )
    await cluster.world.pod_until("first", lambda seen: seen.status.phase == "Running")
    cluster.apply(pod("second", "true", container=asks, nodeSelector=where))
    waiting = cluster.kubectl("wait", "pod/second", "--for=condition=PodScheduled=false", "--timeout=30s")
    assert "condition met" in waiting
    cluster.kubectl("delete", "pod", "first", "--grace-period=0")
    await cluster.world.pod_until("second", lambda seen: seen.status.phase == "Succeeded")


@pytest.mark.alone
def test_status_tells_which_service_of_the_node_is_away(apiserver: ControlPlane) -> None:
    assert [one.component for one in apiserver.status() if one.healthy][-4:] == list(SERVICES)
    apiserver.node.stop_service(KUBE_PROXY)
    try:
        status = subprocess.run(
            [sys.executable, "-m", "testbed", "status", f"--name={apiserver.name}"],
            cwd=TOP,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        apiserver.node.start_service(KUBE_PROXY)
    assert status.returncode == 1
    (away,) = (line for line in status.stdout.splitlines() if not line.endswith(" healthy"))
    assert re.fullmatch(r"kube-proxy .* not running", away)
    assert all(one.healthy for one in apiserver.status())


def test_a_node_that_is_up_with_other_hardware_is_not_taken_for_the_one_that_is_asked_for(
    apiserver: ControlPlane,
) -> None:
    assert not ControlPlane(apiserver.name, node=Hardware()).up(), "it is up, and may have more"
    with pytest.raises(ControlPlaneError, match="its node has other GPUs or labels"):
        ControlPlane(apiserver.name, node=Hardware(gpus=1)).up()
    with pytest.raises(ControlPlaneError, match="with a real node"):
        ControlPlane(apiserver.name).up()
