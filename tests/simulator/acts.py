"""What users, nodes and other controllers do to a job while it lives: each as soon as something holds.

Moments are told by what is stored, not by the clock, so that an act finds the job in the same state whatever
faults the manager has to cope with.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from paddle_operator.api.meta import Key, Manifest
from paddle_operator.api.names import CREATED
from paddle_operator.api.resources import PADDLE_JOBS, PODS, Target
from paddle_operator.cluster import NotFound
from paddle_operator.memory.cluster import MemoryCluster
from simulator.history import NAMESPACE, TrueHistory, key_of, owner_of, trains
from simulator.kubelet import Kubelet, disrupted


@dataclass(frozen=True)
class Act:
    when: Callable[["Stage"], bool]
    pause_seconds: float
    do: Callable[["Stage"], Awaitable[None]]
    takes_a_pod: bool = False
    """Away, which nobody may have missed yet who could make it again."""


@dataclass
class Stage:
    memory: MemoryCluster
    history: TrueHistory
    kubelet: Kubelet
    name: str
    create: Callable[[], Awaitable[None]]
    """The job, anew, as its user does."""

    @property
    def job(self) -> Manifest:
        return self.history.of_kind(PADDLE_JOBS)[self.name]

    @property
    def pods(self) -> list[Manifest]:
        uid = self.job["metadata"]["uid"]
        return [pod for pod in self.history.of_kind(PODS).values() if owner_of(pod) == uid and trains(pod)]

    async def play(self, acts: Sequence[Act]) -> None:
        for act in acts:
            while self.name not in self.history.of_kind(PADDLE_JOBS) or not act.when(self):
                await self.history.reach(self.history.version + 1)
            await asyncio.sleep(act.pause_seconds)
            with suppress(KeyError, NotFound):  # it may be gone meanwhile
                await act.do(self)

    async def change_spec(self, changes: Manifest) -> None:
        job = await self.memory.get(PADDLE_JOBS, Key(NAMESPACE, self.name))
        await self.memory.patch(Target.of(PADDLE_JOBS, job), {"spec": changes})

    def target(self, pod: Manifest) -> Target:
        return Target(PODS, key_of(pod), pod["metadata"]["uid"])

    def pod(self, name: str) -> Manifest:
        return self.history.of_kind(PODS)[name]


def all_run(attempt: int) -> Callable[[Stage], bool]:
    """All pods of a try have begun; how they were counted does not matter."""

    def holds(stage: Stage) -> bool:
        pods = [pod for pod in stage.pods if stage.history.objects.try_of(pod) == attempt]
        spec = stage.job["spec"]
        wanted = sum(spec.get(role, {"replicas": 0})["replicas"] for role in ("ps", "worker"))
        return len(pods) == wanted and all(pod["metadata"]["uid"] in stage.kubelet.started for pod in pods)

    return holds


def all_are_missed(attempt: int) -> Callable[[Stage], bool]:
    """They run, and it is written down that they were made: else who is gone is simply made again."""
    run = all_run(attempt)

    def holds(stage: Stage) -> bool:
        conditions = stage.job.get("status", {}).get("conditions", ())
        return run(stage) and any((one["type"], one["status"]) == (CREATED, "True") for one in conditions)

    return holds


def is_suspended(stage: Stage) -> bool:
    return not stage.pods and stage.job.get("status", {}).get("phase") == "Suspended"


def suspend(attempt: int = 0) -> Act:
    return Act(all_run(attempt), 1.0, lambda stage: stage.change_spec({"runPolicy": {"suspend": True}}))


def resume(workers: int = 0) -> Act:
    """Perhaps with another number of workers."""

    async def do(stage: Stage) -> None:
        if workers:
            await stage.change_spec({"worker": {"replicas": workers}})
        await stage.change_spec({"runPolicy": {"suspend": False}})

    return Act(is_suspended, 2.0, do)


def resize_at_once(workers: int) -> Act:
    """Suspended, resized and resumed before anybody looks."""

    async def do(stage: Stage) -> None:
        for change in (
            {"runPolicy": {"suspend": True}},
            {"worker": {"replicas": workers}},
            {"runPolicy": {"suspend": False}},
        ):
            await stage.change_spec(change)

    return Act(all_run(0), 1.0, do)


def delete_pod(name: str, attempt: int = 0) -> Act:
    """By hand, or by a drain."""

    async def do(stage: Stage) -> None:
        await stage.memory.delete(stage.target(stage.pod(name)))

    return Act(all_are_missed(attempt), 1.0, do, takes_a_pod=True)


def delete_job() -> Act:
    async def do(stage: Stage) -> None:
        job = await stage.memory.get(PADDLE_JOBS, Key(NAMESPACE, stage.name))
        await stage.memory.delete(Target.of(PADDLE_JOBS, job))

    return Act(all_run(0), 1.0, do)


def lose_node_of(name: str) -> Act:
    """Its kubelet is silent from now on; the control plane has given the pod up, and it stays Terminating."""

    async def do(stage: Stage) -> None:
        pod = stage.pod(name)
        stage.kubelet.lost.add(pod["metadata"]["uid"])
        await stage.memory.delete(stage.target(pod))

    return Act(all_are_missed(0), 1.0, do, takes_a_pod=True)


def evict(name: str) -> Act:
    async def do(stage: Stage) -> None:
        await stage.kubelet.evict(stage.pod(name))

    return Act(all_are_missed(0), 1.0, do)


def preempt(name: str) -> Act:
    """The scheduler wants the place for somebody else: it says so on the pod, then deletes it."""

    async def do(stage: Stage) -> None:
        target = stage.target(stage.pod(name))
        condition = {"status": {"conditions": [disrupted("PreemptionByScheduler")]}}
        await stage.memory.patch(target, condition, subresource="status")
        await stage.memory.delete(target)

    return Act(all_are_missed(0), 1.0, do, takes_a_pod=True)


def kill_for_memory(name: str) -> Act:
    async def do(stage: Stage) -> None:
        await stage.kubelet.kill_for_memory(stage.pod(name))

    return Act(all_are_missed(0), 1.0, do)


def never_pull(name: str) -> Act:
    async def do(stage: Stage) -> None:
        stage.kubelet.unpullable.add(name)

    return Act(lambda _: True, 0.0, do)
