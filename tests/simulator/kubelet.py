"""Plays scheduler, kubelet, DNS and garbage collector; notes what each pod is told when it starts."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TypeVar

from paddle_operator.api.meta import Manifest
from paddle_operator.api.names import ANNOTATION_NUDGE
from paddle_operator.api.resources import CONFIG_MAPS, PODS, SERVICES, Target
from paddle_operator.memory.cluster import MemoryCluster
from simulator.history import TrueHistory, key_of, now, owner_of, trains, variables_of
from simulator.schedule import NODE, Schedule, Steady

T = TypeVar("T", int, float)

# A real one looks again after 10 to 15 s for a config map that it did not find.
LOOK_AGAIN_SECONDS = 12.0
RUN_SECONDS = 5.0
# Of the one node that there is; pods on its network share it.
NODE_ADDRESS = "198.18.255.1"


@dataclass(frozen=True)
class Start:
    """What one pod's training container read when it started."""

    pod: Manifest
    config_map: Manifest
    attempt: int
    """That the pod was made for."""

    @property
    def told(self) -> dict[str, str]:
        data: dict[str, str] = self.config_map["data"]
        return data

    @property
    def hosts(self) -> list[str]:
        """Of all peers, servers first; none in a map that is not made by the operator."""
        servers = [endpoint.rpartition(":")[0] for endpoint in self._listed("PADDLE_PSERVERS_IP_PORT_LIST")]
        return [*servers, *self._listed("PADDLE_TRAINERS")]

    def _listed(self, variable: str) -> list[str]:
        return [one for one in self.told.get(variable, "").split(",") if one]


@dataclass
class Kubelet:
    """Takes a step with every pod, then rests for its pace, then waits until something changes or falls due.

    Training begins when all peers run and find each other; ``run_seconds`` count from there, by pod name.
    Parameter servers that are not named in it serve until somebody stops them.
    """

    memory: MemoryCluster
    history: TrueHistory
    exit_codes: Mapping[str, int | Sequence[int]]
    """By the pod's name; of several, one for each try in which it could begin, and the last for all after."""
    run_seconds: Mapping[str, float | Sequence[float]]
    in_place: Mapping[str, int] = field(default_factory=dict)
    """How often containers of a pod fail and are restarted, in the first try."""
    schedule: Schedule = field(default_factory=Steady)
    reports: Mapping[str, str] = field(default_factory=dict)
    started: dict[str, Start] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)
    """By the UID of the pod, as all that follows."""
    _due: dict[str, float] = field(default_factory=dict)
    _nudge_seen: dict[str, str] = field(default_factory=dict)
    _trained: set[tuple[str, int]] = field(default_factory=set)
    """Jobs, by UID and try."""
    lost: set[str] = field(default_factory=set)
    """UIDs of pods whose node is gone: nothing happens to them any more."""
    unpullable: set[str] = field(default_factory=set)
    """Names of pods whose image is nowhere to be had."""

    @property
    def is_idle(self) -> bool:
        """It will do nothing before somebody else does."""
        return all(due == inf for due in self._due.values())

    async def run(self) -> None:
        while True:
            seen = self.history.version
            await self._sweep()
            await self.schedule.pause(NODE)
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
        self._begin_training()

    async def _step(self, pod: Manifest) -> None:
        uid = pod["metadata"]["uid"]
        if uid in self.lost:
            return
        if "deletionTimestamp" in pod["metadata"]:
            self.memory.finish_deletion(key_of(pod))
        elif "nodeName" not in pod["spec"]:
            self._schedule(pod)
        elif uid not in self.addresses:
            shared = pod["spec"].get("hostNetwork", False)
            self.addresses[uid] = NODE_ADDRESS if shared else f"198.18.0.{len(self.addresses) + 1}"
            await self._look_for_config_map(pod)
        elif not _has_ended(pod) and "activeDeadlineSeconds" in pod["spec"]:
            self._due.pop(uid, None)
            await self._report(pod, "Failed", _killed("Error"), "DeadlineExceeded")
        elif uid not in self.started and not _has_ended(pod):
            await self._look_for_config_map(pod)
        elif not _has_ended(pod) and self._due.get(uid, inf) <= _now():
            await self._end(pod)

    def _schedule(self, pod: Manifest) -> None:
        """To the one node, unless a pod that is there has one of its ports."""
        others = [one for one in self.history.of_kind(PODS).values() if "nodeName" in one["spec"]]
        taken = {port for one in others if not _has_ended(one) for port in _host_ports(one)}
        if taken.isdisjoint(_host_ports(pod)):
            self.memory.bind(key_of(pod), "node-1")

    async def _look_for_config_map(self, pod: Manifest) -> None:
        """At once when the pod is new or touched, else after a while."""
        uid, nudge = pod["metadata"]["uid"], pod["metadata"]["annotations"].get(ANNOTATION_NUDGE, "")
        if self._nudge_seen.get(uid) == nudge and self._due[uid] > _now():
            return
        self._nudge_seen[uid] = nudge
        if pod["metadata"]["name"] in self.unpullable:
            self._due[uid] = inf
            message = 'Back-off pulling image "nowhere": ErrImagePull: not found'
            await self._report(
                pod, "Pending", {"waiting": {"reason": "ImagePullBackOff", "message": message}}
            )
            return
        name = pod["spec"]["containers"][0]["envFrom"][0]["configMapRef"]["name"]
        config_map = self.history.of_kind(CONFIG_MAPS).get(name)
        if config_map is None:
            self._due[uid] = _now() + LOOK_AGAIN_SECONDS
            await self._report(pod, "Pending", {"waiting": {"reason": "CreateContainerConfigError"}})
            return
        self._due.pop(uid, None)
        self.started[uid] = Start(pod, config_map, self.history.objects.attempts[uid])
        await self._report(pod, "Running", {"running": {}})

    def _begin_training(self) -> None:
        """Of each job of which all pods run, were told the same, and find each other."""
        jobs: dict[tuple[str, int], list[Manifest]] = {}
        for pod in self.history.of_kind(PODS).values():
            if (start := self.started.get(pod["metadata"]["uid"])) is not None:
                jobs.setdefault((owner_of(pod), start.attempt), []).append(pod)
        for job, pods in jobs.items():
            first, *others = (self.started[pod["metadata"]["uid"]].hosts for pod in pods)
            if job in self._trained or len(pods) != len(first) or any(hosts != first for hosts in others):
                continue
            if not all(self._is_found(host, pods) for host in first):
                continue
            self._trained.add(job)
            for pod in pods:
                serves = variables_of(pod)["TRAINING_ROLE"] == "PSERVER"
                usual = inf if serves else RUN_SECONDS
                if (seconds := self._in_try(self.run_seconds.get(pod["metadata"]["name"], usual), pod)) < inf:
                    self._due[pod["metadata"]["uid"]] = _now() + seconds

    def _is_found(self, host: str, peers: Iterable[Manifest]) -> bool:
        """The address of a peer, or a name for which a service has a pod that has an address."""
        name = host.partition(".")[0]
        if name.isdecimal():
            return host in {self.addresses[pod["metadata"]["uid"]] for pod in peers}
        service = self.history.of_kind(SERVICES).get(name)
        return service is not None and any(
            service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
            and pod["metadata"]["uid"] in self.addresses
            for pod in self.history.of_kind(PODS).values()
        )

    async def _end(self, pod: Manifest) -> None:
        code = self._in_try(self.exit_codes.get(pod["metadata"]["name"], 0), pod)
        is_first = not self.history.objects.try_of(pod)
        if self._restarts(pod) < self.in_place.get(pod["metadata"]["name"], 0) and is_first:
            # Servers have forgotten a worker that comes back: it waits for ever.
            told = self.started[pod["metadata"]["uid"]].told
            seconds = inf if "PADDLE_PSERVERS_IP_PORT_LIST" in told else RUN_SECONDS
            self._due[pod["metadata"]["uid"]] = _now() + seconds
            await self._report(pod, "Running", {"running": {}}, restarts=self._restarts(pod) + 1)
            return
        self._due.pop(pod["metadata"]["uid"])
        end = {"exitCode": code, "reason": "Error" if code else "Completed"}
        if not code and (said := self.reports.get(pod["metadata"]["name"])):
            end["message"] = said
        await self._report(pod, "Failed" if code else "Succeeded", {"terminated": end})

    async def evict(self, pod: Manifest) -> None:
        """The node is short of something, and this pod has more of it than it asked for."""
        self._due.pop(pod["metadata"]["uid"], None)
        await self._report(pod, "Failed", _killed("Error"), "Evicted", disruption="TerminationByKubelet")

    async def kill_for_memory(self, pod: Manifest) -> None:
        self._due.pop(pod["metadata"]["uid"], None)
        await self._report(pod, "Failed", _killed("OOMKilled"))

    def _in_try(self, planned: T | Sequence[T], pod: Manifest) -> T:
        if not isinstance(planned, Sequence):
            return planned
        return planned[min(self.history.objects.try_of(pod), len(planned) - 1)]

    def _restarts(self, pod: Manifest) -> int:
        count: int = pod["status"]["containerStatuses"][0].get("restartCount", 0)
        return count

    async def _report(
        self,
        pod: Manifest,
        phase: str,
        state: Manifest,
        reason: str = "",
        *,
        restarts: int = 0,
        disruption: str = "",
    ) -> None:
        if "terminated" in state:
            state["terminated"]["finishedAt"] = now().strftime("%Y-%m-%dT%H:%M:%SZ")
        container = {"name": "paddle", "ready": "running" in state, "state": state}
        if restarts:
            ended = {"exitCode": 1, "reason": "Error", "finishedAt": now().strftime("%Y-%m-%dT%H:%M:%SZ")}
            container |= {"restartCount": restarts, "lastState": {"terminated": ended}}
        status = {
            "phase": phase,
            "podIP": self.addresses[pod["metadata"]["uid"]],
            "containerStatuses": [container],
            **({"reason": reason} if reason else {}),
            **({"conditions": [disrupted(disruption)]} if disruption else {}),
        }
        target = Target(PODS, key_of(pod), pod["metadata"]["uid"])
        await self.memory.patch(target, {"status": status}, subresource="status")


def _killed(reason: str) -> Manifest:
    return {"terminated": {"exitCode": 137, "reason": reason}}


def disrupted(reason: str) -> Manifest:
    """The condition of a pod that is ended for the sake of others."""
    return {"type": "DisruptionTarget", "status": "True", "reason": reason}


def _has_ended(pod: Manifest) -> bool:
    return pod["status"]["phase"] in {"Succeeded", "Failed"}


def _host_ports(pod: Manifest) -> Iterable[int]:
    return [one["hostPort"] for one in pod["spec"]["containers"][0].get("ports", ()) if "hostPort" in one]


def _now() -> float:
    return asyncio.get_running_loop().time()
