"""A node on a cluster in memory, for tests that make pods by hand."""

import asyncio
import socket
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

from paddle_operator.api.core import ContainerStatus, Pod
from paddle_operator.api.meta import Key, Manifest
from paddle_operator.api.names import LABEL_ATTEMPT
from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS, SERVICES, Target
from paddle_operator.cluster import Scope, Verb
from paddle_operator.local.images import Images
from paddle_operator.local.logs import log_file
from paddle_operator.local.machine import Block
from paddle_operator.local.names import Names
from paddle_operator.local.node import Bell, LocalNode
from paddle_operator.local.pod_life import Place
from paddle_operator.local.supplies import Supplies
from paddle_operator.local.volumes import Shelf
from paddle_operator.memory.cluster import MemoryCluster

TEAM, JOB = "team", "mnist"
PATIENCE = 20.0
"""Others use this machine too."""
PEERS = {"configMapRef": {"name": "peers"}}
STUBBORN = "trap 'echo no' TERM; echo ready; while :; do sleep 0.02; done"
POLITE = "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.02; done"


class Laptop:
    """A node on a cluster in memory, one PaddleJob, and no operator: the test makes the pods."""

    def __init__(self, folder: Path, *, isolates: bool = False) -> None:
        self.folder = folder
        self.ahead = timedelta()
        """By how much the clock of the node goes before that of the machine."""
        self.memory = MemoryCluster(self.now, {})
        self.marker = uuid.uuid4().hex
        bell, supplies = Bell(), Supplies(self.memory)
        place = Place(
            images={Key(TEAM, JOB): Images({}, folder)},
            shelf=Shelf(folder / "pods", folder / "claims", supplies),
            logs=folder / "logs",
            scratch=folder / "scratch",
            isolates=isolates,
            now=self.now,
            changed=bell.next_ring,
            hosts="127.0.0.1 localhost",
            names=Names(),
        )
        place.scratch.mkdir()
        # A block that holds no port: these pods listen on none.
        self.block = Block(7, [socket.socket()])
        self.node = LocalNode(self.memory, supplies, place, self.block, {"cpu": "2", "memory": "1Gi"}, bell)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    async def create_job(self) -> None:
        spec: Manifest = {"worker": {"template": {"spec": {"containers": []}}}}
        manifest = {"metadata": {"name": JOB, "namespace": TEAM}, "spec": spec}
        self.job = Target.of(PADDLE_JOBS, await self.memory.create(PADDLE_JOBS, manifest))

    @property
    def owner(self) -> Manifest:
        return {"kind": "PaddleJob", "name": JOB, "uid": self.job.uid, "controller": True}

    async def create_map(self, name: str, **data: str) -> None:
        metadata = {"name": name, "namespace": TEAM, "ownerReferences": [self.owner]}
        await self.memory.create(CONFIG_MAPS, {"metadata": metadata, "data": data})

    def container(self, script: str, name: str = "paddle", **fields: Any) -> Manifest:
        return {"name": name, "image": "any", "command": ["sh", "-c", script, self.marker], **fields}

    async def create_service(self, name: str) -> None:
        metadata = {"name": name, "namespace": TEAM, "ownerReferences": [self.owner]}
        await self.memory.create(SERVICES, {"metadata": metadata, "spec": {"clusterIP": "None"}})

    async def create(
        self,
        *containers: Manifest,
        name: str = "mnist-worker-0",
        labels: Mapping[str, str] = MappingProxyType({}),
        **spec: Any,
    ) -> Target:
        metadata = {"name": name, "namespace": TEAM, "labels": {**labels}, "ownerReferences": [self.owner]}
        body = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": list(containers)}
        return Target.of(PODS, await self.memory.create(PODS, {"metadata": metadata, "spec": body | spec}))

    async def run(self, script: str, **fields: Any) -> Target:
        return await self.create(self.container(script), **fields)

    async def seen(self, pod: Target, is_last: Callable[[Pod | None], bool]) -> list[Pod | None]:
        """The pod as it was after each change, from its birth on; None when it is gone."""
        states: list[Pod | None] = []
        async with asyncio.timeout(PATIENCE), aclosing(self.memory.watch(PODS, Scope(), "0")) as changes:
            async for change in changes:
                if isinstance(change.object, Pod) and change.object.metadata.uid == pod.uid:
                    states.append(None if change.verb is Verb.DELETED else change.object)
                    if states[-1] is None or is_last(states[-1]):
                        break
        return states

    async def until(self, pod: Target, holds: Callable[[Pod], bool]) -> Pod:
        *_, last = await self.seen(pod, lambda state: state is not None and holds(state))
        assert last is not None, "the pod is gone"
        return last

    async def until_phase(self, pod: Target, phase: str) -> Pod:
        return await self.until(pod, lambda one: one.status.phase == phase)

    async def until_gone(self, pod: Target) -> float:
        """How long it took."""
        begun = time.monotonic()
        await self.seen(pod, lambda state: state is None)
        return time.monotonic() - begun

    async def expire(self, pod: Target) -> None:
        """Its deadline has passed."""
        self.ahead += timedelta(seconds=100)
        await self.memory.patch(pod, {"spec": {"activeDeadlineSeconds": 1}})

    async def until_it_says(self, pod: Target, text: str, container: str = "paddle") -> None:
        deadline = time.monotonic() + PATIENCE
        while text not in self.log(pod, container):
            assert time.monotonic() < deadline, self.log(pod, container)
            await asyncio.sleep(0.01)

    async def until_ready(self, pod: Target) -> None:
        """It runs, the node knows, and its traps are set."""
        await self.until_phase(pod, "Running")
        await self.until_it_says(pod, "ready")

    def log(self, pod: Target, container: str = "paddle") -> str:
        file = log_file(self.folder / "logs", pod.key, container)
        return file.read_text() if file.exists() else ""

    def stored(self, pod: Target) -> Manifest:
        found = self.memory.manifest(PODS, pod.key)
        assert found is not None
        return found

    def processes(self) -> list[str]:
        found = []
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                found.append(entry.read_bytes().decode(errors="replace"))
        return [words for words in found if self.marker in words]


@asynccontextmanager
async def powered(laptop: Laptop) -> AsyncIterator[Laptop]:
    await laptop.create_job()
    running = asyncio.create_task(laptop.node.run())
    try:
        yield laptop
        assert not running.done()
    finally:
        running.cancel()
        await asyncio.wait([running])
        laptop.block.__exit__()
    assert laptop.processes() == []


async def until(holds: Callable[[], bool]) -> None:
    """For what nobody tells."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


def only(pod: Pod) -> ContainerStatus:
    (status,) = pod.status.container_statuses
    return status


def is_waiting(pod: Pod) -> bool:
    return any(
        one.state.waiting is not None and one.state.waiting.message for one in pod.status.container_statuses
    )


def is_missing(path: Path) -> bool:
    return not path.exists()


async def remade(laptop: Laptop, script: str, attempt: int, **fields: Any) -> Target:
    """A pod of the same name, as the operator makes it for another try."""
    return await laptop.run(script, labels={LABEL_ATTEMPT: str(attempt)}, **fields)
