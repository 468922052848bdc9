"""The jobs that are shaken on a real API server: what their users and pods do, what is left in the end."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import make
from world import World

from paddle_operator.api.meta import Manifest
from paddle_operator.api.names import LABEL_ATTEMPT, LABEL_JOB_UID
from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS
from testbed.node import FakeNode
from testbed.node_pods import Behaviour, Pod

NAME = "resnet"
FOR_EVER = Behaviour(runs_for_ever=True)
FAILS = Behaviour(exit_code=3)

Story = Callable[[World, FakeNode, Manifest], Awaitable[None]]


async def to_the_end(world: World, _node: FakeNode, _manifest: Manifest) -> None:
    await world.phase(NAME, "Completed", "Failed")


async def suspended_and_resumed(world: World, node: FakeNode, manifest: Manifest) -> None:
    await world.phase(NAME, "Running")
    await world.patch(PADDLE_JOBS, NAME, {"spec": {"runPolicy": {"suspend": True}}})
    await world.phase(NAME, "Suspended")
    await world.no_pods()
    await world.gone(CONFIG_MAPS, NAME)
    await world.patch(PADDLE_JOBS, NAME, {"spec": {"runPolicy": {"suspend": False}}})
    await to_the_end(world, node, manifest)


async def recreated(world: World, node: FakeNode, manifest: Manifest) -> None:
    await world.delete(PADDLE_JOBS, await world.phase(NAME, "Running"))
    await world.gone(PADDLE_JOBS, NAME)
    await world.submit(manifest)
    await to_the_end(world, node, manifest)


async def bereft_of_a_pod(world: World, node: FakeNode, manifest: Manifest) -> None:
    await world.phase(NAME, "Running")
    await world.delete(PODS, await world.pod_until(f"{NAME}-worker-1", lambda _: True))
    await to_the_end(world, node, manifest)


async def expired(world: World, _node: FakeNode, _manifest: Manifest) -> None:
    await world.gone(PADDLE_JOBS, NAME)


async def failing_while_it_runs(world: World, node: FakeNode, manifest: Manifest) -> None:
    """Not before: how a peer ends that has not begun is another matter, and a race."""
    await world.phase(NAME, "Running")
    node.finish(world.namespace, f"{NAME}-worker-1", exit_code=3)
    await to_the_end(world, node, manifest)


def behaves_well(pod: Pod) -> Behaviour | None:
    """Servers serve until somebody stops them."""
    return FOR_EVER if "-ps-" in pod.metadata.name else None


def attempt_of(pod: Pod) -> int:
    return int(pod.metadata.labels[LABEL_ATTEMPT])


def waits_in_the_first_try(pod: Pod) -> Behaviour | None:
    return behaves_well(pod) if attempt_of(pod) else FOR_EVER


def failing_first(culprit: str) -> Callable[[Pod], Behaviour | None]:
    """One pod fails in the first try, and its peers would wait for it for ever."""

    def behave(pod: Pod) -> Behaviour | None:
        if attempt_of(pod):
            return behaves_well(pod)
        return FAILS if pod.metadata.name == f"{NAME}-{culprit}" else FOR_EVER

    return behave


class WaitsOnce:
    """For ever, as long as the first job of its name is there; labels do not tell the second one from it."""

    def __init__(self) -> None:
        self._first = ""

    def __call__(self, pod: Pod) -> Behaviour | None:
        owner = pod.metadata.labels[LABEL_JOB_UID]
        self._first = self._first or owner
        return FOR_EVER if owner == self._first else None


@dataclass(frozen=True)
class ShakenJob:
    manifest: Manifest
    left: frozenset[str]
    """What is there in the end."""
    story: Story = to_the_end
    behave: Callable[[], Callable[[Pod], Behaviour | None]] = lambda: behaves_well
    """Made anew for each life."""
    phase: str = "Completed"
    counts: tuple[int, int, int, int] = (0, 0, 0, 0)
    """Attempt, restarts, failures, disruptions in the end."""
    tries: int = 1
    """How often each pod is made."""
    least_writes: int = 10
    """Every life has so many, if nobody disturbs it."""

    @property
    def most_writes(self) -> int:
        """Of how many pods run, say, more is told if the machine is slow."""
        return self.least_writes + 6

    def is_right(self, job: PaddleJob | None) -> bool:
        if job is None:
            return not self.left
        status = job.status
        counts = status.attempt, status.restarts, status.failures, status.disruptions
        return (status.phase, counts) == (self.phase, self.counts)


def _job(workers: int = 2, policy: str = "Never", servers: int = 0, **spec: Any) -> Manifest:
    wanted = {"ps": make.role(servers)} if servers else {}
    return make.manifest(NAME, workers, cleanPodPolicy=policy, **wanted, **spec)


def _left(*pods: str, services: bool = False, config_map: bool = True) -> frozenset[str]:
    names = [f"PaddleJob {NAME}", *(f"Pod {NAME}-{pod}" for pod in pods)]
    names += [f"Service {NAME}-{pod}" for pod in pods if services]
    return frozenset([*names, *([f"ConfigMap {NAME}"] if config_map else [])])


WORKERS = "worker-0", "worker-1"

JOBS = {
    "cleaned": ShakenJob(_job(policy="Always"), _left()),
    "servers": ShakenJob(_job(1, servers=1, intranet="Service"), _left("ps-0", "worker-0", services=True)),
    "restarted": ShakenJob(
        _job(runPolicy={"backoffLimit": 1}),
        _left(*WORKERS),
        behave=lambda: failing_first("worker-1"),
        counts=(1, 1, 1, 0),
        tries=2,
        least_writes=23,
    ),
    "suspended": ShakenJob(
        _job(),
        _left(*WORKERS),
        suspended_and_resumed,
        behave=lambda: waits_in_the_first_try,
        counts=(1, 0, 0, 0),
        tries=2,
        least_writes=24,
    ),
    "recreated": ShakenJob(_job(), _left(*WORKERS), recreated, behave=WaitsOnce, tries=2, least_writes=19),
    "bereft": ShakenJob(
        _job(),
        _left(*WORKERS),
        bereft_of_a_pod,
        behave=lambda: waits_in_the_first_try,
        counts=(1, 1, 0, 1),
        tries=2,
        least_writes=22,
    ),
    "expired": ShakenJob(_job(runPolicy={"ttlSecondsAfterFinished": 1}), frozenset(), expired),
    "failed": ShakenJob(
        _job(),
        _left(*WORKERS),
        failing_while_it_runs,
        behave=lambda: waits_in_the_first_try,
        phase="Failed",
        counts=(0, 0, 1, 0),
    ),
    "on-the-host": ShakenJob(_job(intranet="Host"), _left(*WORKERS)),
    "servers-restarted": ShakenJob(
        _job(1, "OnCompletion", servers=1, runPolicy={"backoffLimit": 1}),
        _left(),
        behave=lambda: failing_first("ps-0"),
        counts=(1, 1, 1, 0),
        tries=2,
        least_writes=22,
    ),
}
