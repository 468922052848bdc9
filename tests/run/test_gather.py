"""What a person is shown, from the cluster in memory and from the logs."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import make
import pytest

from paddle_operator.api.meta import Key, Manifest
from paddle_operator.api.names import LABEL_ATTEMPT, LABEL_INDEX, LABEL_RES_TYPE
from paddle_operator.api.resources import PADDLE_JOBS, PODS, Target
from paddle_operator.local.logs import log_file, process_log
from paddle_operator.memory.cluster import MemoryCluster
from paddle_operator.run.gather import Gatherer, Line
from paddle_operator.run.metrics import Metric
from paddle_operator.run.scene import JobScene, Measurement, PodScene

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)
TEAM = "team"
RUNS: Manifest = {"running": {}}


class Stage:
    """A cluster in which the test plays operator and node."""

    def __init__(self, logs: Path) -> None:
        self.time = NOON
        self.logs = logs
        self.memory = MemoryCluster(lambda: self.time, {})
        self.gatherer = Gatherer(self.memory, logs, Metric.of(None), lambda: self.time)

    async def job(self, name: str = "mnist", workers: int = 2, **status: Any) -> Target:
        manifest = make.manifest(name, workers)
        manifest["metadata"]["namespace"] = TEAM
        target = Target.of(PADDLE_JOBS, await self.memory.create(PADDLE_JOBS, manifest))
        await self.say(target, **status)
        return target

    async def say(self, target: Target, **status: Any) -> None:
        await self.memory.patch(target, {"status": status}, subresource="status")

    async def pod(
        self,
        rank: int = 0,
        job: str = "mnist",
        *,
        containers: tuple[str, ...] = ("paddle",),
        attempt: int = 0,
        **status: Any,
    ) -> Target:
        metadata = {
            "name": f"{job}-worker-{rank}",
            "namespace": TEAM,
            "labels": {LABEL_RES_TYPE: "worker", LABEL_INDEX: str(rank), LABEL_ATTEMPT: str(attempt)},
            "ownerReferences": [{"name": job, "uid": "x", "controller": True}],
        }
        spec = {"containers": [{"name": name} for name in containers]}
        target = Target.of(PODS, await self.memory.create(PODS, {"metadata": metadata, "spec": spec}))
        await self.say(target, **status)
        return target

    def log(self, text: str, rank: int = 0, job: str = "mnist", container: str = "paddle") -> None:
        self._write(log_file(self.logs, Key(TEAM, f"{job}-worker-{rank}"), container), text)

    def process(self, text: str, local_rank: int, rank: int = 0) -> None:
        log = log_file(self.logs, Key(TEAM, f"mnist-worker-{rank}"), "paddle")
        self._write(process_log(log, local_rank), text)

    def _write(self, file: Path, text: str) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as opened:
            opened.write(text)

    async def look(self) -> tuple[tuple[JobScene, ...], list[Line]]:
        await asyncio.sleep(0)  # so that the follower sees what has happened
        scene, lines = await self.gatherer.look()
        return scene.jobs, lines

    async def the_job(self) -> JobScene:
        (job,), _ = await self.look()
        return job

    async def the_pod(self) -> PodScene:
        (pod,) = (await self.the_job()).pods
        return pod


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    stage = Stage(tmp_path)
    follow = stage.gatherer.follow_pods, stage.gatherer.follow_jobs
    following = [asyncio.create_task(one()) for one in follow]
    yield stage
    for one in following:
        assert not one.done()
        one.cancel()
    await asyncio.wait(following)


def status(state: Manifest, restarts: int = 0, name: str = "paddle") -> Manifest:
    return {"name": name, "state": state, "restartCount": restarts}


def ended(code: int) -> Manifest:
    return {"terminated": {"exitCode": code}}


def waits(reason: str, message: str = "") -> Manifest:
    return {"waiting": {"reason": reason, "message": message}}


NEW = waits("PodInitializing")


def main(*states: Manifest) -> Manifest:
    return {"containerStatuses": [*map(status, states)]}


# Jobs.


async def test_nothing_is_there(stage: Stage) -> None:
    assert await stage.look() == ((), [])


@pytest.mark.parametrize(("workers", "mode"), [(1, "Single"), (2, "Collective")])
async def test_a_job_that_nobody_has_seen_yet(stage: Stage, workers: int, mode: str) -> None:
    await stage.job(workers=workers)
    assert await stage.the_job() == JobScene("team/mnist", mode, "", "", 0.0, (), (), finished=False)


@pytest.mark.parametrize(
    ("phase", "finished"), [("Pending", False), ("Running", False), ("Completed", True), ("Failed", True)]
)
async def test_phase_and_mode_are_as_the_operator_says(stage: Stage, phase: str, finished: bool) -> None:
    await stage.job(phase=phase, mode="PS")
    job = await stage.the_job()
    assert (job.phase, job.mode, job.finished) == (phase, "PS", finished)


def condition(kind: str, second: int | None, *, holds: str = "True", message: str = "it is so") -> Manifest:
    when = {} if second is None else {"lastTransitionTime": (NOON + timedelta(seconds=second)).isoformat()}
    return {"type": kind, "status": holds, "reason": "Why", "message": message, **when}


@pytest.mark.parametrize(
    ("conditions", "line"),
    [
        ([], ""),
        ([condition("Created", 1)], "Created (Why): it is so"),
        ([condition("Created", 1, message="")], "Created (Why)"),
        ([condition("Created", 1, holds="False")], "not Created (Why): it is so"),
        ([condition("Created", 1), condition("Running", 2)], "Running (Why): it is so"),
        ([condition("Created", 2), condition("Running", 1)], "Created (Why): it is so"),
        ([condition("Created", 1), condition("Running", 1)], "Running (Why): it is so"),
        ([condition("Created", 1), condition("Running", None)], "Created (Why): it is so"),
        # Back from a restart: what holds tells more than what holds no more.
        ([condition("Running", 2), condition("Restarting", 2, holds="False")], "Running (Why): it is so"),
        (
            [condition("Running", 1), condition("Restarting", 2, holds="False")],
            "not Restarting (Why): it is so",
        ),
    ],
)
async def test_the_newest_condition_in_one_line(stage: Stage, conditions: list[Manifest], line: str) -> None:
    await stage.job(conditions=conditions)
    assert (await stage.the_job()).condition == line


async def test_time_stands_still_when_a_job_has_ended(stage: Stage) -> None:
    job = await stage.job(phase="Running")
    seen = []
    for phase in ("Running", "Running", "Completed", "Completed"):
        await stage.say(job, phase=phase)
        seen.append((await stage.the_job()).seconds)
        stage.time += timedelta(seconds=1.5)
    assert seen == [0.0, 1.5, 3.0, 3.0]


async def test_a_job_that_was_deleted_after_its_end_is_shown_as_it_ended(stage: Stage) -> None:
    """ttlSecondsAfterFinished: 0."""
    first, second = await stage.job("one"), await stage.job("two", phase="Running")
    await stage.look()
    await stage.say(first, phase="Failed", conditions=[condition("Failed", 1)])
    await stage.memory.delete(first)
    (one, two), _ = await stage.look()
    assert (one.name, one.phase, one.finished, one.condition) == (
        "team/one",
        "Failed",
        True,
        "Failed (Why): it is so",
    )
    await stage.say(second, phase="Completed")
    await stage.memory.delete(second)
    (one, two), _ = await stage.look()
    assert (one.phase, two.phase) == ("Failed", "Completed")


def failure(attempt: int, message: str = "it broke") -> Manifest:
    return {"attempt": attempt, "message": message}


async def test_why_a_job_was_restarted_is_known_after_it_has_made_good_for_it(stage: Stage) -> None:
    job = await stage.job(phase="Running")
    for attempt in range(2):  # twice before anybody looks
        await stage.say(job, phase="Restarting", restarts=attempt + 1, failure=failure(attempt))
        await stage.say(job, phase="Running")
    await stage.say(job, phase="Completed", failure=None)
    found = await stage.the_job()
    assert found.restarts == 2
    assert [(one.attempt, one.message) for one in found.failures] == [(0, "it broke"), (1, "it broke")]


# Pods.


@pytest.mark.parametrize(
    ("phase", "said", "state", "reason"),
    [
        ("Pending", {}, "Pending", ""),
        ("Pending", {"podIP": "127.0.1.1"}, "Starting", ""),
        ("Pending", {"podIP": "1", **main(waits("ContainerCreating"))}, "Starting", "ContainerCreating"),
        (
            "Pending",
            {"podIP": "1", **main(waits("NoMap", "m is missing"))},
            "Starting",
            "NoMap: m is missing",
        ),
        (
            "Pending",
            {"podIP": "1", **main(waits("CreateContainerConfigError", 'configmap "mnist" not found'))},
            "Starting",
            "waits for its peers",
        ),
        ("Running", main(RUNS), "Running", ""),
        ("Running", main(waits("CrashLoopBackOff")), "Running", "CrashLoopBackOff"),
        ("Running", main(RUNS, waits("CrashLoopBackOff")), "Running", ""),
        ("Succeeded", main(ended(0)), "Succeeded", ""),
        ("Failed", main(ended(3)), "Failed", "exit code 3"),
        ("Failed", main(ended(0), ended(3)), "Succeeded", ""),
        ("Failed", {"initContainerStatuses": [status(ended(4))], **main(NEW)}, "Failed", "exit code 4"),
        ("Failed", {"reason": "DeadlineExceeded", **main(ended(143))}, "Failed", "DeadlineExceeded"),
    ],
)
async def test_states_and_reasons(stage: Stage, phase: str, said: Manifest, state: str, reason: str) -> None:
    await stage.job()
    await stage.pod(phase=phase, **said)
    pod = await stage.the_pod()
    assert (pod.state, pod.reason) == (state, reason)


async def test_a_pod_that_the_operator_has_stopped_has_not_failed(stage: Stage) -> None:
    await stage.job()
    target = await stage.pod(phase="Failed", reason="DeadlineExceeded", **main(ended(143)))
    await stage.memory.patch(target, {"spec": {"activeDeadlineSeconds": 1}})
    pod = await stage.the_pod()
    assert (pod.state, pod.reason) == ("Stopped", "by the operator")


async def test_a_pod(stage: Stage) -> None:
    await stage.job()
    statuses = [status(RUNS, restarts=2), status(RUNS, restarts=1, name="b")]
    await stage.pod(3, phase="Running", podIP="127.0.1.4", containerStatuses=statuses)
    stage.log("hello\nstep=1 loss=0.5\n", rank=3)
    assert await stage.the_pod() == PodScene(
        name="mnist-worker-3",
        role="worker",
        rank=3,
        address="127.0.1.4",
        state="Running",
        reason="",
        restarts=3,
        last_line="step=1 loss=0.5",
        latest=Measurement(1, 0.5),
    )


async def test_a_pod_that_is_asked_to_end(stage: Stage) -> None:
    await stage.job()
    pod = await stage.pod(phase="Running")
    stage.memory.bind(pod.key, "node")
    await stage.memory.delete(pod)
    assert (await stage.the_pod()).state == "Terminating"


async def test_a_pod_is_shown_after_it_is_gone(stage: Stage) -> None:
    """Completed jobs lose their pods at once, before anybody looks."""
    await stage.job()
    pod = await stage.pod(phase="Succeeded", podIP="127.0.1.1", containerStatuses=[status(ended(0))])
    stage.log("done\n")
    await stage.memory.delete(pod)
    found = await stage.the_pod()
    assert (found.state, found.address, found.last_line) == ("Succeeded", "127.0.1.1", "done")


async def test_a_pod_that_is_made_anew_begins_anew_in_its_old_place(stage: Stage) -> None:
    await stage.job()
    pods = [await stage.pod(rank, phase="Failed", podIP=f"127.0.1.{rank}") for rank in range(2)]
    stage.log("old\nstep=7 loss=0.5\n")
    stage.log("old too\n", rank=1)
    _, before = await stage.look()
    assert [(line.text, line.index) for line in before] == [
        ("old", 0),
        ("step=7 loss=0.5", 0),
        ("old too", 1),
    ]
    for pod in reversed(pods):
        await stage.memory.delete(pod)
    for rank in (1, 0):
        await stage.pod(rank, attempt=1, phase="Pending", podIP=f"127.0.1.{rank + 2}")
    (job,), lines = await stage.look()
    assert lines == []
    assert [(pod.state, pod.address, pod.last_line, pod.latest, pod.attempt) for pod in job.pods] == [
        ("Starting", f"127.0.1.{address}", "", None, 1) for address in (2, 3)
    ]
    stage.log("[try 1 begins]\nnew\n")
    (job,), after = await stage.look()
    assert after == [Line("mnist-worker-0", 0, "[try 1 begins]"), Line("mnist-worker-0", 0, "new")]
    assert job.pods[0].last_line == "new"


async def test_a_pod_of_a_try_that_is_over_is_stopped_and_has_not_failed(stage: Stage) -> None:
    await stage.job()
    pod = await stage.pod(phase="Running")
    stage.memory.bind(pod.key, "node")
    await stage.memory.delete(pod)
    await stage.say(pod, phase="Failed", **main(ended(143)))
    assert ((await stage.the_pod()).state, (await stage.the_pod()).reason) == ("Stopped", "by the operator")


async def test_pods_stand_by_rank_and_with_their_job(stage: Stage) -> None:
    await stage.job("one")
    await stage.job("two")
    for rank in (10, 9, 0):
        await stage.pod(rank, "two")
    await stage.pod(0, "one")
    await stage.pod(0, "nobodys")
    (one, two), _ = await stage.look()
    assert [pod.name for pod in one.pods] == ["one-worker-0"]
    assert [pod.rank for pod in two.pods] == [0, 9, 10]


# Logs.


async def test_lines_come_once_with_the_pods_name_and_place(stage: Stage) -> None:
    await stage.job()
    await stage.pod(0)
    await stage.pod(1)
    stage.log("a\nb\n", rank=1)
    assert (await stage.look())[1] == [Line("mnist-worker-1", 1, "a"), Line("mnist-worker-1", 1, "b")]
    stage.log("c\n", rank=0)
    assert (await stage.look())[1] == [Line("mnist-worker-0", 0, "c")]
    assert (await stage.look())[1] == []


async def test_a_last_line_without_an_end_is_told_when_the_pod_has_ended(stage: Stage) -> None:
    await stage.job()
    pod = await stage.pod(phase="Running")
    stage.log("step=9 loss=0.25")
    assert (await stage.look())[1] == []
    await stage.say(pod, phase="Failed")
    assert (await stage.the_pod()).latest == Measurement(9, 0.25)


@pytest.mark.parametrize(
    ("containers", "shown"),
    [
        (("paddle",), "paddle"),
        (("sidecar", "paddle"), "paddle"),
        (("main", "sidecar"), "main"),
    ],
)
async def test_the_log_is_that_of_the_training_container(
    stage: Stage, containers: tuple[str, ...], shown: str
) -> None:
    await stage.job()
    await stage.pod(containers=containers)
    for name in containers:
        stage.log(f"{name}\n", container=name)
    lines = (await stage.look())[1]
    assert [line.text for line in lines if "/" not in line.source] == [shown]
    assert [line.text for line in lines if "/" in line.source] == [one for one in containers if one != shown]
    assert (await stage.the_pod()).last_line == shown


async def test_the_curve_is_that_of_the_lowest_rank_that_measures(stage: Stage) -> None:
    await stage.job()
    for rank in (2, 1, 0):
        await stage.pod(rank)
    stage.log("nothing to see\n", rank=0)
    stage.log("step=1 loss=0.5\nstep=2 loss=0.25\n", rank=1)
    stage.log("step=1 loss=9\n", rank=2)
    assert (await stage.the_job()).curve == (Measurement(1, 0.5), Measurement(2, 0.25))
    stage.log("step=3 loss=0.125\n", rank=1)
    assert (await stage.the_job()).curve[-1] == Measurement(3, 0.125)


async def test_each_process_of_a_pod_is_shown(stage: Stage) -> None:
    await stage.job()
    for rank in range(2):
        await stage.pod(rank, phase="Running")
        for local_rank in range(2):
            stage.process(f"step=1 loss=0.{2 * rank + local_rank + 1}\n", local_rank, rank)
    (job,), lines = await stage.look()
    assert [(line.source, line.index) for line in lines] == [
        (f"mnist-worker-{rank}:{local_rank}", rank) for rank in range(2) for local_rank in range(2)
    ]
    assert [one.name for pod in job.pods for one in pod.processes] == [line.source for line in lines]
    assert [pod.latest for pod in job.pods] == [Measurement(1, 0.1), Measurement(1, 0.3)]
    assert job.curve == (Measurement(1, 0.1),)


async def test_processes_of_a_pod_that_is_gone_are_read_to_their_end(stage: Stage) -> None:
    """The first look finds the pod deleted, and logs that are longer than what is read at once."""
    await stage.job()
    pod = await stage.pod(phase="Succeeded")
    await stage.memory.delete(pod)
    text = "".join(f"{number:0999}\n" for number in range(700))
    for local_rank in range(2):
        stage.process(text, local_rank)
    # Of these nothing is to be seen; but what stands behind them is.
    stage.log(text + "the last word\n")
    await stage.look()
    said: dict[str, list[str]] = {}
    before = -1
    while before != (before := stage.gatherer.bytes_read):
        for line in stage.gatherer.read():
            said.setdefault(line.source, []).append(line.text)
    assert said["mnist-worker-0"] == ["the last word"]
    assert [said[f"mnist-worker-0:{rank}"][-1] for rank in range(2)] == [f"{699:0999}"] * 2


async def test_a_pod_that_is_made_anew_has_processes_that_said_nothing_yet(stage: Stage) -> None:
    await stage.job()
    pod = await stage.pod(phase="Failed")
    for local_rank in range(2):
        stage.process("step=7 loss=0.5\n", local_rank)
    await stage.look()
    await stage.memory.delete(pod)
    await stage.pod(attempt=1, phase="Pending")
    found = await stage.the_pod()
    assert [(one.last_line, one.latest) for one in found.processes] == [("", None)] * 2


@pytest.mark.parametrize(
    ("first", "second", "curve"),
    [
        ([10, 20, 30, 40, 50], [50, 60], [10, 20, 30, 40, 50, 60]),
        ([10, 20, 30, 40, 50], [30, 40], [10, 20, 30, 40]),
        ([10, 20, 30], [10], [10]),
        ([10, 20, 30], [40], [10, 20, 30, 40]),
        # As Paddle's launcher prints the log of a failed trainer once more.
        ([10, 20, 30, 10, 20, 30], [30, 40], [10, 20, 30, 40]),
        ([], [1], [1]),
        ([10], [], [10]),
    ],
)
async def test_steps_that_are_done_again_after_a_restart_count_once(
    stage: Stage, first: list[int], second: list[int], curve: list[int]
) -> None:
    await stage.job()
    await stage.pod()
    stage.log("".join(f"step={step} loss=0.5\n" for step in first))
    stage.log("[try 1 begins]\n" + "".join(f"step={step} loss=0.25\n" for step in second))
    found = (await stage.the_job()).curve
    assert [one.step for one in found] == curve
    assert [one.step for one in found if one.loss == 0.25] == second
