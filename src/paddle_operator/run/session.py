"""One run: the real operator, an API server in memory and this machine as its node, until the jobs end."""

import asyncio
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto
from typing import Any

import msgspec
from rich.console import Console

from paddle_operator.api.documents import write_documents
from paddle_operator.api.meta import Manifest
from paddle_operator.api.names import ANNOTATION_PORT, PORTS_PER_POD
from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS, Target
from paddle_operator.app import PaddleJobManager
from paddle_operator.cluster import NotFound, Scope
from paddle_operator.local.machine import Block
from paddle_operator.local.node import LocalNode
from paddle_operator.memory.cluster import MemoryCluster
from paddle_operator.paddlejob.ports import ports_needed

from .gather import Gatherer, Line
from .scene import Scene
from .screen import PlainScreen, Screen
from .shared_logs import SharedLogs
from .workspace import Workspace

LOOKS_PER_SECOND = 5


class End(Enum):
    FINISHED = auto()
    TIMED_OUT = auto()
    INTERRUPTED = auto()


@dataclass(frozen=True)
class Result:
    end: End
    jobs: tuple[PaddleJob, ...]
    manifests: tuple[Manifest, ...]
    """The same jobs, whole."""
    scene: Scene


@dataclass
class Session:
    memory: MemoryCluster
    node: LocalNode
    block: Block
    gatherer: Gatherer
    screen: Screen
    place: Workspace
    now: Callable[[], datetime]
    timeout_seconds: float | None = None
    _shared_logs: SharedLogs = field(default_factory=SharedLogs)
    _interrupts: asyncio.Event = field(default_factory=asyncio.Event)
    _killed: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, jobs: Sequence[PaddleJob], config_maps: Sequence[Manifest]) -> Result:
        for manifest in config_maps:
            await self.memory.create(CONFIG_MAPS, manifest)
        for job in jobs:
            await self.memory.create(PADDLE_JOBS, self._manifest(job))
        async with asyncio.TaskGroup() as tasks:
            self._heed_signals()
            parts = [
                tasks.create_task(self.node.run()),
                tasks.create_task(PaddleJobManager(self.memory, now=self.now).run()),
                tasks.create_task(self.gatherer.follow_pods()),
                tasks.create_task(self.gatherer.follow_jobs()),
            ]
            try:
                return await self._see_through()
            finally:
                for part in parts:
                    part.cancel()

    async def _see_through(self) -> Result:
        end = await self._until_end()
        # From here on there is nothing to ask for any more: a signal kills.
        self._interrupts.set()
        manifests = self._jobs_as_they_are()
        jobs = tuple(msgspec.json.decode(msgspec.json.encode(one), type=PaddleJob) for one in manifests)
        await self._clear_away(jobs)
        await self._read_to_the_end()
        if self.place.kept != self.place.root:
            self.place.objects.write_bytes(write_documents(self.memory.history.last_seen()))
        return Result(end, jobs, manifests, self.gatherer.scene(jobs))

    def _jobs_as_they_are(self) -> tuple[Manifest, ...]:
        """Or as they were last: one that has ended may be deleted by now (ttlSecondsAfterFinished)."""
        everything = self.memory.history.last_seen()
        return tuple(one for one in everything if one.get("kind") == PADDLE_JOBS.kind)

    async def _until_end(self) -> End:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.timeout_seconds if self.timeout_seconds is not None else None
        while True:
            scene = await self._show()
            if all(job.finished for job in scene.jobs):
                return End.FINISHED
            if self._interrupts.is_set():
                self._say("Stopping the jobs. Ctrl-C again kills them.")
                return End.INTERRUPTED
            if deadline is not None and loop.time() >= deadline:
                self._say("Out of time. Stopping the jobs; Ctrl-C kills them.")
                return End.TIMED_OUT
            await _first_of(self._interrupts, 1 / LOOKS_PER_SECOND)

    async def _clear_away(self, jobs: Sequence[PaddleJob]) -> None:
        """Delete the jobs and wait for their pods to go, as gracefully as these ask for."""
        for job in jobs:
            with suppress(NotFound):
                await self.memory.delete(Target.of(PADDLE_JOBS, job))
        loop = asyncio.get_running_loop()
        patience = loop.time() + 1
        while (left := (await self.memory.list(PODS, Scope())).items) and not self._killed.is_set():
            if patience and loop.time() > patience:
                patience = 0.0
                self._say(f"Waiting for {len(left)} pods to end. Ctrl-C kills them.")
            await _first_of(self._killed, 1 / LOOKS_PER_SECOND)

    async def _read_to_the_end(self) -> None:
        before = -1
        while before != (before := self.gatherer.bytes_read) and not self._killed.is_set():
            self._print_logs(self.gatherer.read())
            await asyncio.sleep(0)

    async def _show(self) -> Scene:
        scene, lines = await self.gatherer.look()
        self._print_logs(lines)
        self._draw(lambda screen: screen.show(scene))
        return scene

    def _print_logs(self, lines: Sequence[Line]) -> None:
        self._draw(lambda screen: screen.print_logs(lines))
        for told in self._shared_logs.heed(lines):
            self._say(f"warning: {told}")

    def _say(self, text: str) -> None:
        self._draw(lambda screen: screen.say(text))

    def _draw(self, draw: Callable[[Screen], None]) -> None:
        """A closed terminal, or a reader of a pipe that is gone, is as good as a Ctrl-C: with grace."""
        try:
            draw(self.screen)
        except OSError:
            self.screen = PlainScreen(Console(quiet=True), logs=False)
            self._interrupts.set()

    def _manifest(self, job: PaddleJob) -> Manifest:
        document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(job))
        metadata = job.metadata
        # Paddle's launcher listens on all interfaces: jobs that share a machine cannot share a port.
        blocks = ports_needed(job) // PORTS_PER_POD if job.on_host_network else 1
        annotations = dict(metadata.annotations)
        if ANNOTATION_PORT not in annotations:
            annotations[ANNOTATION_PORT] = str(self.block.ports(blocks))
        return {
            "apiVersion": PADDLE_JOBS.api_version,
            "kind": PADDLE_JOBS.kind,
            "metadata": {
                "name": metadata.name,
                "namespace": metadata.namespace,
                "labels": metadata.labels,
                "annotations": annotations,
            },
            "spec": document["spec"],
        }

    def _heed_signals(self) -> None:
        """The first one asks, the second one kills."""

        def heed() -> None:
            (self._killed if self._interrupts.is_set() else self._interrupts).set()

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
                asyncio.get_running_loop().add_signal_handler(number, heed)


async def _first_of(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
