"""One real node for all tests in here: kubelet, containers, DNS. They need root and Debian's containerd."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from real_cluster import ACCELERATOR, Cluster
from world import World, unique_name

from testbed.controlplane import ControlPlane
from testbed.node_services import Hardware


@pytest.fixture(scope="session")
def apiserver(means: None) -> Iterator[ControlPlane]:
    """In place of the control plane without a node."""
    with ControlPlane(unique_name("node"), node=Hardware(gpus=4, labels=(ACCELERATOR,))) as plane:
        yield plane


@pytest.fixture
def cluster(world: World) -> Cluster:
    return Cluster(world)


LAST = "test_nothing_is_missing_and_nothing_unused"
PARTIAL = pytest.StashKey[str]()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What compares the traces of all tests in here comes last, and has to know whether it is all of them."""
    items.sort(key=lambda item: item.name == LAST)
    collected = {item.path for item in items}
    missing = sorted(file.name for file in Path(__file__).parent.glob("test_*.py") if file not in collected)
    config.stash[PARTIAL] = "-k is given" if config.option.keyword else ", ".join(missing)


@pytest.fixture
def whole_run(pytestconfig: pytest.Config) -> str:
    """Empty; or why this is no run of all tests in here."""
    return pytestconfig.stash[PARTIAL]


OUTCOMES = pytest.StashKey[dict[str, str]]()


@pytest.fixture
def outcomes(pytestconfig: pytest.Config) -> dict[str, str]:
    """What each document came to; printed at the end of the run."""
    return pytestconfig.stash.setdefault(OUTCOMES, {})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for document, outcome in sorted(config.stash.get(OUTCOMES, {}).items()):
        terminalreporter.write_line(f"{document:<32} {outcome}")
