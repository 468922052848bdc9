"""What a manager tells of itself while it works: probes, metrics, logs. As a process, on a real server."""

import asyncio
import re
import socket
from collections import Counter

import aiohttp
import make
import pytest
from audit import tally
from conftest import grant, make_namespace
from world import OPERATOR, World

from paddle_operator.api.meta import Key
from paddle_operator.api.resources import PADDLE_JOBS
from testbed.node import FakeNode

pytestmark = pytest.mark.apiserver


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def fetch(port: int, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as response:
        return response.status, await response.text()


async def ready(port: int) -> str:
    """What it says once it is."""
    async with asyncio.timeout(30):
        while True:
            try:
                status, text = await fetch(port, "/readyz")
            except aiohttp.ClientConnectionError:
                status, text = 0, ""
            if status == 200:
                return text
            await asyncio.sleep(0.05)  # as a kubelet does: nothing tells when


def counted(page: str, name: str) -> Counter[str]:
    found = re.findall(rf"^paddle_operator_{name}{{(.*)}} (\S+)$", page, re.MULTILINE)
    return Counter({labels: int(float(value)) for labels, value in found})


async def test_metrics_tell_what_the_audit_log_tells(world: World, node: FakeNode) -> None:
    port = free_port()
    address = f"127.0.0.1:{port}"
    options = (f"--metrics-bind-address={address}", f"--health-probe-bind-address={address}")
    world.start_manager(options=options)
    assert await ready(port) == "ready\n"
    assert await fetch(port, "/healthz") == (200, "ok\n")
    await world.submit(make.manifest(cleanPodPolicy="Always"))
    await world.phase("resnet", "Completed")
    await world.no_pods()  # the last that it does
    _, page = await fetch(port, "/metrics")
    told: Counter[str] = Counter()
    for labels, count in counted(page, "requests_total").items():
        verb, resource = re.findall(r'(?:verb|resource)="([^"]+)"', labels)[::-1]
        if verb != "watch":
            told[f"{verb} {resource}"] += count
    assert told == tally(world.requests())
    assert counted(page, "jobs")['phase="Completed"'] == 1
    assert "paddle_operator_job_start_seconds_count 1.0" in page
    assert counted(page, "job_seconds_count") == {'phase="Completed"': 1}
    assert counted(page, "reconcile_seconds_count")['outcome="complete"'] > 3


async def test_a_manager_without_rights_is_alive_but_not_ready(world: World) -> None:
    port = free_port()
    other = await make_namespace(world.transport, "nobody may look here")
    world.start_manager(namespace=other, options=(f"--health-probe-bind-address=127.0.0.1:{port}",))
    async with asyncio.timeout(30):
        while True:
            try:
                status, text = await fetch(port, "/readyz")
                break
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.05)
    kinds = ("paddlejobs", "pods", "services", "configmaps")
    assert (status, text) == (
        503,
        f"waits for the lists of {', '.join(f'{kind} in {other}' for kind in kinds)}\n",
    )
    assert await fetch(port, "/healthz") == (200, "ok\n")


async def test_one_manager_follows_several_namespaces(world: World, node: FakeNode) -> None:
    other = await make_namespace(world.transport, "second namespace")
    await grant(world, other)
    world.start_manager(namespace=f"{world.namespace},{other}")
    second = World(world.plane, other, world.transport)
    async with second.fake_node():
        for place in (world, second):
            await place.submit(make.manifest())
        for place in (world, second):
            await place.phase("resnet", "Completed")
    job = await world.cluster.get(PADDLE_JOBS, Key(other, "resnet"))
    assert job.status.phase == "Completed"


async def test_it_says_a_line_for_each_change_with_the_jobs_key_and_nothing_else(
    world: World, node: FakeNode
) -> None:
    world.start_manager()
    await world.submit(make.manifest())
    await world.phase("resnet", "Completed")
    lines = world.stop_managers()
    begins = [line["event"] for line in lines[:2]]
    assert begins == ["starts", "ready"]
    assert lines[-1]["event"] == "stopped"
    about_the_job = lines[2:-1]
    assert {line.get("key") for line in about_the_job} == {f"{world.namespace}/resnet"}
    written = tally(world.requests(OPERATOR))
    assert len(about_the_job) <= sum(written.values())
