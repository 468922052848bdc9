"""One real node for all tests in here: kubelet, containers, DNS. They need root and Debian's containerd."""

from collections.abc import Iterator

import pytest
from real_cluster import ACCELERATOR, Cluster
from world import World, unique_name

from testbed.box import require_means
from testbed.controlplane import ControlPlane
from testbed.errors import ControlPlaneError
from testbed.node_services import Hardware


@pytest.fixture(scope="session")
def means() -> None:
    try:
        require_means()
    except ControlPlaneError as error:
        pytest.skip(f"no real node here: {error}")


@pytest.fixture(scope="session")
def apiserver(means: None) -> Iterator[ControlPlane]:
    """In place of the control plane without a node."""
    with ControlPlane(unique_name("node"), node=Hardware(gpus=4, labels=(ACCELERATOR,))) as plane:
        yield plane


@pytest.fixture
def cluster(world: World) -> Cluster:
    return Cluster(world)
