"""What others do to a job's objects, and to the server: nothing is lost, and everything is said."""

import asyncio
from typing import Any

import make
import msgspec
import pytest
from audit import tally
from world import World

from paddle_operator.api.meta import find_condition
from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS
from paddle_operator.kube.client import path
from paddle_operator.runtime.executor import IN_FLIGHT
from testbed.node import FakeNode
from testbed.node_pods import Behaviour

pytestmark = pytest.mark.apiserver

FOR_EVER = Behaviour(runs_for_ever=True)


async def test_a_pod_whose_labels_are_taken_off_is_not_lost(world: World, node: FakeNode) -> None:
    node.script(lambda _: FOR_EVER)
    world.start_manager()
    await world.submit(make.manifest(cleanPodPolicy="Never"))
    await world.phase("resnet", "Running")
    await world.patch(PODS, "resnet-worker-1", {"metadata": {"labels": {"paddle-res-type": None}}})
    await world.pod_until(
        "resnet-worker-1", lambda pod: pod.metadata.labels.get("paddle-res-type") == "worker"
    )
    for rank in (0, 1):
        node.finish(world.namespace, f"resnet-worker-{rank}")
    assert (await world.phase("resnet", "Completed", "Failed")).status.phase == "Completed"


async def test_a_pod_that_ended_well_may_be_collected_before_its_peers_end(
    world: World, node: FakeNode
) -> None:
    node.script(lambda pod: FOR_EVER if pod.metadata.name.endswith("-0") else Behaviour())
    world.start_manager()
    await world.submit(make.manifest())
    await world.job_until("resnet", lambda job: bool(job.status.worker and job.status.worker.succeeded_ranks))
    ended = await world.pod_until("resnet-worker-1", lambda pod: pod.status.phase == "Succeeded")
    await world.delete(PODS, ended)
    await world.gone(PODS, "resnet-worker-1")
    node.finish(world.namespace, "resnet-worker-0")
    job = await world.phase("resnet", "Completed", "Failed")
    assert job.status.phase == "Completed"
    assert job.status.worker is not None
    assert job.status.worker.succeeded == 2


async def test_a_pod_that_is_deleted_while_it_trains_fails_a_job_that_allows_no_disruption(
    world: World, node: FakeNode
) -> None:
    """That others are restarted is in test_restarts.py."""
    node.script(lambda _: FOR_EVER)
    world.start_manager()
    await world.submit(make.manifest(runPolicy={"maxDisruptions": 0}))
    await world.phase("resnet", "Running")
    await world.delete(PODS, await world.pod_until("resnet-worker-1", lambda _: True))
    job = await world.phase("resnet", "Completed", "Failed")
    assert job.status.failure is not None
    assert (job.status.failure.pod, job.status.failure.reason) == ("resnet-worker-1", "PodLost")


async def test_a_config_map_of_ours_without_our_labels_is_adopted(world: World) -> None:
    """As the Go operator leaves it, when a job changes hands while its pods wait for the map."""
    async with world.fake_node(
        retry_seconds=(600.0, 600.0),
        deny_first_lookup=lambda _: True,
    ) as node:
        node.hold()
        first = world.start_manager()
        await world.submit(make.manifest(cleanPodPolicy="Never"))
        pod = await world.pod_until("resnet-worker-1", lambda _: True)
        world.kill(first)
        owners = msgspec.to_builtins(pod.metadata.owner_references)
        bare: dict[str, Any] = {"name": "resnet", "ownerReferences": owners}
        await world.post(path(CONFIG_MAPS, world.namespace), {"metadata": bare, "data": {"OLD": "1"}})
        node.release()
        await world.pod_until("resnet-worker-1", lambda pod: bool(pod.status.pod_ip))
        world.start_manager()
        assert (await world.phase("resnet", "Completed", "Failed")).status.phase == "Completed"
    adopted = await world.config_map("resnet")
    assert adopted.metadata.labels["paddlepaddle.org/job-uid"] == pod.metadata.owner_references[0].uid
    assert await world.config_map_data("resnet") == {"OLD": "1"}
    assert [request for request in world.requests() if request.code == 403] == []


async def test_an_admission_webhook_that_is_down_is_said(world: World, node: FakeNode) -> None:
    hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    hook = {
        "name": "down.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": world.namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    await world.post(hooks, {"metadata": {"name": world.namespace}, "webhooks": [hook]})
    try:
        world.start_manager()
        await world.submit(make.manifest(cleanPodPolicy="Never"))
        job = await world.condition("resnet", "Created", "False", "CreateRefused")
        created = find_condition(job.status.conditions, "Created")
        assert created is not None
        assert "down.example.com" in created.message
    finally:
        await world.transport.request("DELETE", f"{hooks}/{world.namespace}")
    assert (await world.phase("resnet", "Completed", "Failed")).status.phase == "Completed"


async def test_a_finished_job_costs_no_request_after_a_restart(world: World, node: FakeNode) -> None:
    node.script(lambda _: Behaviour(exit_code=1))
    first = world.start_manager()
    await world.submit(make.manifest(workers=4, cleanPodPolicy="Always"))
    await world.phase("resnet", "Failed")
    await world.no_pods()
    world.kill(first)
    before = len(world.requests())
    world.start_manager()
    await world.patch(PADDLE_JOBS, "resnet", {"metadata": {"annotations": {"note": "1"}}})
    await asyncio.sleep(2)
    after = tally(world.requests()[before:])
    assert set(after) <= {"list paddlejobs", "list pods", "list services", "list configmaps"}
    assert tally(world.requests())["get pods"] == 0


async def test_a_refused_job_does_not_load_the_server_while_the_quota_moves(world: World) -> None:
    """The refusal's text changes with every pod of others; the job must not try again with each."""
    quotas = f"/api/v1/namespaces/{world.namespace}/resourcequotas"
    await world.post(
        quotas, {"metadata": {"name": "small"}, "spec": {"hard": {"pods": "0", "configmaps": "99"}}}
    )
    world.start_manager()
    await world.submit(make.manifest(workers=40))
    await world.condition("resnet", "Created", "False", "CreateRefused")
    for count in range(10):
        await world.post(path(CONFIG_MAPS, world.namespace), {"metadata": {"name": f"other-{count}"}})
        await asyncio.sleep(0.5)
    counts = tally(world.requests())
    print("\nrequests of a refused job in about 6 s:", dict(counts))
    assert counts["create pods"] <= IN_FLIGHT + 10
    assert counts["patch paddlejobs/status"] <= 4
