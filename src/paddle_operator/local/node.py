"""The one node of the laptop: scheduler, kubelet and garbage collector of a cluster in memory."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from paddle_operator.api.core import ENDED_PHASES, Pod
from paddle_operator.api.meta import Manifest
from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS, SERVICES, Target
from paddle_operator.cluster import Change, Invalid, NotFound, Scope, Verb
from paddle_operator.memory.cluster import GRACE_SECONDS, MemoryCluster

from .machine import Block
from .pod_life import Place, PodLife
from .supplies import Supplies
from .variables import Surroundings

NODE, NODE_ADDRESS = "localhost", "127.0.0.1"


class Bell:
    """Rings for everybody who was waiting when it rang."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def next_ring(self) -> asyncio.Event:
        return self._event

    def ring(self) -> None:
        self._event.set()
        self._event = asyncio.Event()


@dataclass
class LocalNode:
    memory: MemoryCluster
    supplies: Supplies
    place: Place
    block: Block
    capacity: Mapping[str, str]
    bell: Bell
    """Rung when a config map has come or gone."""
    _lives: dict[str, PodLife] = field(default_factory=dict)
    _deleting: set[str] = field(default_factory=set)
    _deadlines: dict[str, tuple[int, asyncio.Task[None]]] = field(default_factory=dict)

    async def run(self) -> None:
        """Until cancelled; then no process is left."""
        async with asyncio.TaskGroup() as self._tasks:
            self._tasks.create_task(self._follow_pods())
            self._tasks.create_task(self._follow_config_maps())
            self._tasks.create_task(self._follow_services())
            self._tasks.create_task(self._collect_garbage())

    async def _follow_pods(self) -> None:
        async for change in self.memory.watch(PODS, Scope(), "0"):
            self._heed(change)

    async def _follow_config_maps(self) -> None:
        async for _ in self.memory.watch(CONFIG_MAPS, Scope(), "0"):
            self.bell.ring()

    async def _follow_services(self) -> None:
        services = self.place.names.services
        async for change in self.memory.watch(SERVICES, Scope(), "0"):
            assert change.object is not None
            forget_or_learn = services.discard if change.verb is Verb.DELETED else services.add
            forget_or_learn(change.object.metadata.key)
            self._spread_names()

    def _spread_names(self) -> None:
        for life in self._lives.values():
            life.write_hosts()

    async def _collect_garbage(self) -> None:
        async for change in self.memory.watch(PADDLE_JOBS, Scope(), "0"):
            if change.verb is Verb.DELETED:
                self.memory.collect_garbage()

    def _heed(self, change: Change[Pod]) -> None:
        pod = change.object
        assert isinstance(pod, Pod)
        uid, life = pod.metadata.uid, self._lives.get(pod.metadata.uid)
        if change.verb is Verb.DELETED:
            if life is not None:
                self._forget(pod, life)
        elif life is None:
            self._adopt(pod)
        elif pod.metadata.terminating:
            if uid not in self._deleting:
                self._deleting.add(uid)
                self._tasks.create_task(self._delete(pod, life))
        elif pod.spec.active_deadline_seconds is not None:
            self._limit(uid, life, pod.spec.active_deadline_seconds)

    def _adopt(self, pod: Pod) -> None:
        key = pod.metadata.key
        manifest = self.memory.manifest(PODS, key)
        if manifest is None or manifest["metadata"]["uid"] != pod.metadata.uid:
            return
        address = NODE_ADDRESS if manifest["spec"].get("hostNetwork") else self.block.address()
        around = Surroundings(manifest, address, NODE, NODE_ADDRESS, self.capacity, self.supplies)
        self.place.names.addresses[key] = address
        target = Target.of(PODS, pod)

        async def publish(status: Manifest) -> None:
            body = {"metadata": {"uid": target.uid}, "status": status}
            with suppress(NotFound, Invalid):  # gone, or a namesake has its place
                await self.memory.patch(target, body, subresource="status")

        life = self._lives[pod.metadata.uid] = PodLife(self.place, around, publish)
        self._spread_names()
        self.memory.bind(key, NODE)
        self._tasks.create_task(life.live())

    async def _delete(self, pod: Pod, life: PodLife) -> None:
        await life.end(_grace(life))
        stored = self.memory.manifest(PODS, pod.metadata.key)
        # It may have been deleted by force meanwhile, and a namesake may have its place.
        if stored is not None and stored["metadata"]["uid"] == pod.metadata.uid:
            self.memory.finish_deletion(pod.metadata.key)

    def _limit(self, uid: str, life: PodLife, seconds: int) -> None:
        known, timer = self._deadlines.get(uid, (None, None))
        if known == seconds or life.ending:
            return
        if timer is not None:
            timer.cancel()
        self._deadlines[uid] = seconds, self._tasks.create_task(self._expire(life, seconds))

    async def _expire(self, life: PodLife, seconds: int) -> None:
        age = (self.place.now() - life.report.started).total_seconds()
        await asyncio.sleep(seconds - age)
        if life.report.phase not in ENDED_PHASES:
            await life.end(_grace(life), "DeadlineExceeded")

    def _forget(self, pod: Pod, life: PodLife) -> None:
        uid, key, addresses = pod.metadata.uid, pod.metadata.key, self.place.names.addresses
        del self._lives[uid]
        self._deleting.discard(uid)
        if uid in self._deadlines:
            self._deadlines.pop(uid)[1].cancel()
        if addresses.get(key) == life.around.address:  # a namesake may have come already
            del addresses[key]
            self._spread_names()
        self._tasks.create_task(self._clear_away(life))

    async def _clear_away(self, life: PodLife) -> None:
        """Of a pod that was deleted by force something may still run."""
        await life.end(grace=0.0)
        await asyncio.to_thread(life.clear_away)


def _grace(life: PodLife) -> float:
    return float(life.around.pod["spec"].get("terminationGracePeriodSeconds", GRACE_SECONDS))
