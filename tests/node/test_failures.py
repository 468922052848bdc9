"""What fails in real containers, and what the job says of it: who is to blame, why, and what became of it.

What each came to is printed at the end of the run. How jobs go on after failures is in test_restarts.py.
"""

from pathlib import Path
from typing import Any

import make
import pytest
import yaml
from real_cluster import Cluster, kill, tiny_job

from paddle_operator.api.meta import Manifest, find_condition
from paddle_operator.api.paddlejob import Failure, PaddleJob
from testbed import images
from testbed.controlplane import ControlPlane

pytestmark = pytest.mark.node

EXAMPLES = Path(__file__).parents[2] / "examples"
PADDLE = "paddle-operator/paddle:3.0.0"
LAUNCHER = "python -m paddle.distributed.launch train.py"
TRAINER = "/opt/paddle/bin/python -u train.py"

# Victims of worker 1. Whoever has not ended when the cause is known is not waited for, and not among them.
ENDED_OR_NOT_YET = {"worker 0", ""}

# Workers that meet at every step, as in any training; FAIL is what worker 1 does after the first.
TRAIN = """\
import os, time
import paddle
from paddle import distributed

distributed.init_parallel_env()
model = paddle.DataParallel(paddle.nn.Linear(1, 1))
step = 0
while True:
    model(paddle.ones([1, 1])).backward()  # meets the others
    step += 1
    print(f"step={step} ", flush=True)
    if distributed.get_rank() == 1:
        exec(os.environ["FAIL"])
    time.sleep(0.1)
"""


def train_job(name: str, fail: str = "", *, launcher: bool = True, **container: Any) -> Manifest:
    """Two workers that run the script above."""
    start = "python -m paddle.distributed.launch train.py" if launcher else "python train.py"
    environment = {"TRAIN": TRAIN, "FAIL": fail, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    made = make.container(
        image=PADDLE,
        command=["sh", "-c", f'printf %s "$TRAIN" > train.py; exec {start}'],
        env=[{"name": name, "value": value} for name, value in environment.items()],
        **container,
    )
    pod = make.template(made, restartPolicy="Never", terminationGracePeriodSeconds=1)
    return make.manifest(name, 2, pod=pod)


async def failed(cluster: Cluster, name: str) -> tuple[PaddleJob, Failure]:
    job = await cluster.world.phase(name, "Failed", "Completed")
    assert job.status.phase == "Failed", job.status
    assert job.status.failure is not None
    told = find_condition(job.status.conditions, "Failed")
    assert told is not None
    assert job.status.failure.message in told.message
    assert job.status.failure.next_step in told.message
    return job, job.status.failure


def in_short(failure: Failure) -> str:
    victims = f"; victims: {failure.victims}" if failure.victims else ""
    code = f" exit {failure.exit_code}" if failure.exit_code is not None else ""
    return f"Failed, class {failure.kind}: {failure.pod}{code} ({failure.reason}){victims}"


class TestPaddle:
    @pytest.fixture(autouse=True, scope="class")
    @staticmethod
    def _paddle(apiserver: ControlPlane) -> None:
        apiserver.node.import_image(images.ensure(images.PADDLE))

    async def test_a_trainer_that_exits_is_to_blame_and_not_its_peer(
        self, cluster: Cluster, outcomes: dict[str, str]
    ) -> None:
        cluster.world.start_manager()
        cluster.apply(train_job("job", fail="os._exit(7)"))
        _, failure = await failed(cluster, "job")
        assert (failure.pod, failure.exit_code, failure.kind) == ("job-worker-1", 7, "code")
        assert failure.victims in ENDED_OR_NOT_YET
        outcomes["trainer exits 7"] = in_short(failure)

    async def test_an_operator_that_was_away_finds_both_ended_and_tells_the_cause_from_its_victim(
        self, cluster: Cluster, outcomes: dict[str, str]
    ) -> None:
        manager = cluster.world.start_manager()
        cluster.apply(train_job("job", fail="os._exit(7)"))
        await cluster.world.phase("job", "Running")
        cluster.world.kill(manager)
        for rank in range(2):
            await cluster.world.pod_until(f"job-worker-{rank}", lambda pod: pod.status.phase == "Failed")
        cluster.world.start_manager()
        _, failure = await failed(cluster, "job")
        assert (failure.pod, failure.exit_code, failure.kind) == ("job-worker-1", 7, "code")
        assert failure.victims == "worker 0"
        outcomes["trainer exits 7, operator away"] = in_short(failure)

    @pytest.mark.parametrize(
        ("whom", "command", "code"), [("trainer", TRAINER, 247), ("launcher", LAUNCHER, 137)]
    )
    async def test_a_killed_process_is_to_blame_and_not_its_peer(
        self, cluster: Cluster, outcomes: dict[str, str], whom: str, command: str, code: int
    ) -> None:
        cluster.world.start_manager()
        cluster.apply(train_job("job"))
        await cluster.world.phase("job", "Running")
        await cluster.said("job-worker-1", "step=2 ")
        kill((await cluster.world.pods())["job-worker-1"], command)
        _, failure = await failed(cluster, "job")
        assert (failure.pod, failure.exit_code, failure.kind) == ("job-worker-1", code, "code")
        assert failure.victims in ENDED_OR_NOT_YET
        assert "SIGKILL" in failure.message
        outcomes[f"kill -9 of a {whom}"] = in_short(failure)

    async def test_a_killed_server_is_to_blame(self, cluster: Cluster, outcomes: dict[str, str]) -> None:
        cluster.world.start_manager()
        job = yaml.safe_load((EXAMPLES / "04-wide-and-deep" / "job.yaml").read_text())
        for role in ("ps", "worker"):
            pod = job["spec"][role]["template"]["spec"]
            pod["terminationGracePeriodSeconds"] = 1
            pod["containers"][0]["env"].append({"name": "STEPS", "value": "100000"})
        cluster.apply(job)
        await cluster.world.phase("wide-and-deep", "Running")
        await cluster.said("wide-and-deep-worker-0", "step=10 ")
        kill((await cluster.world.pods())["wide-and-deep-ps-1"], "python train.py")
        _, failure = await failed(cluster, "wide-and-deep")
        assert (failure.pod, failure.exit_code, failure.kind) == ("wide-and-deep-ps-1", 137, "code")
        outcomes["kill -9 of a parameter server"] = in_short(failure)

    async def test_a_trainer_out_of_memory_is_told_from_others_and_its_limit_is_named(
        self, cluster: Cluster, outcomes: dict[str, str]
    ) -> None:
        cluster.world.start_manager()
        hoard = "kept = [bytearray(b'x' * 2**26) for _ in range(2**10)]"
        cluster.apply(train_job("job", fail=hoard, resources={"limits": {"memory": "1200Mi"}}))
        _, failure = await failed(cluster, "job")
        assert (failure.pod, failure.kind, failure.reason) == ("job-worker-1", "OOM", "OOMKilled")
        assert "1200Mi" in failure.message
        assert failure.victims in ENDED_OR_NOT_YET
        outcomes["out of memory, 1200Mi"] = in_short(failure)


async def test_an_image_that_does_not_exist_is_named_at_once_and_ends_the_job_in_time(
    cluster: Cluster, outcomes: dict[str, str]
) -> None:
    cluster.world.start_manager()
    image = "registry.invalid/nobody/has:this"
    cluster.apply(tiny_job("job", "true", container={"image": image}, runPolicy={"startDeadlineSeconds": 15}))
    waiting = await cluster.world.condition("job", "Running", "False", "ImagePullBackOff")
    assert image in message_of(waiting, "Running")
    _, failure = await failed(cluster, "job")
    assert failure.kind == "image"
    assert image in failure.message
    outcomes["image that does not exist"] = f"ImagePullBackOff; {in_short(failure)}"


async def test_a_worker_without_a_node_is_told_with_the_words_of_the_scheduler(
    cluster: Cluster, outcomes: dict[str, str]
) -> None:
    cluster.world.start_manager()
    asks = {"resources": {"limits": {"nvidia.com/gpu": 3}}}  # of 4: there is room for one worker
    job = tiny_job("job", "sleep 600", container=asks, runPolicy={"startDeadlineSeconds": 10})
    cluster.apply(job)
    waiting = await cluster.world.condition("job", "Running", "False", "Unschedulable")
    assert "Insufficient nvidia.com/gpu" in message_of(waiting, "Running")
    _, failure = await failed(cluster, "job")
    assert (failure.kind, failure.reason) == ("config", "StartDeadlineExceeded")
    assert "Insufficient nvidia.com/gpu" in failure.message
    outcomes["worker that never starts"] = f"Unschedulable; {in_short(failure)}"


async def test_a_config_map_that_nobody_has_made_is_named(cluster: Cluster, outcomes: dict[str, str]) -> None:
    cluster.start_hasty_manager()
    volume = {"name": "settings", "configMap": {"name": "settings-of-mine"}}
    mount = {"volumeMounts": [{"name": "settings", "mountPath": "/settings"}]}
    cluster.apply(tiny_job("job", "true", container=mount, pod={"volumes": [volume]}))
    waiting = await cluster.world.condition("job", "Running", "False", "ConfigMapMissing")
    assert "settings-of-mine" in message_of(waiting, "Running")
    cluster.kubectl("create", "configmap", "settings-of-mine")
    await cluster.world.phase("job", "Completed")
    outcomes["config map that is missing"] = "ConfigMapMissing; Completed once it was made"


def message_of(job: PaddleJob, kind: str) -> str:
    condition = find_condition(job.status.conditions, kind)
    assert condition is not None
    return condition.message
