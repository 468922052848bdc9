"""A scheduler and kubelet of ours that plays every pod on a real API server, without containers.

It answers as a real node does in what an operator can see: who is bound, when an address is published, that a
container waits for its config map and is tried again late, how a pod ends. Not played: init containers,
restarts in place (restartPolicy is taken as Never), probes, volumes, secrets; the containers of one pod start
and end together.

    python -m testbed.node --kubeconfig FILE [--namespace NAME]
"""

import argparse
import asyncio
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from testbed import node_status
from testbed.node_client import ApiClient, ApiError, Follower, Server
from testbed.node_life import NEVER, Addresses, Life, Stage, deadline_exceeded
from testbed.node_maps import ConfigMaps, denied_look, look
from testbed.node_pods import (
    FINAL_PHASES,
    UNSCHEDULABLE,
    Behaviour,
    ConfigMap,
    Downward,
    Pod,
    behaviour_of_annotations,
    fingerprint,
)
from testbed.node_registration import keep_alive, register
from testbed.node_status import STRATEGIC, Ending, Place, timestamp

_PAUSE_AFTER_FAILURE = 0.2


class _GoneError(Exception):
    """The pod does not exist any more, or a namesake took its place."""


@dataclass(kw_only=True, eq=False)
class FakeNode:
    """Plays all pods (of one namespace) while the context is open. The Node object outlives it.

    After entry, all pods and config maps that existed are known. `environment` keeps what each container was
    told at its start, by (namespace, pod, uid) and container, also after the pod is gone.

    A container whose config map is missing is tried again after `retry_seconds` (drawn between the two), or
    when somebody changes the pod; the map's arrival alone moves nothing. `deny_first_lookup` plays the node
    authorizer, which may refuse the first look at a map that exists: for pods that it selects, or so many.

    `ca_pem` may be given in place of `ca_file`.
    """

    url: str
    token: str
    ca_file: Path | None = None
    ca_pem: str | None = None
    namespace: str | None = None
    name: str = "fake-node"
    retry_seconds: tuple[float, float] = (10.0, 15.0)
    deny_first_lookup: Callable[[Pod], bool] | int = 0
    seed: int = 0
    in_flight: int = 32

    environment: dict[tuple[str, str, str], dict[str, dict[str, str]]] = field(
        default_factory=dict, init=False
    )
    status_patches: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311  jitter, not a secret
        self._script: Callable[[Pod], Behaviour | None] = lambda _pod: None
        self._lives: dict[tuple[str, str], Life] = {}
        self._addresses = Addresses()
        self._denials_left = self.deny_first_lookup if isinstance(self.deny_first_lookup, int) else 0
        self._released = asyncio.Event()
        self._released.set()
        self._ready: asyncio.Queue[Life] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        ca_pem = self.ca_file.read_text() if self.ca_file else self.ca_pem
        self._client = ApiClient(Server(self.url, self.token, ca_pem))
        scope = f"/namespaces/{self.namespace}" if self.namespace else ""
        self._maps = ConfigMaps(self._client)
        maps = Follower(
            self._client,
            f"/api/v1{scope}/configmaps",
            ConfigMap,
            replace=self._maps.replace,
            apply=self._maps.apply,
        )
        pods = Follower(
            self._client, f"/api/v1{scope}/pods", Pod, replace=self._replace_pods, apply=self._apply_pod
        )
        try:
            await register(self._client, self.name)
            await maps.list()
            await pods.list()
        except BaseException:
            await self._client.close()
            raise
        work = [self._work() for _ in range(self.in_flight)]
        everything = [maps.follow(), pods.follow(), keep_alive(self._client, self.name), *work]
        self._tasks = [asyncio.create_task(each) for each in everything]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Raises what stopped a part of the node, so that a fault of ours cannot look like a slow server."""
        for life in self._lives.values():
            if life.timer:
                life.timer.cancel()
        for task in self._tasks:
            task.cancel()
        ends = await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.close()
        faults = [end for end in ends if isinstance(end, Exception)]
        if faults:
            raise ExceptionGroup("the fake node broke", faults)

    async def broken(self) -> None:
        """Returns when a part of the node has stopped, which is a fault: leave the context to see it."""
        await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)

    def script(self, behave: Callable[[Pod], Behaviour | None]) -> None:
        """Decides how pods behave that are not bound yet; None leaves a pod to its annotations."""
        self._script = behave

    def hold(self) -> None:
        """No pod takes a step until release(); steps under way still end."""
        self._released.clear()

    def release(self) -> None:
        self._released.set()

    def finish(self, namespace: str, name: str, exit_code: int = 0) -> None:
        """Ends the containers of one pod, at once or as soon as they run; KeyError for an unknown pod."""
        life = self._lives[namespace, name]
        life.ordered_exit = exit_code
        self._enqueue(life)

    # What the watches say.

    def _replace_pods(self, pods: list[Pod]) -> None:
        uids = {pod.metadata.uid for pod in pods}
        for life in list(self._lives.values()):
            if life.pod.metadata.uid not in uids:
                self._forget(life)
        for pod in pods:
            self._apply_pod("MODIFIED", pod)

    def _apply_pod(self, change: str, pod: Pod) -> None:
        if pod.spec.node_name not in {"", self.name}:
            return
        life = self._lives.get(pod.key)
        if life and life.pod.metadata.uid != pod.metadata.uid:
            self._forget(life)
            life = None
        if change == "DELETED":
            if life:
                self._forget(life)
            return
        if life is None:
            life = self._lives[pod.key] = self._adopt(pod)
            self._enqueue(life)
            return
        before, life.pod = life.pod, pod
        if life.stage is Stage.UNBOUND:
            if pod.spec.node_name:
                self._take(life)
            self._enqueue(life)
        # Most events only show our own status patches: they move nothing.
        elif pod.is_being_deleted or fingerprint(pod) != fingerprint(before):
            self._enqueue(life)

    def _adopt(self, pod: Pod) -> Life:
        """A pod may have been played by an earlier process: it goes on from what its status says."""
        life = Life(pod)
        if pod.spec.node_name:
            self._take(life)
        if pod.status.phase in FINAL_PHASES:
            life.stage = Stage.FINISHED
        elif pod.status.phase == "Running":
            life.begin_to_run(self._loop.time(), timestamp())
        return life

    def _take(self, life: Life) -> None:
        life.stage = Stage.PREPARING
        life.taken_at = self._loop.time()
        life.shown = None
        life.behaviour = self._script(life.pod) or behaviour_of_annotations(life.pod.metadata.annotations)
        status = life.pod.status
        address = status.pod_ip or (Addresses.HOST if life.pod.spec.host_network else self._addresses.take())
        self._addresses.keep(address)
        life.place = Place(Addresses.HOST, address, status.start_time or timestamp())

    def _forget(self, life: Life) -> None:
        life.stage = Stage.GONE
        if life.timer:
            life.timer.cancel()
        if life.place:
            self._addresses.give_back(life.place.pod_ip)
            life.place = None
        if self._lives.get(life.pod.key) is life:
            del self._lives[life.pod.key]

    # Workers.

    def _enqueue(self, life: Life) -> None:
        if not life.is_queued:
            life.is_queued = True
            if not life.is_served:
                self._ready.put_nowait(life)

    async def _work(self) -> None:
        while True:
            life = await self._ready.get()
            life.is_served = True
            await self._serve(life)
            life.is_served = False
            if life.is_queued:
                self._ready.put_nowait(life)

    async def _serve(self, life: Life) -> None:
        """Takes every step of one pod that is due and sets the clock for the next."""
        if life.timer:
            life.timer.cancel()
            life.timer = None
        while True:
            await self._released.wait()
            life.is_queued = False
            try:
                due = await self._step(life)
            except _GoneError:
                self._forget(life)
                return
            except (ConnectionError, ApiError):
                due = self._loop.time() + _PAUSE_AFTER_FAILURE
            if due > self._loop.time():
                break
        if due < NEVER and life.stage is not Stage.GONE:
            life.timer = self._loop.call_at(due, self._enqueue, life)

    # Steps. Each takes at most one, and says at which time the next is due (now or earlier: at once).

    async def _step(self, life: Life) -> float:
        if life.stage is Stage.GONE:
            return NEVER
        if life.stage is Stage.UNBOUND:
            return await self._schedule(life)
        now = self._loop.time()
        if life.stage is Stage.FINISHED:
            if not life.pod.is_being_deleted:
                return NEVER
            gone_at = life.ended_at + life.behaviour.cleanup_seconds
            return await self._remove(life) if gone_at <= now else gone_at
        deadline = life.note_orders_to_stop(now)
        if life.stage is Stage.RUNNING:
            ending = life.ending()
            return await self._end(life, ending) if ending.at <= now else min(ending.at, deadline)
        if life.pod.is_being_deleted:
            return await self._remove(life)
        if life.is_past_deadline:
            return await self._end(life, deadline_exceeded(now, 137))
        return min(await self._prepare(life), deadline)

    async def _schedule(self, life: Life) -> float:
        pod = life.pod
        if pod.metadata.annotations.get(UNSCHEDULABLE) == "true":
            if life.shown is None:
                await self._patch_status(pod, node_status.unschedulable(pod))
                life.shown = []
            return NEVER
        await self._send("POST", f"{_path(pod)}/binding", node_status.binding(pod, self.name))
        # The watch may have told of it before the answer came.
        if life.stage is Stage.UNBOUND:
            self._take(life)
        return 0.0

    async def _prepare(self, life: Life) -> float:
        """From bound to Running: start-up time, then a look at the config maps until all are there."""
        now, place = self._loop.time(), _place(life)
        if life.behaviour.start_seconds and not life.look_at:
            await self._patch_status(life.pod, node_status.creating(life.pod, place))
            life.look_at = now + life.behaviour.start_seconds
            return life.look_at
        is_updated = life.looked_at is not None and fingerprint(life.pod) != life.looked_at
        if life.look_at > now and not is_updated:
            return life.look_at
        life.looked_at = fingerprint(life.pod)
        maps = await self._maps.of_pod(life.pod)
        downward = Downward(life.pod, self.name, place.pod_ip, place.host_ip)
        seen = denied_look(downward, min(maps)) if maps and self._denies(life) else look(downward, maps)
        if any(seen.problems):
            if life.shown != seen.problems:
                await self._patch_status(life.pod, node_status.config_error(life.pod, place, seen.problems))
                life.shown = seen.problems
            life.look_at = now + self._random.uniform(*self.retry_seconds)
            return life.look_at
        self.environment[*life.pod.key, life.pod.metadata.uid] = seen.variables
        started_at = timestamp()
        await self._patch_status(life.pod, node_status.running(life.pod, place, started_at))
        life.begin_to_run(self._loop.time(), started_at)
        return 0.0

    def _denies(self, life: Life) -> bool:
        if life.was_denied:
            return False
        if callable(self.deny_first_lookup):
            life.was_denied = self.deny_first_lookup(life.pod)
        elif self._denials_left > 0:
            self._denials_left -= 1
            life.was_denied = True
        return life.was_denied

    async def _end(self, life: Life, ending: Ending) -> float:
        body = node_status.ended(life.pod, _place(life), life.started_at, ending)
        await self._patch_status(life.pod, body)
        life.stage = Stage.FINISHED
        life.ended_at = self._loop.time()
        return 0.0

    async def _remove(self, life: Life) -> float:
        await self._send("DELETE", _path(life.pod), node_status.deletion(life.pod))
        life.stage = Stage.GONE
        return NEVER

    # Requests.

    async def _patch_status(self, pod: Pod, body: bytes) -> None:
        await self._send("PATCH", f"{_path(pod)}/status", body, STRATEGIC)
        self.status_patches += 1

    async def _send(self, method: str, path: str, body: bytes, media: str = "application/json") -> None:
        status, _ = await self._client.send(method, path, body, media)
        if status in {404, 422} or (status == 409 and method != "PATCH"):
            raise _GoneError
        if status >= 300:
            raise ApiError(status, path)


def _place(life: Life) -> Place:
    assert life.place is not None, "a pod that was taken has a place until it is forgotten"
    return life.place


def _path(pod: Pod) -> str:
    return f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}"


async def _play_until_terminated(kubeconfig: Path, namespace: str | None) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    server = Server.of_kubeconfig(kubeconfig)
    async with FakeNode(
        url=server.url, token=server.token, ca_pem=server.ca_pem, namespace=namespace
    ) as node:
        waits = [asyncio.create_task(stop.wait()), asyncio.create_task(node.broken())]
        print(f"{node.name} plays pods", flush=True)
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m testbed.node", description="Plays all pods of a control plane."
    )
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--namespace", help="only pods of this namespace")
    options = parser.parse_args()
    asyncio.run(_play_until_terminated(options.kubeconfig, options.namespace))


if __name__ == "__main__":
    main()
