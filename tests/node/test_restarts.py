"""Jobs that are killed, evicted, suspended, cut off or late, in real containers: how they go on, or end.

What each came to is printed at the end of the run. SEED=1 repeats a run of what draws lots.
"""

import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from real_cluster import Cluster, kill, processes_of, tiny_job

from paddle_operator.api.meta import Manifest, find_condition
from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.api.resources import PADDLE_JOBS
from testbed import images
from testbed.controlplane import ControlPlane
from testbed.node_services import CONTAINERD, KUBELET

pytestmark = pytest.mark.node

EXAMPLE = Path(__file__).parents[2] / "examples" / "03-checkpoint"
DONE = re.compile(r"^done step=(\d+) loss=(\S+) parameters=(\S+)$", re.MULTILINE)
STEPS, MANY_STEPS = "600", "8000"
LAUNCHER = "python -m paddle.distributed.launch train_checkpoint.py"
TRAINER = "/opt/paddle/bin/python -u train_checkpoint.py"
PLAIN = "python train_checkpoint.py"


class TestCheckpoint:
    """The training of example 03: whatever is done to it, it ends with the bits of one left undisturbed."""

    @pytest.fixture(autouse=True, scope="class")
    @staticmethod
    def _paddle(apiserver: ControlPlane) -> None:
        apiserver.node.import_image(images.ensure(images.PADDLE))

    @pytest.fixture(scope="class")
    @staticmethod
    def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, ...]]:
        """What it comes to if nobody disturbs it, by the number of steps: loss and parameters."""
        return {steps: train_here(tmp_path_factory.mktemp(steps), steps) for steps in (STEPS, MANY_STEPS)}

    async def test_a_killed_trainer_costs_one_restart(
        self, cluster: Cluster, undisturbed: dict[str, tuple[str, ...]], outcomes: dict[str, str]
    ) -> None:
        cluster.world.start_manager()
        await started(cluster, {"backoffLimit": 3})
        await cluster.said("checkpoint-worker-0", "step=100 ")
        kill((await cluster.world.pods())["checkpoint-worker-1"], TRAINER)
        job = await completed(cluster, undisturbed[STEPS])
        assert counts(job) == {"attempt": 1, "restarts": 1, "failures": 1, "disruptions": 0}
        outcomes["checkpoint, kill -9, backoffLimit 3"] = in_short(job)

    @pytest.mark.parametrize("whom", ["launcher", "plain script"])
    async def test_sigterm_from_outside_is_a_disruption(
        self, cluster: Cluster, undisturbed: dict[str, tuple[str, ...]], outcomes: dict[str, str], whom: str
    ) -> None:
        cluster.world.start_manager()
        # The first process of a container is spared by SIGTERM, unless it waits for it, as the launcher does.
        command = None if whom == "launcher" else ["sh", "-c", f"{PLAIN}; exit $?"]
        await started(cluster, {}, command)
        await cluster.said("checkpoint-worker-0", "step=100 ")
        process = LAUNCHER if whom == "launcher" else PLAIN
        kill((await cluster.world.pods())["checkpoint-worker-1"], process, signal.SIGTERM)
        again = await cluster.world.job_until("checkpoint", lambda job: job.status.restarts == 1)
        assert again.status.failure is not None
        assert (again.status.failure.kind, again.status.failure.pod) == ("preempted", "checkpoint-worker-1")
        job = await completed(cluster, undisturbed[STEPS])
        assert counts(job) == {"attempt": 1, "restarts": 1, "failures": 0, "disruptions": 1}
        code = again.status.failure.exit_code
        outcomes[f"SIGTERM to a {whom}"] = f"exit {code}, class preempted; {in_short(job)}"

    async def test_suspended_and_resumed_it_has_not_failed(
        self, cluster: Cluster, undisturbed: dict[str, tuple[str, ...]], outcomes: dict[str, str]
    ) -> None:
        cluster.world.start_manager()
        await started(cluster, {})
        await cluster.said("checkpoint-worker-0", "step=100 ")
        suspend(cluster, "true")
        await cluster.world.phase("checkpoint", "Suspended")
        await cluster.world.no_pods()
        suspend(cluster, "false")
        job = await completed(cluster, undisturbed[STEPS])
        assert counts(job) == {"attempt": 1, "restarts": 0, "failures": 0, "disruptions": 0}
        outcomes["suspend and resume"] = in_short(job)

    async def test_killed_ten_times_and_the_operator_too_it_counts_right_and_learns_the_same(
        self, cluster: Cluster, undisturbed: dict[str, tuple[str, ...]], outcomes: dict[str, str]
    ) -> None:
        seed = int(os.environ.get("SEED", str(time.time_ns() % 10**6)))
        print(f"SEED={seed}")
        chance = random.Random(seed)
        manager = cluster.start_hasty_manager()
        await started(cluster, {"backoffLimit": 10}, steps=MANY_STEPS)
        named = 0
        for attempt in range(10):
            await any_moment(cluster, chance)
            operator_dies = chance.choice(("before", "after", "never"))
            if operator_dies == "before":
                cluster.world.kill(manager)
            pod, command = await kill_any(cluster, chance)
            if operator_dies == "after":
                await asyncio.sleep(chance.uniform(0, 3))
                cluster.world.kill(manager)
            if operator_dies != "never":
                manager = cluster.start_hasty_manager()
            again = await runs_again(cluster, attempt + 1)
            print(f"{attempt}: {pod}, {command}; operator dies {operator_dies}: {again.status.failure}")
            named += again.status.failure is not None and again.status.failure.pod == pod
        job = await completed(cluster, undisturbed[MANY_STEPS])
        assert counts(job) == {"attempt": 10, "restarts": 10, "failures": 10, "disruptions": 0}
        operators = len(cluster.world.managers)
        told = f"{in_short(job)}, cause named {named} times, operators {operators}, SEED={seed}"
        outcomes["killed ten times"] = told


def train_here(folder: Path, steps: str) -> tuple[str, ...]:
    variables = {"STEPS": steps, "CHECKPOINTS": str(folder), "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(
        [sys.executable, EXAMPLE / "train_checkpoint.py"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | variables,
    )
    return results([ran.stdout])


def checkpoint_job(run_policy: Manifest, command: list[str], steps: str) -> list[dict[str, Any]]:
    """That of example 03, restarted as a whole."""
    documents = list(yaml.safe_load_all((EXAMPLE / "job.yaml").read_text()))
    job = documents[-1]
    job["spec"]["runPolicy"] = run_policy
    pod = job["spec"]["worker"]["template"]["spec"]
    pod |= {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
    (container,) = pod["containers"]
    container["command"] = command
    container["env"].append({"name": "STEPS", "value": steps})
    return documents


async def started(
    cluster: Cluster, run_policy: Manifest, command: list[str] | None = None, steps: str = STEPS
) -> None:
    volume = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteMany"],
        "claimRef": {"namespace": cluster.world.namespace, "name": "checkpoints"},
        "hostPath": {"path": str(cluster.folder), "type": "DirectoryOrCreate"},
    }
    made = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": cluster.world.namespace}}
    cluster.apply({**made, "spec": volume}, *checkpoint_job(run_policy, command or LAUNCHER.split(), steps))
    await cluster.world.phase("checkpoint", "Running")


async def runs_again(cluster: Cluster, attempt: int) -> PaddleJob:
    def holds(job: PaddleJob) -> bool:
        return job.status.attempt == attempt and job.status.phase == "Running"

    return await cluster.world.job_until("checkpoint", holds, f"try {attempt} to run")


async def completed(cluster: Cluster, undisturbed: tuple[str, ...]) -> PaddleJob:
    job = await cluster.world.phase("checkpoint", "Completed", "Failed")
    assert job.status.phase == "Completed", job.status
    assert results([cluster.logs(f"checkpoint-worker-{rank}") for rank in range(2)]) == undisturbed
    return job


def results(logs: list[str]) -> tuple[str, ...]:
    """What the last lines of all ranks tell: all the same."""
    found = [match.groups() for log in logs if (match := DONE.search(log))]
    assert len(found) == len(logs), logs
    assert len(set(found)) == 1, found
    return found[0]


def counts(job: PaddleJob) -> dict[str, int]:
    status = job.status
    return {
        "attempt": status.attempt,
        "restarts": status.restarts,
        "failures": status.failures,
        "disruptions": status.disruptions,
    }


def in_short(job: PaddleJob) -> str:
    told = ", ".join(f"{name} {count}" for name, count in counts(job).items())
    return f"{job.status.phase}, {told}"


async def any_moment(cluster: Cluster, chance: random.Random) -> None:
    """Of a try that runs: while Paddle starts, or in its first steps; ten tries together do not make all."""
    wanted = "never"

    def is_there(line: str) -> bool:
        nonlocal wanted
        if "begins after step " in line:
            wanted = f"step={int(line.rpartition(' ')[2]) + 10 * chance.randint(1, 5)} "
        return wanted in line

    if chance.random() < 0.3:
        await asyncio.sleep(chance.uniform(0, 2))
    else:
        await cluster.said("checkpoint-worker-0", is_there)


async def kill_any(cluster: Cluster, chance: random.Random) -> tuple[str, str]:
    """A trainer or a launcher, of any worker. At first there is no trainer, only a launcher."""
    pod = (await cluster.world.pods())[f"checkpoint-worker-{chance.randrange(2)}"]
    command = chance.choice(sorted({LAUNCHER, TRAINER} & set(processes_of(pod).values())))
    kill(pod, command)
    return pod.metadata.name, command


def suspend(cluster: Cluster, wish: str) -> None:
    patch = f'{{"spec": {{"runPolicy": {{"suspend": {wish}}}}}}}'
    cluster.kubectl("patch", "pdj/checkpoint", "--type=merge", f"--patch={patch}")


async def test_eviction_is_a_disruption(cluster: Cluster, outcomes: dict[str, str]) -> None:
    cluster.world.start_manager()
    cluster.apply(twice("job", cluster.folder))
    await cluster.world.phase("job", "Running")
    evict = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "job-worker-1"}}
    where = f"/api/v1/namespaces/{cluster.world.namespace}/pods/job-worker-1/eviction"
    cluster.kubectl("create", "--raw", where, "-f", "-", stdin=json.dumps(evict))
    again = await cluster.world.job_until("job", lambda job: job.status.restarts == 1)
    job = await cluster.world.phase("job", "Completed", "Failed")
    assert job.status.phase == "Completed", job.status
    assert counts(job) == {"attempt": 1, "restarts": 1, "failures": 0, "disruptions": 1}
    assert again.status.failure is not None
    assert (again.status.failure.pod, again.status.failure.kind) == ("job-worker-1", "preempted")
    outcomes["eviction through the API"] = f"{again.status.failure.reason}; {in_short(job)}"


async def test_a_job_that_is_out_of_time_fails_and_its_pods_end(
    cluster: Cluster, outcomes: dict[str, str]
) -> None:
    cluster.world.start_manager()
    cluster.apply(tiny_job("job", "sleep 600", runPolicy={"activeDeadlineSeconds": 3, "backoffLimit": 5}))
    job = await cluster.world.phase("job", "Failed", "Completed")
    assert job.status.failure is not None
    assert job.status.failure.reason == "ActiveDeadlineExceeded"
    assert job.status.restarts == 0
    for rank in range(2):
        await cluster.world.pod_until(f"job-worker-{rank}", lambda pod: pod.status.phase == "Failed")
    outcomes["activeDeadlineSeconds"] = (
        f"Failed, class {job.status.failure.kind}: {job.status.failure.message}"
    )


async def test_a_finished_job_goes_with_all_that_it_has_when_its_time_has_come(
    cluster: Cluster, outcomes: dict[str, str]
) -> None:
    cluster.world.start_manager()
    cluster.apply(tiny_job("job", "true", cleanPodPolicy="Never", runPolicy={"ttlSecondsAfterFinished": 3}))
    await cluster.world.phase("job", "Completed")
    assert len(await cluster.world.pods()) == 2
    await cluster.world.gone(PADDLE_JOBS, "job")
    await cluster.world.no_pods()
    outcomes["ttlSecondsAfterFinished"] = "Completed; job and pods are gone"


@pytest.mark.alone
async def test_a_pod_on_a_node_that_is_gone_is_deleted_by_force_if_the_job_asks_for_it(
    cluster: Cluster, outcomes: dict[str, str]
) -> None:
    cluster.world.start_manager()
    cluster.apply(
        twice(
            "job",
            cluster.folder,
            workers=1,
            cleanPodPolicy="Never",
            runPolicy={"forceDeleteAfterSeconds": 35},
        )
    )
    await cluster.world.phase("job", "Running")
    old = (await cluster.world.pods())["job-worker-0"]
    node = cluster.world.plane.node
    for service in (KUBELET, CONTAINERD):
        node.stop_service(service)
    try:
        cluster.kubectl("delete", "pod", "job-worker-0", "--wait=false")
        await cluster.world.condition("job", "Restarting", "True", "NodeLost")
        stuck = await cluster.world.job_until("job", lambda job: "by force" in message_of(job, "Created"))
        new = await cluster.world.pod_until("job-worker-0", lambda pod: pod.metadata.uid != old.metadata.uid)
        assert processes_of(old), "the node is away, not what runs on it"
    finally:
        for service in (CONTAINERD, KUBELET):
            node.start_service(service)
    job = await cluster.world.phase("job", "Completed", "Failed")
    assert job.status.phase == "Completed", job.status
    assert counts(job) == {"attempt": 1, "restarts": 1, "failures": 0, "disruptions": 1}
    last = await cluster.world.pod_until("job-worker-0", lambda pod: pod.status.phase == "Succeeded")
    assert last.metadata.uid == new.metadata.uid, "the kubelet that came back has left it alone"
    assert not processes_of(old), "and has ended what nobody knows any more"
    outcomes["node that is gone"] = f"NodeLost, {message_of(stuck, 'Created')}; {in_short(job)}"


def message_of(job: PaddleJob, kind: str) -> str:
    condition = find_condition(job.status.conditions, kind)
    return condition.message if condition is not None else ""


def twice(name: str, folder: Path, **spec: Any) -> Manifest:
    """Workers that would sleep for long in the first try, and do so for a moment in the second."""
    volume = {"name": "shared", "hostPath": {"path": str(folder), "type": "DirectoryOrCreate"}}
    mount = {"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}
    script = "mkdir /shared/$PADDLE_TRAINER_ID && sleep 600; sleep 3"
    return tiny_job(name, script, container=mount, pod={"volumes": [volume]}, **spec)
