"""The examples as small jobs, and what is true of each in the end, whatever is done to the cluster meanwhile.

It has completed, with the counts that are due and with what it would have learned undisturbed; each of its
pods was made once a try. The pods are known from a watch of our own, the requests from the audit log.
"""

import asyncio
import functools
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import plain_processes
import pytest
import yaml
from audit import Request
from real_cluster import Cluster
from world import OPERATOR, World

from paddle_operator.api.core import Pod
from paddle_operator.api.meta import Manifest
from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.api.resources import PODS
from paddle_operator.cluster import ApiError, Scope
from paddle_operator.kube.client import KubeCluster
from paddle_operator.paddlejob.labels import attempt_of

EXAMPLES = Path(__file__).parents[1] / "examples"
TRAINER = "/opt/paddle/bin/python -u train_checkpoint.py"
"""The command line of the process in a worker of `checkpoint` that learns."""
DONE = re.compile(r"^done step=(\d+) loss=(\S+) parameters=(\S+)$", re.MULTILINE)
STEPS, MANY_STEPS = 600, 3000
"""Of a checkpoint job: some seconds of training, and enough to do something else first."""
# Workers of parameter servers do not wait for each other, so no two runs are equal to the last digit.
ALIKE = 0.03


@dataclass(frozen=True)
class Counts:
    """Of how often a job was begun again, and why."""

    attempt: int = 0
    restarts: int = 0
    failures: int = 0
    disruptions: int = 0


UNDISTURBED = Counts()
FAILED_ONCE = Counts(attempt=1, restarts=1, failures=1)
DISRUPTED_ONCE = Counts(attempt=1, restarts=1, disruptions=1)


@dataclass(frozen=True)
class Training:
    """A job with real Paddle in it."""

    name: str
    example: str
    manifest: Manifest
    due: Counts = UNDISTURBED
    steps: int = 0
    """How far it trains; 0: as far as the example does."""

    @property
    def pods(self) -> list[str]:
        roles = [
            (role, self.manifest["spec"][role]["replicas"]) for role in ("ps", "worker") if self._has(role)
        ]
        return [f"{self.name}-{role}-{rank}" for role, replicas in roles for rank in range(replicas)]

    @property
    def workers(self) -> list[str]:
        return [name for name in self.pods if "-worker-" in name]

    def _has(self, role: str) -> bool:
        return role in self.manifest["spec"]


def single(name: str = "single", due: Counts = UNDISTURBED, **run_policy: Any) -> Training:
    manifest = _manifest("01-single", name)
    manifest["spec"]["runPolicy"] = run_policy
    return Training(name, "01-single", manifest, due)


def checkpoint(
    folder: Path,
    name: str = "checkpoint",
    *,
    due: Counts = UNDISTURBED,
    steps: int = STEPS,
    crash_at: int = 0,
    **spec: Any,
) -> Training:
    """Two workers, whose checkpoints are in this folder of the node; the last one may crash once."""
    manifest = _manifest("03-checkpoint", name, STEPS=str(steps), CRASH_AT=str(crash_at))
    manifest["spec"] |= spec
    volume = {"path": str(folder / name), "type": "DirectoryOrCreate"}
    manifest["spec"]["worker"]["template"]["spec"]["volumes"] = [{"name": "checkpoints", "hostPath": volume}]
    return Training(name, "03-checkpoint", manifest, due, steps)


def servers(name: str = "servers", due: Counts = UNDISTURBED) -> Training:
    """Two servers and two workers.

    They go before all others who want the processor: whom gloo waits for may not be late by 30 seconds.
    """
    manifest = _manifest("04-wide-and-deep", name)
    for role in ("ps", "worker"):
        (container,) = manifest["spec"][role]["template"]["spec"]["containers"]
        container["resources"] = {"requests": {"cpu": "400m"}}
    return Training(name, "04-wide-and-deep", manifest, due)


def _by_name(folder: Path) -> Training:
    """Two workers that know each other by services, and wait for DNS: Paddle's launcher does not."""
    training = checkpoint(folder, "by-name", intranet="Service")
    (container,) = training.manifest["spec"]["worker"]["template"]["spec"]["containers"]
    wait = 'until getent hosts "$POD_IP"; do sleep 0.2; done; exec "$@"'
    container["command"] = ["sh", "-c", wait, "sh", *container["command"]]
    return training


def of_all_modes(folder: Path) -> list[Training]:
    """Collective, which crashes once; PS; Single; and Collective by the names of services."""
    return [checkpoint(folder, due=FAILED_ONCE, crash_at=50), servers(), single(), _by_name(folder)]


def _manifest(example: str, name: str, **variables: str) -> Manifest:
    """The job of an example. Its pods have little time to end: as process 1, Python is deaf to SIGTERM."""
    *_, manifest = yaml.safe_load_all((EXAMPLES / example / "job.yaml").read_text())
    made: Manifest = manifest
    made["metadata"]["name"] = name
    for role in made["spec"].keys() & {"ps", "worker"}:
        pod = made["spec"][role]["template"]["spec"]
        pod |= {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
        (container,) = pod["containers"]
        container["env"] += [{"name": variable, "value": value} for variable, value in variables.items()]
    return made


def counts_of(job: PaddleJob) -> Counts:
    status = job.status
    return Counts(status.attempt, status.restarts, status.failures, status.disruptions)


async def completed(cluster: Cluster, trainings: Sequence[Training]) -> None:
    """Each has ended as it should, and has learned what it would have learned undisturbed."""
    for training in trainings:
        job = await _ended(cluster, training)
        assert job.status.phase == "Completed", job.status
        assert counts_of(job) == training.due, f"{job.status}\n{_events(cluster, training)}"
        logs = [cluster.logs(name) for name in training.workers]
        if training.example == "04-wide-and-deep":
            assert _final_loss(logs) == pytest.approx(_loss_of_plain_processes(), abs=ALIKE)
        else:
            results = [match.groups() for log in logs if (match := DONE.search(log))]
            assert results == [_result_here(training.example, training.steps)] * len(logs), logs


def _events(cluster: Cluster, training: Training) -> str:
    return cluster.kubectl("get", "events", f"--field-selector=involvedObject.name={training.name}")


async def _ended(cluster: Cluster, training: Training) -> PaddleJob:
    """With more patience than usual: others train at the same time."""
    for is_last in (False, False, True):
        try:
            return await cluster.world.phase(training.name, "Completed", "Failed")
        except AssertionError as error:
            if is_last:
                for name in training.pods:
                    error.add_note(f"{name}: ...{cluster.logs(name)[-1000:]}")
                raise
    raise AssertionError("never reached")


def learn_here() -> None:
    """Ahead of a test that has no time to wait for it."""
    _result_here("01-single", 0)
    for steps in (STEPS, MANY_STEPS):
        _result_here("03-checkpoint", steps)
    _loss_of_plain_processes()


@functools.cache
def _result_here(example: str, steps: int) -> tuple[str, ...]:
    """What one process comes to when nobody disturbs it: step, loss and a fingerprint of all parameters."""
    (script,) = (EXAMPLES / example).glob("train_*.py")
    with tempfile.TemporaryDirectory() as folder:
        variables = {"CHECKPOINTS": folder, "OMP_NUM_THREADS": "1"} | ({"STEPS": str(steps)} if steps else {})
        command = [sys.executable, str(script)]
        ran = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | variables)
    match = DONE.search(ran.stdout)
    assert match, ran
    return match.groups()


@functools.cache
def _loss_of_plain_processes() -> float:
    with tempfile.TemporaryDirectory() as folder:
        return _final_loss([worker.log for worker in plain_processes.train(Path(folder)).workers])


def _final_loss(logs: Sequence[str]) -> float:
    return sum(plain_processes.Ended(0, log).losses[1] for log in logs) / len(logs)


class PodDiary:
    """All pods that a namespace has had, by UID: one that was made twice in a try is seen, however brief."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._tries: dict[str, tuple[str, int]] = {}

    async def __aenter__(self) -> Self:
        self._keeper = asyncio.create_task(self._keep())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._keeper.cancel()
        with suppress(asyncio.CancelledError):
            await self._keeper

    def check(self, trainings: Iterable[Training]) -> None:
        """Each pod was there once in each try, and no other was."""
        due = {
            (name, attempt): 1
            for training in trainings
            for name in training.pods
            for attempt in range(training.due.attempt + 1)
        }
        assert Counter(self._tries.values()) == due
        made = Counter(one.name for one in creates_of_pods(self._world) if one.code == 201)
        # A server that is killed may do what it is told, and not live to write it down.
        assert made <= Counter(name for name, _ in self._tries.values()), made

    async def _keep(self) -> None:
        cluster, scope = KubeCluster(self._world.transport), Scope(self._world.namespace)
        while True:
            try:
                listing = await cluster.list(PODS, scope)
                for pod in listing.items:
                    self._note(pod)
                async with aclosing(cluster.watch(PODS, scope, listing.resource_version)) as changes:
                    async for change in changes:
                        self._note(change.object)
            except ApiError:
                await asyncio.sleep(0.2)  # the server is away, and makes no pods either

    def _note(self, pod: object) -> None:
        if isinstance(pod, Pod):
            self._tries[pod.metadata.uid] = pod.metadata.name, attempt_of(pod.metadata)


def creates_of_pods(world: World, user: str = OPERATOR) -> list[Request]:
    return [one for one in world.requests(user) if (one.verb, one.resource) == ("create", "pods")]
