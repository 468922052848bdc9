"""Rare requests: with them, all that the operator may do is done in some test on the node (conftest.py)."""

from typing import Any

import pytest
from real_cluster import Cluster, tiny_job

from paddle_operator.api.names import LABEL_ATTEMPT, LABEL_JOB_UID, OLD_FINALIZER
from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS, SERVICES

pytestmark = pytest.mark.node


async def test_labels_that_somebody_takes_off_are_put_back(cluster: Cluster) -> None:
    """The rare requests: of objects that are there, although the watches do not show them."""
    world = cluster.world
    world.start_manager()
    missing = {"image": "paddle-operator/none:1", "imagePullPolicy": "Never"}
    cluster.apply(tiny_job("resnet", "sleep 600", intranet="Service"))
    # Of a job that runs nobody needs the list of peers any more; of one whose pods wait, they do.
    cluster.apply(tiny_job("waits", "", intranet="Service", container=missing))
    await world.phase("resnet", "Running")
    await world.config_map("waits")
    for resource, name in ((SERVICES, "resnet-worker-0"), (CONFIG_MAPS, "waits")):
        cluster.kubectl("label", str(resource), name, f"{LABEL_JOB_UID}-")
        await world.until(
            resource,
            name,
            lambda seen: seen is not None and LABEL_JOB_UID in seen.metadata.labels,
            f"the label of {resource} {name}",
        )
    cluster.kubectl("label", "pod", "resnet-worker-1", f"{LABEL_ATTEMPT}=7", "--overwrite")
    await world.pod_until("resnet-worker-1", lambda pod: pod.metadata.labels.get(LABEL_ATTEMPT) != "7")


async def test_an_end_with_everything_that_may_be_left(cluster: Cluster) -> None:
    """A finalizer of the Go operator, a restart, services to clean up, and a time to live."""
    world = cluster.world
    world.start_manager()
    once = "test -e /seen/it && exit 0; touch /seen/it; exit 3"
    seen: dict[str, Any] = {
        "name": "seen",
        "hostPath": {"path": str(cluster.folder), "type": "DirectoryOrCreate"},
    }
    job = tiny_job(
        "resnet",
        once,
        workers=1,
        container={"volumeMounts": [{"name": "seen", "mountPath": "/seen"}]},
        pod={"volumes": [seen]},
        intranet="Service",
        cleanPodPolicy="Always",
        runPolicy={"backoffLimit": 1, "ttlSecondsAfterFinished": 1},
    )
    job["metadata"]["finalizers"] = [OLD_FINALIZER]
    cluster.apply(job)
    await world.phase("resnet", "Completed")
    await world.gone(PADDLE_JOBS, "resnet")
    await world.gone(SERVICES, "resnet-worker-0")
    await world.gone(PODS, "resnet-worker-0")
