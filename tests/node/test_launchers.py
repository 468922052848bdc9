"""Each way of starting once in real pods, spread over the networks: every process sees the whole world.

What each saw is printed at the end of the run.
"""

import shutil

import pytest
from launchers.ways import SCRIPTS, WAYS, Way, check, manifest, read_results, worlds
from real_cluster import Cluster

from testbed import images
from testbed.controlplane import ControlPlane

pytestmark = pytest.mark.node

NETWORKS = ("PodIP", "Host", "Service")
CASES = [(way, NETWORKS[number % len(NETWORKS)]) for number, way in enumerate(WAYS)]


@pytest.fixture(autouse=True, scope="module")
def _paddle(apiserver: ControlPlane) -> None:
    apiserver.node.import_image(images.ensure(images.PADDLE))


@pytest.mark.parametrize(("way", "intranet"), CASES, ids=lambda one: getattr(one, "name", one))
async def test_all_are_in_one_world(
    cluster: Cluster, outcomes: dict[str, str], way: Way, intranet: str
) -> None:
    cluster.world.start_manager()
    scripts, results = (cluster.folder / name for name in ("scripts", "results"))
    scripts.mkdir(parents=True)
    results.mkdir()
    for script in SCRIPTS.glob("*.py"):
        shutil.copy(script, scripts)
    cluster.apply(job(way, intranet, cluster))
    ended = await cluster.world.phase("launchers", "Completed", "Failed")
    logs = [cluster.logs(f"launchers-worker-{rank}") for rank in range(2)]
    assert ended.status.phase == "Completed", "\n\n".join([str(ended.status.failure), *logs])
    processes = read_results(results)
    check(way, processes)
    restarts = f", restarts {ended.status.restarts}" if ended.status.restarts else ""
    outcomes[f"{way.name}, {intranet}"] = f"world {worlds(processes)}, parameters equal{restarts}"


def job(way: Way, intranet: str, cluster: Cluster) -> dict[str, object]:
    """Scripts and results are in a folder of the node, which is one of this machine."""
    made = manifest(
        way,
        intranet,
        variables={"SCRIPTS": "/shared/scripts", "RESULTS": "/shared/results", "PYTHON": "python"},
        container={"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]},
        volumes=[{"name": "shared", "hostPath": {"path": str(cluster.folder)}}],
    )
    if intranet == "Service":
        # Paddle's launcher ends with 1 if DNS does not know its own name yet (docs/en/paddlejob.md).
        made["spec"]["runPolicy"] = {"backoffLimit": 2}
    return made
