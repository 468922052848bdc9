"""PaddleJobs in real containers: a real kubelet, real containers, real Paddle; the manager is a process."""

import asyncio
import re
from itertools import product
from pathlib import Path
from typing import Any

import laptop
import make
import pytest
import yaml
from real_cluster import TINY, Cluster

from paddle_operator.api.meta import find_condition
from paddle_operator.paddlejob.hints import NO_SERVERS_IN_PADDLE
from testbed import images
from testbed.node_services import CONTAINERD, KUBELET

pytestmark = pytest.mark.node

EXAMPLES = Path(__file__).parents[2] / "examples"
DONE = re.compile(r"^done step=(\d+) loss=(\S+) parameters=(\S+)$", re.MULTILINE)


def job(name: str, script: str, *, workers: int = 2, **spec: Any) -> dict[str, Any]:
    container = make.container(image=TINY, command=["sh", "-c", script])
    return make.manifest(name, workers, pod=make.template(container), **spec)


async def test_every_rank_is_told_the_addresses_of_all(cluster: Cluster) -> None:
    cluster.world.start_manager()
    told = (
        "echo $PADDLE_TRAINER_ID of $PADDLE_TRAINERS_NUM $PADDLE_TRAINER_ENDPOINTS $PADDLE_CURRENT_ENDPOINT"
    )
    cluster.apply(job("told", told, workers=3, cleanPodPolicy="Never"))
    await cluster.world.phase("told", "Completed")
    pods = await cluster.world.pods()
    endpoints = [f"{pods[f'told-worker-{rank}'].status.pod_ip}:2379" for rank in range(3)]
    for rank in range(3):
        expected = f"{rank} of 3 {','.join(endpoints)} {endpoints[rank]}\n"
        assert cluster.logs(f"told-worker-{rank}") == expected


async def test_a_failing_rank_is_named_and_its_peers_end_with_their_logs_kept(cluster: Cluster) -> None:
    cluster.world.start_manager()
    script = (
        'echo begun; [ "$PADDLE_TRAINER_ID" = 1 ] && exit 3; trap "echo saved; exit 0" TERM; sleep 600 & wait'
    )
    cluster.apply(job("fails", script))
    failed = await cluster.world.phase("fails", "Failed")
    assert failed.status.failure is not None
    assert (failed.status.failure.pod, failed.status.failure.exit_code) == ("fails-worker-1", 3)
    assert failed.status.failure.node == "node-1"
    await cluster.world.pod_until("fails-worker-0", lambda pod: pod.status.reason == "DeadlineExceeded")
    assert cluster.logs("fails-worker-0") == "begun\nsaved\n"


@pytest.mark.parametrize("servers", [0, 1])
async def test_with_an_init_image_nobody_starts_before_the_names_of_its_role_resolve(
    cluster: Cluster, servers: int
) -> None:
    cluster.world.start_manager(options=(f"--initImage={TINY}",))
    script = "[ $TRAINING_ROLE = TRAINER ] || sleep 600"
    pod = make.template(
        make.container(image=TINY, command=["sh", "-c", script]), terminationGracePeriodSeconds=1
    )
    roles = {"ps": make.role(servers, pod)} if servers else {}
    cluster.apply(make.manifest("names", 2, pod=pod, intranet="Service", cleanPodPolicy="Never", **roles))
    finished = await cluster.world.phase("names", "Completed", "Failed")
    assert finished.status.phase == "Completed", finished.status
    waited = "jsonpath={.status.initContainerStatuses[0].state.terminated.exitCode}"
    assert cluster.kubectl("get", "pod", "names-worker-1", "-o", waited) == "0"


async def test_what_a_container_said_last_is_explained_and_not_repeated(cluster: Cluster) -> None:
    cluster.world.start_manager()
    said = 'ValueError: Operator "send" has not been registered.'
    script = f"echo password hunter2; echo '{said}'; [ $TRAINING_ROLE = PSERVER ] && sleep 600; exit 1"
    container = make.container(
        image=TINY, command=["sh", "-c", script], terminationMessagePolicy="FallbackToLogsOnError"
    )
    pod = make.template(container, terminationGracePeriodSeconds=1)
    cluster.apply(make.manifest("newer", 2, pod=pod, ps=make.role(1, pod)))
    failed = await cluster.world.phase("newer", "Failed")
    condition = find_condition(failed.status.conditions, "Failed")
    assert condition is not None
    assert condition.message.endswith(NO_SERVERS_IN_PADDLE)
    assert "hunter2" not in cluster.kubectl("get", "pdj/newer", "-o", "jsonpath={.status}")


@pytest.mark.alone
async def test_a_job_survives_a_kubelet_and_a_containerd_that_are_away(cluster: Cluster) -> None:
    cluster.world.start_manager()
    cluster.apply(job("steady", "echo begun; sleep 5", cleanPodPolicy="Never"))
    await cluster.world.phase("steady", "Running")
    node = cluster.world.plane.node
    for service in (KUBELET, CONTAINERD):
        node.stop_service(service)
    await asyncio.sleep(20)  # meanwhile the containers end, and nobody is there to notice
    for service in (CONTAINERD, KUBELET):
        node.start_service(service)
    await cluster.world.phase("steady", "Completed")
    assert cluster.logs("steady-worker-1") == "begun\n"


class TestExamples:
    @pytest.fixture(autouse=True, scope="class")
    @staticmethod
    def _paddle(apiserver: Any) -> None:
        apiserver.node.import_image(images.ensure(images.PADDLE))

    async def test_02_learns_in_pods_what_it_learns_here(self, cluster: Cluster, tmp_path: Path) -> None:
        documents = example("02-collective", STEPS="60")
        here = results_here(documents, EXAMPLES / "02-collective", tmp_path)
        there = await results_there(cluster, documents, "collective")
        assert float(there[0][1]) == pytest.approx(float(here[0][1]), abs=1e-4)

    async def test_03_ends_in_pods_with_the_digits_that_it_has_here(
        self, cluster: Cluster, tmp_path: Path
    ) -> None:
        documents = example("03-checkpoint")
        here = results_here(documents, EXAMPLES / "03-checkpoint", tmp_path)
        cluster.apply(volume(cluster, "checkpoints"))
        there = await results_there(cluster, documents, "checkpoint")
        assert there == here

    async def test_05_leaves_on_its_volume_what_each_process_printed(self, cluster: Cluster) -> None:
        cluster.world.start_manager()
        cluster.apply(volume(cluster, "training-logs"), *example("05-several-processes"))
        finished = await cluster.world.phase("several", "Completed", "Failed")
        assert finished.status.phase == "Completed", finished.status
        for rank, local_rank in product(range(2), repeat=2):
            log = cluster.folder / "several" / f"several-worker-{rank}" / f"workerlog.{local_rank}"
            text = log.read_text()
            assert f"process {2 * rank + local_rank} of 4 begins\n" in text
            assert "done after 100 steps" in text

    async def test_06_starts_in_pods_as_it_starts_here(self, cluster: Cluster, tmp_path: Path) -> None:
        documents = example("06-recipe")
        here = results_here(documents, EXAMPLES / "06-recipe", tmp_path)
        there = await results_there(cluster, documents, "recipe")
        assert float(there[0][1]) == pytest.approx(float(here[0][1]), abs=1e-4)


def example(name: str, **variables: str) -> list[dict[str, Any]]:
    """Its documents, with more variables for the training container."""
    documents = list(yaml.safe_load_all((EXAMPLES / name / "job.yaml").read_text()))
    (container,) = documents[-1]["spec"]["worker"]["template"]["spec"]["containers"]
    container["env"] += [{"name": variable, "value": value} for variable, value in variables.items()]
    return documents


def results_here(documents: list[dict[str, Any]], folder: Path, tmp_path: Path) -> list[tuple[str, ...]]:
    file, kept = tmp_path / "job.yaml", tmp_path / "kept"
    file.write_text(yaml.safe_dump_all(documents))
    image = documents[-1]["spec"]["worker"]["template"]["spec"]["containers"][0]["image"]
    volumes = tmp_path / "volumes"
    ran = laptop.run(file, "--keep", kept, "--volumes", volumes, "--image", f"{image}=@{folder}", limit=180)
    assert ran.code == 0, ran
    return equal_results([log.read_text() for log in sorted(kept.glob("logs/default/*/paddle.log"))])


async def results_there(
    cluster: Cluster, documents: list[dict[str, Any]], name: str
) -> list[tuple[str, ...]]:
    cluster.world.start_manager()
    cluster.apply(*documents)
    finished = await cluster.world.phase(name, "Completed", "Failed")
    assert finished.status.phase == "Completed", finished.status
    return equal_results([cluster.logs(f"{name}-worker-{rank}") for rank in range(2)])


def equal_results(logs: list[str]) -> list[tuple[str, ...]]:
    """Step, loss and fingerprint that the last line of each rank tells: all the same."""
    found = [match.groups() for log in logs if (match := DONE.search(log))]
    assert len(found) == 2, logs
    assert len(set(found)) == 1, found
    return found


def volume(cluster: Cluster, claim: str) -> dict[str, Any]:
    """Stands for the NFS of a real cluster: a folder of the node that all pods of the claim share."""
    namespace = cluster.world.namespace
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{namespace}-{claim}"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteMany"],
            "claimRef": {"namespace": namespace, "name": claim},
            "hostPath": {"path": str(cluster.folder), "type": "DirectoryOrCreate"},
        },
    }
