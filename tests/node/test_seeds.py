"""The PaddleJobs of the original documentation, word for word, in real containers with real training.

Whoever has such YAML can go on using it. What each came to is printed at the end of the run.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import plain_processes
import pytest
import yaml
from real_cluster import Cluster, nfs

from testbed import images

pytestmark = pytest.mark.node

SEEDS = sorted((Path(__file__).parents[1] / "golden" / "seeds").glob("*.yaml"))
RANK_DONE = re.compile(r"^done step=\d+ loss=(\S+) parameters=(\S+)$", re.MULTILINE)
# Workers do not wait for each other, so no two runs are equal to the last digit.
ALIKE = 0.03
LEARNED = 0.1

Document = dict[str, Any]


def text_of(file: Path) -> str:
    """Of the PaddleJob alone, to the letter."""
    (text,) = (
        one for one in re.split(r"^---$", file.read_text(), flags=re.MULTILINE) if "kind: PaddleJob" in one
    )
    return text


def job_of(file: Path) -> Document:
    job: Document = yaml.safe_load(text_of(file))
    return job


def templates(job: Document) -> list[Document]:
    return [job["spec"][role]["template"]["spec"] for role in ("ps", "worker") if role in job["spec"]]


def needs_volcano(file: Path) -> bool:
    return any(pod.get("schedulerName") == "volcano" for pod in templates(job_of(file)))


def seeds(*, volcano: bool = False, ps: bool = False) -> list[Any]:
    chosen = [
        file for file in SEEDS if needs_volcano(file) == volcano and ("ps" in job_of(file)["spec"]) == ps
    ]
    return [pytest.param(file, id=file.stem) for file in chosen]


@pytest.fixture(scope="module")
def imported() -> set[str]:
    """The names of the images that are on the node already."""
    return set()


@pytest.fixture
def name(file: Path, cluster: Cluster, imported: set[str]) -> str:
    """The document's job: its images are on the node, a manager runs, and nothing is applied yet."""
    job = job_of(file)
    node = cluster.world.plane.node
    for container in (container for pod in templates(job) for container in pod["containers"]):
        if container["image"] not in imported:
            (image,) = (one for one in images.ARCHIVED if container["image"] in one.all_names)
            node.import_image(images.ensure(image))
            imported.update(image.all_names)
    cluster.world.start_manager()
    name: str = job["metadata"]["name"]
    return name


@pytest.fixture(scope="module")
def plain_losses(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[float, float]]:
    """Of each worker, what the same training comes to without any operator."""
    trained = plain_processes.train(tmp_path_factory.mktemp("plain"))
    return [worker.losses for worker in trained.workers]


@pytest.fixture
def shared_volume(file: Path, cluster: Cluster) -> Iterator[None]:
    """For a document that claims it: with the scripts on it, where that document looks for them."""
    if "claimName: nfs-pvc" not in file.read_text():
        yield
        return
    folder = cluster.folder / "wide_and_deep"
    folder.mkdir(parents=True)
    shutil.copy(plain_processes.WIDE_AND_DEEP, folder)
    cluster.apply(*nfs(cluster.folder))
    yield
    cluster.kubectl("delete", "persistentvolume", "nfs-pv", "--wait=false")


def test_none_of_the_nine_documents_is_forgotten() -> None:
    tried = [*seeds(), *seeds(ps=True), *seeds(volcano=True, ps=True)]
    assert len(tried) == len(SEEDS) == 9


@pytest.mark.parametrize("file", seeds())
async def test_a_collective_job_ends_with_the_same_bits_on_all_ranks(
    cluster: Cluster, file: Path, name: str, outcomes: dict[str, str]
) -> None:
    cluster.kubectl("apply", "-f", "-", stdin=text_of(file))
    finished = await cluster.world.phase(name, "Completed", "Failed")
    assert finished.status.phase == "Completed", finished.status
    logs = [cluster.logs(f"{name}-worker-{rank}") for rank in range(2)]
    results = [match.groups() for log in logs if (match := RANK_DONE.search(log))]
    assert len(results) == 2, logs
    assert results[0] == results[1]
    loss, parameters = results[0]
    outcomes[file.stem] = f"Completed, loss {float(loss):.4f}, parameters {parameters} on both ranks"


def final_loss(losses: list[tuple[float, float]]) -> float:
    return sum(last for _, last in losses) / len(losses)


@pytest.mark.usefixtures("shared_volume")
@pytest.mark.parametrize("file", seeds(ps=True))
async def test_a_job_with_servers_learns_what_plain_processes_learn(
    cluster: Cluster,
    file: Path,
    name: str,
    tmp_path: Path,
    plain_losses: list[tuple[float, float]],
    outcomes: dict[str, str],
) -> None:
    cluster.kubectl("apply", "-f", "-", stdin=text_of(file))
    workers = [f"{name}-worker-{rank}" for rank in range(2)]
    for worker in workers:
        await cluster.world.pod_until(worker, lambda pod: pod.status.phase != "Pending")
    # Read as they are written: these jobs delete their pods when they are done.
    with cluster.followed(workers, tmp_path) as logs:
        finished = await cluster.world.phase(name, "Completed", "Failed")
    texts = [log.read_text() for log in logs]
    assert finished.status.phase == "Completed", (finished.status, texts)
    await cluster.world.no_pods()
    losses = [plain_processes.Ended(0, text).losses for text in texts]
    assert final_loss(losses) == pytest.approx(final_loss(plain_losses), abs=ALIKE)
    # Who begins later begins with what the other has learned already.
    assert final_loss(losses) < max(first for first, _ in losses) - LEARNED
    told = ", ".join(f"{first:.4f} -> {last:.4f}" for first, last in losses)
    outcomes[file.stem] = f"Completed, loss of the workers {told}"


@pytest.mark.parametrize("file", seeds(volcano=True, ps=True))
async def test_a_job_for_volcano_waits_for_it(
    cluster: Cluster, file: Path, name: str, outcomes: dict[str, str]
) -> None:
    """There is none on this node: what has no scheduler waits, and nothing else is wrong."""
    cluster.kubectl("apply", "-f", "-", stdin=text_of(file))
    for rank in range(2):
        await cluster.world.pod_until(f"{name}-ps-{rank}", lambda pod: bool(pod.status.pod_ip))
    pods = await cluster.world.pods()
    assert {pods[f"{name}-worker-{rank}"].status.phase for rank in range(2)} == {"Pending"}
    outcomes[file.stem] = "applied; its workers wait for the scheduler volcano"
