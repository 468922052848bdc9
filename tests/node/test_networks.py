"""Every mode in every network, in real containers with real training. RUNS=20 repeats what is a race.

What each came to is printed at the end of the run.
"""

import os
import re
from pathlib import Path
from typing import Any

import plain_processes
import pytest
import yaml
from real_cluster import Cluster

from paddle_operator.api.core import Pod
from testbed import images
from testbed.controlplane import ControlPlane

pytestmark = pytest.mark.node

EXAMPLES = Path(__file__).parents[2] / "examples"
DONE = re.compile(r"^done step=\d+ loss=(\S+)", re.MULTILINE)
NETWORKS = ("PodIP", "Service", "Host")
RUNS = int(os.environ.get("RUNS", "2"))
"""Of jobs whose workers might miss each other: CoreDNS remembers missing names, and gloo is hasty."""


@pytest.fixture(autouse=True, scope="module")
def _paddle(apiserver: ControlPlane) -> None:
    apiserver.node.import_image(images.ensure(images.PADDLE))


def example(folder: str, name: str, intranet: str, **variables: str) -> dict[str, Any]:
    """Its job under another name and in another network, with more variables for its containers."""
    job: dict[str, Any]
    (job,) = yaml.safe_load_all((EXAMPLES / folder / "job.yaml").read_text())
    job["metadata"]["name"] = name
    job["spec"] |= {"intranet": intranet, "cleanPodPolicy": "Never"}
    if intranet == "Service":
        # Paddle's launcher ends with 1 if DNS does not know its own name yet (docs/en/paddlejob.md).
        job["spec"]["runPolicy"] = {"backoffLimit": 2}
    for role in {"ps", "worker"} & set(job["spec"]):
        (container,) = job["spec"][role]["template"]["spec"]["containers"]
        container["env"] = [
            *container.get("env", ()),
            *({"name": n, "value": v} for n, v in variables.items()),
        ]
    return job


async def completed(cluster: Cluster, name: str, workers: int) -> list[str]:
    """The logs of its workers."""
    job = await cluster.world.phase(name, "Completed", "Failed")
    logs = [cluster.logs(f"{name}-worker-{rank}") for rank in range(workers)]
    assert job.status.phase == "Completed", "\n\n".join([str(job.status.failure), *logs])
    return logs


def losses(logs: list[str]) -> list[float]:
    found = [match for log in logs if (match := DONE.search(log))]
    assert len(found) == len(logs), logs
    return [float(match[1]) for match in found]


def was_stopped(pod: Pod) -> bool:
    return pod.status.reason == "DeadlineExceeded"


@pytest.mark.parametrize("intranet", NETWORKS)
async def test_collective(cluster: Cluster, outcomes: dict[str, str], intranet: str) -> None:
    """Two workers on one node train together: world size 2, not twice 1; also while others do the same."""
    cluster.world.start_manager()
    together, restarts = intranet == "Host", 0
    names = [f"job-{number}" for number in range(2 if together else RUNS)]
    if together:
        cluster.apply(*(example("02-collective", name, intranet, STEPS="20") for name in names))
    for name in names:
        if not together:
            cluster.apply(example("02-collective", name, intranet, STEPS="20"))
        logs = await completed(cluster, name, workers=2)
        restarts += (await cluster.world.phase(name, "Completed")).status.restarts
        assert all(f"worker {rank} of 2 begins" in log for rank, log in enumerate(logs)), logs
        last = losses(logs)
        assert last[0] == last[1]
    shown = f"loss {last[0]:.4f}, restarts {restarts}"
    outcomes[f"Collective, {intranet}"] = f"{len(names)} of {len(names)} Completed, {shown}"


@pytest.mark.parametrize("intranet", NETWORKS)
async def test_ps(cluster: Cluster, outcomes: dict[str, str], intranet: str, plain_loss: float) -> None:
    cluster.world.start_manager()
    names = [f"job-{number}" for number in range(RUNS if intranet == "Service" else 1)]
    for name in names:
        cluster.apply(example("04-wide-and-deep", name, intranet))
        last = losses(await completed(cluster, name, workers=2))
        assert sum(last) / 2 == pytest.approx(plain_loss, abs=0.03)
        for rank in range(2):
            # Stopped, not deleted: what it said can still be read.
            await cluster.world.pod_until(f"{name}-ps-{rank}", was_stopped)
            assert cluster.logs(f"{name}-ps-{rank}")
    shown = " and ".join(f"{loss:.4f}" for loss in last)
    outcomes[f"PS, {intranet}"] = f"{len(names)} of {len(names)} Completed, loss {shown}"


@pytest.mark.parametrize("gloo", [0, 2])
async def test_ps_with_other_gloo(cluster: Cluster, outcomes: dict[str, str], gloo: int) -> None:
    cluster.world.start_manager()
    job = example("04-wide-and-deep", "job", "PodIP")
    job["spec"]["withGloo"] = gloo
    cluster.apply(job)
    shown = " and ".join(f"{loss:.4f}" for loss in losses(await completed(cluster, "job", workers=2)))
    outcomes[f"PS, PodIP, withGloo {gloo}"] = f"Completed, loss {shown}"


async def test_single(cluster: Cluster, outcomes: dict[str, str]) -> None:
    cluster.world.start_manager()
    cluster.apply(*(example("01-single", f"job-{one.lower()}", one) for one in NETWORKS))
    found = [losses(await completed(cluster, f"job-{one.lower()}", workers=1))[0] for one in NETWORKS]
    assert len(set(found)) == 1
    outcomes["Single, in all networks"] = f"Completed, loss {found[0]:.4f}"


@pytest.fixture(scope="module")
def plain_loss(tmp_path_factory: pytest.TempPathFactory) -> float:
    """What the same training comes to without any operator."""
    trained = plain_processes.train(tmp_path_factory.mktemp("plain"))
    return sum(worker.losses[1] for worker in trained.workers) / 2
