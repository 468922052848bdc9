"""What training says of itself, in real containers: the termination message as a real kubelet takes it."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from real_cluster import Cluster, tiny_job

from paddle_operator.api.paddlejob import PaddleJob
from testbed import images

pytestmark = pytest.mark.node

EXAMPLE = Path(__file__).parents[2] / "examples" / "07-report" / "job.yaml"
MESSAGE = "jsonpath={.status.containerStatuses[0].state.terminated.message}"
FAILED = 'jsonpath={.status.conditions[?(@.type=="Failed")].reason}'
# Each trains in a world of its own, and says so where the kubelet looks.
ALONE = """echo '{"paddlepaddle.org/report": 1, "processes": [{"rank": 0, "world": 1}]}' > """


async def ended(cluster: Cluster, job: dict[str, Any]) -> PaddleJob:
    cluster.world.start_manager()
    cluster.apply(job)
    return await cluster.world.phase(job["metadata"]["name"], "Completed", "Failed")


async def test_workers_that_trained_alone_fail_the_job_although_all_ended_with_0(cluster: Cluster) -> None:
    job = await ended(cluster, tiny_job("alone", ALONE + "/dev/termination-log"))
    assert job.status.phase == "Failed"
    assert cluster.kubectl("get", "pdj/alone", "-o", FAILED) == "TrainedAlone"
    assert job.status.failure is not None
    assert "trained in a world of 1, but the job has 2 workers" in job.status.failure.message


async def test_another_path_of_the_message_is_told_to_the_script(cluster: Cluster) -> None:
    container = {"terminationMessagePath": "/tmp/said"}
    await ended(cluster, tiny_job("elsewhere", ALONE + "$TERMINATION_MESSAGE_PATH", container=container))
    assert cluster.kubectl("get", "pdj/elsewhere", "-o", FAILED) == "TrainedAlone"


async def test_workers_may_be_independent_on_purpose(cluster: Cluster) -> None:
    wanted = tiny_job("sweep", ALONE + "/dev/termination-log")
    wanted["metadata"]["annotations"] = {"paddlepaddle.org/independent-ranks": "true"}
    job = await ended(cluster, wanted)
    assert job.status.phase == "Completed"


async def test_the_module_tells_of_real_training_and_stops_it_where_it_is_alone(cluster: Cluster) -> None:
    cluster.world.plane.node.import_image(images.ensure(images.PADDLE))
    example = yaml.safe_load(EXAMPLE.read_text())
    job = await ended(cluster, example)
    assert job.status.phase == "Completed", job.status
    said = [
        json.loads(cluster.kubectl("get", "pod", f"report-worker-{rank}", "-o", MESSAGE)) for rank in (0, 1)
    ]
    processes = [process for one in said for process in one["processes"]]
    assert [(one["rank"], one["world"], one["step"]) for one in processes] == [(0, 2, 60), (1, 2, 60)]
    example["metadata"]["name"] = "alone"
    training = example["spec"]["worker"]["template"]["spec"]["containers"][0]
    training["command"] = ["sh", "-c", "unset PADDLE_TRAINERS_NUM; exec python train_report.py"]
    job = await ended(cluster, example)
    assert cluster.kubectl("get", "pdj/alone", "-o", FAILED) == "TrainedAlone", job.status
