"""Managers that stand by, lead, lose the lease and stop, on a cluster in memory and under a virtual clock."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import make
import pytest
from scripted import DAY_ZERO, loop_time

from paddle_operator.api.crd import paddle_job_schema
from paddle_operator.api.meta import Key, KubeObject, Manifest
from paddle_operator.api.resources import LEASES, PADDLE_JOBS, PODS, AnyResource, Target
from paddle_operator.cluster import Forbidden, Scope, Unreachable
from paddle_operator.manager import Election, Manager, Options
from paddle_operator.memory.cluster import MemoryCluster
from paddle_operator.paddlejob.observed import Settings
from paddle_operator.serve.metrics import Metrics

pytestmark = pytest.mark.looptime

LEASE = Key("system", "lease")


def now() -> datetime:
    return DAY_ZERO + timedelta(seconds=loop_time())


class Connection:
    """One manager's way to the cluster that all share; it can be cut, and notes who wrote what."""

    def __init__(self, memory: MemoryCluster, name: str, writes: list[tuple[str, str]]) -> None:
        self._memory = memory
        self._name = name
        self._writes = writes
        self.is_cut = False
        self.hidden = ""
        """A namespace that it has no right to see."""

    async def get(self, resource: Any, key: Key) -> Any:
        return await self._memory.get(resource, key)

    async def list(self, resource: Any, scope: Scope) -> Any:
        if self.hidden and scope.namespace == self.hidden:
            raise Forbidden(f"not in {self.hidden}")
        return await self._memory.list(resource, scope)

    def watch(self, resource: Any, scope: Scope, since: str) -> Any:
        return self._memory.watch(resource, scope, since)

    async def patch(self, target: Target, body: Manifest, *, subresource: str = "") -> KubeObject:
        self._note(target.resource, "patch")
        return await self._memory.patch(target, body, subresource=subresource)

    async def create(self, resource: Any, manifest: Manifest) -> Any:
        self._note(resource, "create")
        return await self._memory.create(resource, manifest)

    async def delete(self, target: Target, *, as_seen: bool = False, force: bool = False) -> None:
        self._note(target.resource, "delete")
        await self._memory.delete(target, as_seen=as_seen, force=force)

    def _note(self, resource: AnyResource, verb: str) -> None:
        if self.is_cut:
            raise Unreachable("cut")
        if resource != LEASES:
            self._writes.append((self._name, f"{verb} {resource}"))


class Team:
    """Managers with names, of one cluster."""

    def __init__(self) -> None:
        self.memory = MemoryCluster(now, {PADDLE_JOBS: paddle_job_schema()})
        self.writes: list[tuple[str, str]] = []
        self.managers: dict[str, Manager] = {}
        self.connections: dict[str, Connection] = {}
        self.stops: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, name: str, *, elects: bool = True, **options: object) -> None:
        self.connections[name] = connection = Connection(self.memory, name, self.writes)
        election = Election(LEASE, name) if elects else None
        wanted = Options(election=election, **options)  # type: ignore[arg-type]
        self.managers[name] = Manager(connection, wanted, now, Metrics(), loop_time)
        self.stops[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(self.managers[name].run(self.stops[name]))

    async def stop(self, name: str) -> None:
        self.stops[name].set()
        await self.tasks.pop(name)

    async def submit(self, name: str, namespace: str = "team", **spec: Any) -> None:
        manifest = make.manifest(name, 1, **spec)
        manifest["metadata"]["namespace"] = namespace
        await self.memory.create(PADDLE_JOBS, manifest)
        await asyncio.sleep(0.5)

    async def pods(self, namespace: str = "") -> list[str]:
        listing = await self.memory.list(PODS, Scope(namespace))
        return sorted(pod.metadata.name for pod in listing.items)

    def writers(self) -> set[str]:
        found = {name for name, _ in self.writes}
        self.writes.clear()
        return found

    def readiness(self, name: str) -> tuple[int, str]:
        reply = self.managers[name].readiness()
        return reply.status, reply.body.decode()


@asynccontextmanager
async def team(*names: str) -> AsyncIterator[Team]:
    made = Team()
    for name in names:
        made.start(name)
        await asyncio.sleep(0.1)
    try:
        yield made
    finally:
        for name in list(made.tasks):
            await made.stop(name)


async def test_only_the_leader_works_and_both_are_ready() -> None:
    async with team("a", "b") as both:
        await both.submit("resnet")
        assert await both.pods() == ["resnet-worker-0"]
        assert both.writers() == {"a"}
        assert both.readiness("a") == (200, "leads\n")
        assert both.readiness("b") == (200, "stands by, a leads\n")


async def test_one_that_stops_hands_over_within_two_seconds() -> None:
    async with team("a", "b") as both:
        await asyncio.sleep(5)
        begun = loop_time()
        await both.stop("a")
        await both.submit("resnet")
        await asyncio.sleep(begun + 2 - loop_time())
        assert await both.pods() == ["resnet-worker-0"]
        assert both.writers() == {"b"}


async def test_one_that_is_cut_off_stops_and_stands_by_in_the_same_process() -> None:
    async with team("a", "b") as both:
        await asyncio.sleep(5)
        both.connections["a"].is_cut = True
        await asyncio.sleep(10)
        await both.submit("resnet")
        assert both.writers() == {"b"}
        both.connections["a"].is_cut = False
        await asyncio.sleep(2)
        assert both.readiness("a") == (200, "stands by, b leads\n")
        await both.stop("b")
        both.writes.clear()
        await both.submit("second")
        await asyncio.sleep(1.5)
        assert await both.pods() == ["resnet-worker-0", "second-worker-0"]
        assert both.writers() == {"a"}


async def test_without_an_election_it_works_at_once() -> None:
    async with team() as alone:
        alone.start("a", elects=False)
        await alone.submit("resnet")
        assert await alone.pods() == ["resnet-worker-0"]
        assert alone.readiness("a") == (200, "ready\n")


async def test_several_namespaces_are_followed_and_no_other() -> None:
    async with team() as alone:
        alone.start("a", elects=False, namespaces=("red", "blue"))
        for namespace in ("red", "blue", "green"):
            await alone.submit("resnet", namespace)
        assert await alone.pods("red") == await alone.pods("blue") == ["resnet-worker-0"]
        assert await alone.pods("green") == []


async def test_jobs_of_several_namespaces_share_the_ports_of_the_nodes() -> None:
    async with team() as alone:
        alone.start("a", elects=False, namespaces=("red", "blue"))
        for namespace in ("red", "blue"):
            await alone.submit("resnet", namespace, intranet="Host")
        jobs = [await alone.memory.get(PADDLE_JOBS, Key(where, "resnet")) for where in ("red", "blue")]
        ports = [job.status.host_port for job in jobs]
        assert len(set(ports)) == 2
        assert all(ports)


async def test_a_scheduler_that_is_not_served_is_said_on_each_job() -> None:
    async with team() as alone:
        alone.start("a", elects=False, settings=Settings(scheduling="volcano"))
        await alone.submit("resnet")
        job = await alone.memory.get(PADDLE_JOBS, Key("team", "resnet"))
        said = {one.type: one for one in job.status.conditions}["GangScheduled"]
        assert (said.status, said.reason) == ("False", "NotServed")
        assert "--scheduling=volcano" in said.message
        assert await alone.pods() == ["resnet-worker-0"]


async def test_a_namespace_that_may_not_be_seen_stops_no_job_in_another() -> None:
    async with team() as alone:
        alone.start("a", elects=False, namespaces=("red", "blue"))
        alone.connections["a"].hidden = "blue"
        await alone.submit("resnet", "red", intranet="Host")
        await asyncio.sleep(5)
        assert await alone.pods("red") == ["resnet-worker-0"]
        status, text = alone.readiness("a")
        assert status == 503
        assert text.startswith("waits for the lists of paddlejobs in blue, pods in blue")


async def test_a_manager_that_fails_takes_the_process_down_and_gives_its_lease_back() -> None:
    async with team("a", "b") as both:
        await asyncio.sleep(5)
        manager = both.managers["a"]._managers[0]
        manager._jobs._tell = None  # type: ignore[assignment, method-assign]
        task = both.tasks.pop("a")
        begun = loop_time()
        await both.submit("resnet")
        with pytest.raises(BaseExceptionGroup):
            await task
        await asyncio.sleep(begun + 2 - loop_time())
        assert both.readiness("b") == (200, "leads\n")
        assert both.writers() == {"b"}


async def test_one_that_is_told_to_stop_while_it_stands_by_stops() -> None:
    async with team("a", "b") as both:
        await both.stop("b")
        await both.submit("resnet")
        assert both.writers() == {"a"}


async def test_one_that_cannot_read_the_lease_is_not_ready_and_says_why() -> None:
    async with team() as alone:
        alone.start("a")
        alone.connections["a"].is_cut = True
        await asyncio.sleep(1)
        assert alone.readiness("a") == (503, "lease: cut\n")
        alone.connections["a"].is_cut = False
        await asyncio.sleep(2)
        assert alone.readiness("a") == (200, "leads\n")


async def test_one_that_may_not_see_what_it_shall_follow_neither_leads_nor_is_ready() -> None:
    """A rolling update stops there, and the one before goes on."""
    async with team("a") as both:
        both.start("b", namespaces=("blue",))
        both.connections["b"].hidden = "blue"
        await asyncio.sleep(10)
        assert both.readiness("b")[0] == 503
        await both.stop("a")
        await asyncio.sleep(20)
        assert both.readiness("b")[0] == 503
        assert (await both.memory.get(LEASES, LEASE)).spec.holder_identity == ""
        both.connections["b"].hidden = ""
        await asyncio.sleep(40)
        assert both.readiness("b") == (200, "leads\n")
