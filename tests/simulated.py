"""The unchanged manager on the cluster in memory, under a virtual clock, with faults where a test wants them.

A crash is an exception that nobody catches: before a write, after it without a reply, or after the reply.
The next manager starts on the same store with empty caches, as a process would. Watches can be made to lag.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import Any, TypeVar

from paddle_operator.api.core import Pod
from paddle_operator.api.crd import paddle_job_schema
from paddle_operator.api.meta import Key, KubeObject, Manifest
from paddle_operator.api.names import ANNOTATION_NUDGE
from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.api.resources import (
    CONFIG_MAPS,
    EVENTS,
    PADDLE_JOBS,
    PODS,
    AnyResource,
    Resource,
    Target,
)
from paddle_operator.app import PaddleJobManager
from paddle_operator.cluster import Change, Listing, Scope
from paddle_operator.memory.cluster import MemoryCluster

T = TypeVar("T", bound=KubeObject)
NAMESPACE = "team"
EPOCH = datetime(2026, 11, 18, tzinfo=UTC)


def now() -> datetime:
    return EPOCH + timedelta(seconds=asyncio.get_running_loop().time())


class Crash(BaseException):
    """The process is gone: not an Exception, so that no code of ours can survive it."""


class Moment(Enum):
    BEFORE = auto()
    WITHOUT_REPLY = auto()
    AFTER = auto()


@dataclass(frozen=True)
class CrashAt:
    write: int
    moment: Moment


@dataclass
class FaultyCluster:
    """What the manager sees of the cluster in memory: late, and once in its life with a crash."""

    memory: MemoryCluster
    crash: CrashAt | None = None
    lag_seconds: dict[AnyResource, float] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)
    dying: bool = False

    async def get(self, resource: Resource[T], key: Key) -> T:
        await self._travel()
        return await self.memory.get(resource, key)

    async def list(self, resource: Resource[T], scope: Scope) -> Listing[T]:
        await self._travel()
        return await self.memory.list(resource, scope)

    async def watch(self, resource: Resource[T], scope: Scope, since: str) -> AsyncGenerator[Change[T], None]:
        async with aclosing(self.memory.watch(resource, scope, since)) as changes:
            async for change in changes:
                await asyncio.sleep(self.lag_seconds.get(resource, 0.001))
                yield change

    async def create(self, resource: Resource[T], manifest: Manifest) -> T:
        await self._travel()
        if resource == EVENTS:
            return await self.memory.create(resource, manifest)
        self._may_crash(Moment.BEFORE, f"create {resource} {manifest['metadata']['name']}")
        made = await self.memory.create(resource, manifest)
        self._may_crash(Moment.WITHOUT_REPLY)
        return made

    async def patch(self, target: Target, body: Manifest, *, subresource: str = "") -> KubeObject:
        await self._travel()
        self._may_crash(Moment.BEFORE, f"patch {target.resource}/{subresource} {target.key.name}")
        result = await self.memory.patch(target, body, subresource=subresource)
        self._may_crash(Moment.WITHOUT_REPLY)
        return result

    async def delete(self, target: Target) -> None:
        await self._travel()
        self._may_crash(Moment.BEFORE, f"delete {target.resource} {target.key.name}")
        await self.memory.delete(target)
        self._may_crash(Moment.WITHOUT_REPLY)

    async def _travel(self) -> None:
        await asyncio.sleep(0.001)
        if self.dying:
            raise Crash

    def _may_crash(self, moment: Moment, write: str = "") -> None:
        if write:
            self.writes.append(write)
        if self.crash is None or len(self.writes) != self.crash.write:
            return
        if self.crash.moment is moment:
            raise Crash
        # After the reply: the next thing that the process wants finds it dead.
        self.dying = self.crash.moment is Moment.AFTER


@dataclass
class Kubelet:
    """Binds, addresses, starts, ends and removes pods, a step every half second; notes what each was told."""

    memory: MemoryCluster
    exit_codes: dict[str, int] = field(default_factory=dict)
    run_seconds: float = 5.0
    told: dict[str, dict[str, str]] = field(default_factory=dict)
    _addresses: dict[str, str] = field(default_factory=dict)
    _since: dict[str, float] = field(default_factory=dict)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(0.5)
            self.memory.collect_garbage()
            for pod in (await self.memory.list(PODS, Scope(NAMESPACE))).items:
                if isinstance(pod, Pod):
                    await self._step(pod)

    async def _step(self, pod: Pod) -> None:
        uid, age = pod.metadata.uid, asyncio.get_running_loop().time() - self._since.get(pod.metadata.uid, 0)
        if not pod.spec.node_name:
            if not pod.metadata.terminating:
                self.memory.bind(pod.metadata.key, "node-1")
        elif pod.metadata.terminating:
            self.memory.finish_deletion(pod.metadata.key)
        elif uid not in self._addresses:
            self._addresses[uid] = f"198.18.0.{len(self._addresses) + 1}"
            await self._report(pod, "Pending", {"waiting": {"reason": "CreateContainerConfigError"}})
        elif uid not in self.told:
            # As a real one: at once when the pod is touched, else after its own retry.
            if ANNOTATION_NUDGE in pod.metadata.annotations or age > 12:
                await self._start(pod)
        elif pod.status.phase == "Running" and age > self.run_seconds:
            code = self.exit_codes.get(pod.metadata.name, 0)
            end = {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed"}}
            await self._report(pod, "Failed" if code else "Succeeded", end)

    async def _start(self, pod: Pod) -> None:
        owner = pod.metadata.controller
        assert owner is not None
        document = self.memory._objects.get((CONFIG_MAPS, Key(NAMESPACE, owner.name)))
        if document is not None:
            self.told[pod.metadata.uid] = document["data"]
            await self._report(pod, "Running", {"running": {}})

    async def _report(self, pod: Pod, phase: str, state: Manifest) -> None:
        address = self._addresses[pod.metadata.uid]
        container = {"name": "paddle", "ready": "running" in state, "state": state}
        status = {"phase": phase, "podIP": address, "containerStatuses": [container]}
        self._since[pod.metadata.uid] = asyncio.get_running_loop().time()
        await self.memory.patch(Target.of(PODS, pod), {"status": status}, subresource="status")


@dataclass
class Life:
    """One job from its birth until nothing has moved for a while, with what was seen on the way."""

    memory: MemoryCluster
    kubelet: Kubelet
    writes: list[str]
    crashes: int

    def job(self, name: str = "resnet") -> Manifest:
        return self.memory._find(PADDLE_JOBS, Key(NAMESPACE, name))

    def pods(self) -> dict[str, Manifest]:
        return {key.name: one for (kind, key), one in self.memory._objects.items() if kind == PODS}


async def live(
    manifest: Manifest,
    *,
    crash: CrashAt | None = None,
    lag_seconds: dict[AnyResource, float] | None = None,
    **kubelet: Any,
) -> Life:
    """Let a job live for four minutes of virtual time, which is more than any of these needs."""
    memory = MemoryCluster(now, {PADDLE_JOBS: paddle_job_schema()})
    node = Kubelet(memory, **kubelet)
    placed = {**manifest, "metadata": {**manifest["metadata"], "namespace": NAMESPACE}}
    job: PaddleJob = await memory.create(PADDLE_JOBS, placed)
    assert job.metadata.name
    faulty = FaultyCluster(memory, crash, lag_seconds or {})
    playing = asyncio.create_task(node.run())
    crashes, writes = 0, faulty.writes
    try:
        async with asyncio.timeout(240):
            while True:
                try:
                    # In a task of its own: a group that fails leaves a cancellation behind in Python 3.11.
                    await asyncio.create_task(PaddleJobManager(faulty, NAMESPACE, now).run())
                except* Crash:
                    crashes += 1
                # The next process: its own connection, and no second crash.
                faulty = FaultyCluster(memory, None, faulty.lag_seconds, writes)
                await asyncio.sleep(1)
    except TimeoutError:
        pass
    playing.cancel()
    with suppress(asyncio.CancelledError):
        await playing
    return Life(memory, node, writes, crashes)
