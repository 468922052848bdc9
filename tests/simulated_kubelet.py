"""Plays the scheduler, the kubelet and the garbage collector; notes what each pod is told when it starts."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf

from simulated_history import TrueHistory, key_of, owner_of, trains

from paddle_operator.api.meta import Manifest
from paddle_operator.api.names import ANNOTATION_NUDGE
from paddle_operator.api.resources import CONFIG_MAPS, PODS, Target
from paddle_operator.memory.cluster import MemoryCluster

# A real one looks again after 10 to 15 s for a config map that it did not find.
LOOK_AGAIN_SECONDS = 12.0
PACE_SECONDS = 0.5
RUN_SECONDS = 5.0


@dataclass(frozen=True)
class Start:
    """What one pod's training container read when it started."""

    pod: Manifest
    config_map: Manifest

    @property
    def peers(self) -> str:
        """Empty in a map that is not made by the operator."""
        peers: str = self.config_map["data"].get("PADDLE_TRAINER_ENDPOINTS", "")
        return peers

    @property
    def count(self) -> int:
        return len(self.peers.split(","))


@dataclass
class Kubelet:
    """Takes a step with every pod, then rests for its pace, then waits until something changes or falls due.

    Training begins when all peers run, as in a collective job; ``run_seconds`` count from there, by pod name.
    """

    memory: MemoryCluster
    history: TrueHistory
    exit_codes: Mapping[str, int]
    run_seconds: Mapping[str, float]
    pace: Callable[[], float] = lambda: PACE_SECONDS
    started: dict[str, Start] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)
    """By the UID of the pod, as all that follows."""
    _due: dict[str, float] = field(default_factory=dict)
    _nudge_seen: dict[str, str] = field(default_factory=dict)

    @property
    def is_idle(self) -> bool:
        """It will do nothing before somebody else does."""
        return not self._due

    async def run(self) -> None:
        while True:
            seen = self.history.version
            await self._sweep()
            await asyncio.sleep(self.pace())
            try:
                async with asyncio.timeout_at(min(self._due.values(), default=None)):
                    await self.history.reach(seen + 1)
            except TimeoutError:
                pass

    async def _sweep(self) -> None:
        # As they were before the garbage is collected: what is condemned now has still a while to live.
        pods = self.history.of_kind(PODS).values()
        self.memory.collect_garbage()
        present = {pod["metadata"]["uid"] for pod in pods}
        self._due = {uid: due for uid, due in self._due.items() if uid in present}
        for pod in pods:
            if trains(pod) and self.history.of_kind(PODS).get(pod["metadata"]["name"]) is pod:
                await self._step(pod)

    async def _step(self, pod: Manifest) -> None:
        uid, ended = pod["metadata"]["uid"], pod["status"]["phase"] in {"Succeeded", "Failed"}
        if "deletionTimestamp" in pod["metadata"]:
            self.memory.finish_deletion(key_of(pod))
        elif "nodeName" not in pod["spec"]:
            self.memory.bind(key_of(pod), "node-1")
        elif uid not in self.addresses:
            self.addresses[uid] = f"198.18.0.{len(self.addresses) + 1}"
            await self._look_for_config_map(pod)
        elif not ended and "activeDeadlineSeconds" in pod["spec"]:
            killed = {"terminated": {"exitCode": 137, "reason": "Error"}}
            await self._report(pod, "Failed", killed, reason="DeadlineExceeded")
        elif uid not in self.started and not ended:
            await self._look_for_config_map(pod)
        elif not ended and self._due.get(uid, inf) <= _now():
            await self._end(pod)

    async def _look_for_config_map(self, pod: Manifest) -> None:
        """At once when the pod is new or touched, else after a while."""
        uid, nudge = pod["metadata"]["uid"], pod["metadata"]["annotations"].get(ANNOTATION_NUDGE, "")
        if self._nudge_seen.get(uid) == nudge and self._due[uid] > _now():
            return
        self._nudge_seen[uid] = nudge
        name = pod["spec"]["containers"][0]["envFrom"][0]["configMapRef"]["name"]
        config_map = self.history.of_kind(CONFIG_MAPS).get(name)
        if config_map is None:
            self._due[uid] = _now() + LOOK_AGAIN_SECONDS
            await self._report(pod, "Pending", {"waiting": {"reason": "CreateContainerConfigError"}})
            return
        self._due.pop(uid, None)
        self.started[uid] = Start(pod, config_map)
        await self._report(pod, "Running", {"running": {}})
        self._begin_training_if_all_run(pod)

    def _begin_training_if_all_run(self, last: Manifest) -> None:
        present = {pod["metadata"]["uid"]: pod for pod in self.history.of_kind(PODS).values()}
        peers = {
            uid: pod
            for uid, pod in present.items()
            if uid in self.started and owner_of(pod) == owner_of(last)
        }
        if len(peers) == self.started[last["metadata"]["uid"]].count:
            for uid, pod in peers.items():
                if (seconds := self.run_seconds.get(pod["metadata"]["name"], RUN_SECONDS)) < inf:
                    self._due[uid] = _now() + seconds

    async def _end(self, pod: Manifest) -> None:
        code = self.exit_codes.get(pod["metadata"]["name"], 0)
        self._due.pop(pod["metadata"]["uid"])
        end = {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed"}}
        await self._report(pod, "Failed" if code else "Succeeded", end)

    async def _report(self, pod: Manifest, phase: str, state: Manifest, reason: str = "") -> None:
        container = {"name": "paddle", "ready": "running" in state, "state": state}
        status = {
            "phase": phase,
            "podIP": self.addresses[pod["metadata"]["uid"]],
            "containerStatuses": [container],
            **({"reason": reason} if reason else {}),
        }
        target = Target(PODS, key_of(pod), pod["metadata"]["uid"])
        await self.memory.patch(target, {"status": status}, subresource="status")


def _now() -> float:
    return asyncio.get_running_loop().time()
