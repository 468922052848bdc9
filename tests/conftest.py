"""Fixtures of the real API server: one control plane a session, a namespace a test. And the tally."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
import pytest
import sampling
from hypothesis import HealthCheck, settings
from tally import TALLY
from world import OPERATOR, OPERATOR_RULES, SECOND_OPERATOR, World, unique_name

from paddle_operator.api.crd import paddle_job_crd
from paddle_operator.api.resources import PADDLE_JOBS
from paddle_operator.api.rights import LEASE, rules
from paddle_operator.cluster import NotFound, Throttled
from paddle_operator.kube.client import path
from paddle_operator.kube.config import from_file
from paddle_operator.kube.transport import Transport
from testbed.box import require_means
from testbed.controlplane import ControlPlane
from testbed.errors import ControlPlaneError
from testbed.node import FakeNode

# Otherwise Python 3.11 makes an event loop for whoever asks, and pytest-asyncio asks, and nobody closes it.
asyncio.set_event_loop(None)
# A busy machine is no fault of a test.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces"


@pytest.fixture(scope="session")
def means() -> None:
    """Of a real node, and to build its images."""
    try:
        require_means()
    except ControlPlaneError as error:
        pytest.skip(f"no real node here: {error}")


@pytest.fixture(scope="session")
def apiserver() -> Iterator[ControlPlane]:
    """etcd, kube-apiserver and kube-controller-manager for one test run; gone when it ends."""
    with ControlPlane(unique_name("pytest")) as plane:
        yield plane


@pytest.fixture
async def admin(apiserver: ControlPlane) -> AsyncIterator[Transport]:
    async with Transport(from_file(apiserver.kubeconfig)) as transport:
        yield transport


@pytest.fixture
async def namespace(admin: Transport, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """A fresh namespace; its removal is left to the server, as the whole server goes with the session."""
    name = await make_namespace(admin, request.node.name)
    yield name
    await admin.request("DELETE", f"/api/v1/namespaces/{name}")


_count = iter(range(1_000_000))


async def make_namespace(admin: Transport, title: str) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", title.lower().removeprefix("test_")).strip("-")[:40].strip("-")
    name = f"{words}-{next(_count)}"
    await admin.request("POST", "/api/v1/namespaces", body=msgspec.json.encode({"metadata": {"name": name}}))
    return name


@pytest.fixture
async def world(
    apiserver: ControlPlane, admin: Transport, namespace: str, paddle_job_kind: None
) -> AsyncIterator[World]:
    """The namespace with the PaddleJob kind and with an operator account that has its rights and no more."""
    world = World(apiserver, namespace, admin)
    await grant(world, namespace)
    yield world
    lines = world.stop_managers()
    faults = [line for line in lines if line.get("level") in {"error", "critical", "unparsed"}]
    assert not faults, faults


async def grant(world: World, namespace: str) -> None:
    """All that an operator may do where it follows jobs, and where its lease is."""
    role = {"metadata": {"name": OPERATOR}, "rules": [*OPERATOR_RULES, *rules(LEASE)]}
    binding = {
        "metadata": {"name": OPERATOR},
        "subjects": [{"kind": "User", "name": user} for user in (OPERATOR, SECOND_OPERATOR)],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": OPERATOR},
    }
    await world.post(f"{RBAC}/{namespace}/roles", role)
    await world.post(f"{RBAC}/{namespace}/rolebindings", binding)


@pytest.fixture
async def paddle_job_kind(admin: Transport) -> None:
    crd = paddle_job_crd()
    try:
        await admin.request("GET", f"{CRDS}/{crd['metadata']['name']}")
    except NotFound:
        await admin.request("POST", CRDS, body=msgspec.json.encode(crd))
    while True:
        try:
            await admin.request("GET", path(PADDLE_JOBS, "default"))
        except (NotFound, Throttled):
            await asyncio.sleep(0.05)  # a new kind is served within a second, and nothing tells when
        else:
            return


@pytest.fixture
async def node(apiserver: ControlPlane, admin: Transport, namespace: str) -> AsyncIterator[FakeNode]:
    """Plays the pods of the test's namespace."""
    async with World(apiserver, namespace, admin).fake_node() as fake:
        yield fake


def pytest_report_header() -> str:
    return sampling.header()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In a process of `pytest -n`: hand over what was counted here."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["tally"] = dict(TALLY)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Such a process has ended; one that crashed has handed over nothing."""
    TALLY.update(getattr(node, "workeroutput", {}).get("tally", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if TALLY:
        counts = ", ".join(f"{count} {what}" for what, count in sorted(TALLY.items()))
        drawn = f"SAMPLE={sampling.SAMPLE} BASE={sampling.BASE}"
        terminalreporter.write_line(f"simulated: {counts}; the same again: {drawn}")
