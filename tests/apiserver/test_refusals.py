"""What the server refuses to create becomes a condition and one event within seconds, and is tried again."""

import make
import pytest
from audit import tally
from world import World

from paddle_operator.api.meta import Manifest, find_condition
from paddle_operator.api.resources import PODS, SERVICES
from testbed.node import FakeNode

pytestmark = pytest.mark.apiserver

FOREIGN: dict[str, Manifest] = {
    "pods": {"spec": {"containers": [make.container()]}},
    "services": {"spec": {"ports": [{"port": 80}]}},
}


@pytest.mark.parametrize(("plural", "intranet"), [("pods", "PodIP"), ("services", "Service")])
async def test_a_name_that_somebody_else_holds_is_left_to_them(
    world: World, node: FakeNode, plural: str, intranet: str
) -> None:
    resource = {"pods": PODS, "services": SERVICES}[plural]
    foreign = {"metadata": {"name": "resnet-worker-1"}, **FOREIGN[plural]}
    await world.post(f"/api/v1/namespaces/{world.namespace}/{plural}", foreign)
    world.start_manager()
    await world.submit(make.manifest(intranet=intranet, cleanPodPolicy="Never"))
    job = await world.condition("resnet", "Created", "False", "CreateRefused")
    created = find_condition(job.status.conditions, "Created")
    assert created is not None
    assert f"{plural[:-1]} resnet-worker-1 exists and does not belong to this job" in created.message
    theirs = await world.get(resource, "resnet-worker-1")
    assert theirs is not None
    assert theirs.metadata.controller is None

    await world.delete(resource, theirs)
    assert (await world.phase("resnet", "Completed", "Failed")).status.phase == "Completed"
    world.stop_managers()
    counts = tally(world.requests())
    # Refused, created, runs, completed.
    assert counts["create events"] <= 4
    assert counts.total() <= 40


async def test_a_namespace_that_goes_takes_its_jobs_with_it_and_nothing_loops(
    world: World, node: FakeNode
) -> None:
    """Held by a finalizer, a job outlives the time in which its namespace lets anything be created."""
    world.start_manager()
    held = make.manifest("held")
    held["metadata"]["finalizers"] = ["example.org/hold"]
    await world.submit(held)
    await world.phase("held", "Running", "Completed")
    await world.transport.request("DELETE", f"/api/v1/namespaces/{world.namespace}")
    await world.phase("held", "Terminating", "Completed")
    before = tally(world.requests()).total()
    await world.no_pods()
    assert tally(world.requests()).total() - before < 10
    path = f"/apis/batch.paddlepaddle.org/v1/namespaces/{world.namespace}/paddlejobs/held"
    await world.transport.request(
        "PATCH", path, body=b'{"metadata":{"finalizers":[]}}', content_type="application/merge-patch+json"
    )
