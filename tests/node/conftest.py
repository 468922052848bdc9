"""One real node for all tests in here: kubelet, containers, DNS. They need root and Debian's containerd.

The tests of one file run in one process, those of several files in several (`pytest -n 2 --dist=loadfile`): a
node has much time. A test that is marked `alone` has it for itself. When all is done, the rights of the
operator are compared with what the tests made it do.
"""

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import used_rights
from node_room import Room
from real_cluster import ACCELERATOR, Cluster
from world import World, unique_name

from testbed.controlplane import ControlPlane
from testbed.node_services import Hardware

# Processes of `pytest -n` inherit it from the first one.
NODE = os.environ.setdefault("PADDLE_OPERATOR_TEST_NODE", unique_name("node"))
FOLDER = Path(__file__).parent
ROOM = Room(NODE)
_inside: tuple[Path, bool] | None = None


def _plane() -> ControlPlane:
    return ControlPlane(NODE, node=Hardware(gpus=4, labels=(ACCELERATOR,)))


@pytest.fixture(scope="session")
def apiserver(means: None) -> ControlPlane:
    """In place of the control plane without a node. It goes when all processes have ended."""
    plane = _plane()
    plane.up()
    return plane


@pytest.fixture
def cluster(world: World) -> Cluster:
    return Cluster(world)


OUTCOMES = pytest.StashKey[dict[str, str]]()


@pytest.fixture
def outcomes(pytestconfig: pytest.Config) -> dict[str, str]:
    """What each document, fault or way came to; printed at the end of the run."""
    return pytestconfig.stash.setdefault(OUTCOMES, {})


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those who want the node alone come last: before them, several at once have work."""
    alone = {item.path for item in items if _is_alone(item)}
    items.sort(key=lambda item: item.path in alone)


def _is_alone(item: pytest.Item) -> bool:
    return item.get_closest_marker("alone") is not None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, Any, Any]:
    """In the room from the first test of a file to its last, as fixtures of the file live that long."""
    global _inside  # noqa: PLW0603 (of the process, as the lock is)
    if FOLDER not in item.path.parents:
        return (yield)
    wanted = item.path, _is_alone(item)
    if _inside != wanted:
        ROOM.leave()
        ROOM.enter(alone=wanted[1])
        _inside = wanted
    result = yield
    if nextitem is None or nextitem.path != item.path:
        ROOM.leave()
        _inside = None
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    if hasattr(config, "workeroutput"):
        config.workeroutput["outcomes"] = config.stash.get(OUTCOMES, {})
        return
    if _plane().status():
        _compare_rights(session)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A process of `pytest -n` has ended; one that crashed has handed over nothing."""
    told = node.config.stash.setdefault(OUTCOMES, {})
    told.update(getattr(node, "workeroutput", {}).get("outcomes", {}))


def _compare_rights(session: pytest.Session) -> None:
    """Only a run of all tests in here shows all that is used."""
    config = session.config
    told = config.stash.setdefault(OUTCOMES, {})
    asked = {Path(argument).resolve() for argument in config.args}
    if config.option.keyword or FOLDER not in asked or session.testsfailed:
        told["rights"] = "not compared: not all tests of the node were run, or some failed"
        return
    table, wrong = used_rights.compare(_plane().audit_log)
    told.update(table)
    told["rights"] = "; ".join(wrong) or "nothing is missing, nothing is unused"
    if wrong:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for document, outcome in sorted(config.stash.get(OUTCOMES, {}).items()):
        terminalreporter.write_line(f"{document:<32} {outcome}")


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and _plane().folder.exists():
        _plane().down()
        ROOM.remove()
