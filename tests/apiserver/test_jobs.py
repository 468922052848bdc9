"""Whole lives of PaddleJobs: the real manager on a real API server, pods played by the fake node."""

import asyncio
import signal
from collections.abc import AsyncIterator

import make
import pytest
from audit import tally
from world import OPERATOR, World

from paddle_operator.api.core import Pod
from paddle_operator.api.meta import find_condition
from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS
from testbed.node import FakeNode
from testbed.node_pods import Behaviour

pytestmark = pytest.mark.apiserver

FOR_EVER = Behaviour(runs_for_ever=True)


def told(node: FakeNode, pods: dict[str, Pod]) -> list[dict[str, str]]:
    """What the training container of each pod was told, in the order of the pods' ranks."""
    environments = [
        node.environment[pod.metadata.namespace, name, pod.metadata.uid]["paddle"]
        for name, pod in pods.items()
    ]
    return sorted(environments, key=lambda environment: int(environment["PADDLE_TRAINER_ID"]))


@pytest.mark.parametrize("workers", [1, 2, 64])
async def test_a_job_runs_to_completed_and_every_rank_knows_its_peers(
    world: World, node: FakeNode, workers: int
) -> None:
    world.start_manager()
    await world.submit(make.manifest(workers=workers, cleanPodPolicy="Never"))
    job = await world.phase("resnet", "Completed", "Failed")
    assert job.status.phase == "Completed"
    assert job.status.mode == ("Single" if workers == 1 else "Collective")
    assert job.status.worker is not None
    assert job.status.worker.succeeded == workers
    assert job.status.start_time is not None
    assert job.status.completion_time is not None
    assert job.status.start_time <= job.status.completion_time

    pods = await world.pods()
    assert set(pods) == {f"resnet-worker-{rank}" for rank in range(workers)}
    environments = told(node, pods)
    assert [environment["PADDLE_TRAINER_ID"] for environment in environments] == [
        str(n) for n in range(workers)
    ]
    endpoints = [f"{pods[f'resnet-worker-{rank}'].status.pod_ip}:2379" for rank in range(workers)]
    for rank, environment in enumerate(environments):
        assert environment["PADDLE_TRAINER_ENDPOINTS"] == ",".join(endpoints)
        assert environment["PADDLE_CURRENT_ENDPOINT"] == endpoints[rank]
        assert environment["PADDLE_TRAINERS_NUM"] == str(workers)


async def test_the_pods_of_a_completed_job_are_cleaned_by_default(world: World, node: FakeNode) -> None:
    world.start_manager()
    await world.submit(make.manifest())
    await world.phase("resnet", "Completed")
    await world.no_pods()


async def test_a_failing_worker_fails_the_job_and_is_named(world: World, node: FakeNode) -> None:
    node.script(lambda pod: Behaviour(exit_code=3) if pod.metadata.name.endswith("-1") else FOR_EVER)
    world.start_manager()
    await world.submit(make.manifest())
    job = await world.phase("resnet", "Completed", "Failed")
    failed = find_condition(job.status.conditions, "Failed")
    assert failed is not None
    assert (failed.status, failed.reason) == ("True", "PodFailed")
    assert "worker 1" in failed.message
    assert "exited with 3" in failed.message
    assert job.status.failure is not None
    assert (job.status.failure.pod, job.status.failure.exit_code) == ("resnet-worker-1", 3)
    # Kept for its log, but it holds no GPU any more.
    survivor = await world.pod_until("resnet-worker-0", lambda pod: pod.status.phase == "Failed")
    assert survivor.status.reason == "DeadlineExceeded"


async def test_a_job_deleted_while_it_starts_leaves_nothing(world: World, node: FakeNode) -> None:
    node.script(lambda _: Behaviour(start_seconds=600))
    world.start_manager()
    job = await world.submit(make.manifest(workers=4))
    await world.pod_until("resnet-worker-3", lambda pod: bool(pod.spec.node_name))
    await world.delete(PADDLE_JOBS, job)
    await world.no_pods()
    await world.gone(CONFIG_MAPS, "resnet")


async def test_a_job_deleted_when_its_config_map_stands_leaves_nothing(world: World, node: FakeNode) -> None:
    node.script(lambda _: FOR_EVER)
    world.start_manager()
    job = await world.submit(make.manifest(workers=4))
    await world.phase("resnet", "Running")
    await world.delete(PADDLE_JOBS, job)
    await world.no_pods()
    await world.gone(CONFIG_MAPS, "resnet")


async def test_a_recreated_job_inherits_neither_pods_nor_config_map(world: World, node: FakeNode) -> None:
    node.script(lambda _: Behaviour(runs_for_ever=True, termination_seconds=1.5))
    world.start_manager()
    old = await world.submit(make.manifest(cleanPodPolicy="Never"))
    await world.phase("resnet", "Running")
    old_pods, old_map = await world.pods(), await world.config_map("resnet")
    node.script(lambda _: Behaviour(run_seconds=0.2))
    await world.delete(PADDLE_JOBS, old)
    await world.gone(PADDLE_JOBS, "resnet")
    new = await world.submit(make.manifest(cleanPodPolicy="Never"))

    waiting = await world.condition("resnet", "Created", "False", "NamesakeTerminating")
    assert waiting.uid == new.uid
    job = await world.phase("resnet", "Completed", "Failed")
    assert job.status.phase == "Completed"
    pods, config_map = await world.pods(), await world.config_map("resnet")
    assert {pod.metadata.uid for pod in pods.values()}.isdisjoint(
        pod.metadata.uid for pod in old_pods.values()
    )
    assert all(pod.metadata.controlled_by(new.uid) for pod in pods.values())
    assert config_map.metadata.controlled_by(new.uid)
    assert config_map.metadata.uid != old_map.metadata.uid
    addresses = ",".join(pods[name].status.pod_ip for name in sorted(pods))
    assert {environment["PADDLE_TRAINERS"] for environment in told(node, pods)} == {addresses}


@pytest.mark.parametrize("moment", ["some pods exist", "the config map exists", "all pods run"])
async def test_a_manager_killed_and_restarted_does_nothing_twice(
    world: World, node: FakeNode, moment: str
) -> None:
    workers = 8
    node.script(lambda _: FOR_EVER)
    manager = world.start_manager()
    await world.submit(make.manifest(workers=workers, cleanPodPolicy="Never"))
    if moment == "some pods exist":
        await world.until(PODS, "resnet-worker-0", lambda pod: pod is not None)
    elif moment == "the config map exists":
        await world.config_map("resnet")
    else:
        await world.phase("resnet", "Running")
    world.kill(manager, signal.SIGKILL)
    world.start_manager()
    await world.phase("resnet", "Running")
    for rank in range(workers):
        node.finish(world.namespace, f"resnet-worker-{rank}")
    job = await world.phase("resnet", "Completed", "Failed")
    assert job.status.phase == "Completed"
    assert (
        len({environment["PADDLE_TRAINER_ENDPOINTS"] for environment in told(node, await world.pods())}) == 1
    )
    created = tally([request for request in world.requests() if request.code == 201])
    # Not ==: if the manager was killed while it waited for an answer, the log may lack the code of that one.
    assert created["create pods"] <= workers == len(await world.pods())
    assert created["create configmaps"] == 1


async def test_jobs_of_one_name_in_two_namespaces_do_not_mix(world: World, node: FakeNode) -> None:
    other = world.namespace + "-b"
    await world.post("/api/v1/namespaces", {"metadata": {"name": other}})
    neighbour = World(world.plane, other, world.transport)
    world.start_manager(user="admin", namespace="")
    async with neighbour.fake_node() as other_node:
        node.script(lambda _: Behaviour(exit_code=1))
        await asyncio.gather(
            world.submit(make.manifest(cleanPodPolicy="Never")),
            neighbour.submit(make.manifest(workers=3, cleanPodPolicy="Never")),
        )
        mine = await world.phase("resnet", "Completed", "Failed")
        theirs = await neighbour.phase("resnet", "Completed", "Failed")
        assert (mine.status.phase, theirs.status.phase) == ("Failed", "Completed")
        assert all(pod.metadata.controlled_by(theirs.uid) for pod in (await neighbour.pods()).values())
        assert len(other_node.environment) == 3


async def test_a_foreign_config_map_is_not_taken_over_and_no_pod_is_made_meanwhile(
    world: World, node: FakeNode
) -> None:
    foreign = {"metadata": {"name": "resnet"}, "data": {"PADDLE_TRAINERS_NUM": "99"}}
    await world.post(f"/api/v1/namespaces/{world.namespace}/configmaps", foreign)
    world.start_manager()
    await world.submit(make.manifest(cleanPodPolicy="Never"))
    job = await world.condition("resnet", "Created", "False", "ConfigMapTaken")
    created = find_condition(job.status.conditions, "Created")
    assert created is not None
    assert "config map resnet" in created.message
    assert await world.pods() == {}
    assert await world.config_map_data("resnet") == foreign["data"]

    await world.delete(CONFIG_MAPS, await world.config_map("resnet"))
    job = await world.phase("resnet", "Completed", "Failed")
    assert job.status.phase == "Completed"
    assert tally(world.requests())["create pods"] == 2


async def test_what_a_quota_refuses_is_said_and_tried_again(world: World, node: FakeNode) -> None:
    quotas = f"/api/v1/namespaces/{world.namespace}/resourcequotas"
    await world.post(quotas, {"metadata": {"name": "small"}, "spec": {"hard": {"pods": "1"}}})
    await _quota_is_known(world, quotas)
    world.start_manager()
    await world.submit(make.manifest(cleanPodPolicy="Never"))
    job = await world.condition("resnet", "Created", "False", "CreateRefused")
    created = find_condition(job.status.conditions, "Created")
    assert created is not None
    assert "exceeded quota: small" in created.message
    await world.transport.request("DELETE", f"{quotas}/small")
    assert (await world.phase("resnet", "Completed", "Failed")).status.phase == "Completed"


async def _quota_is_known(world: World, quotas: str) -> None:
    """A new quota counts once the quota controller has looked at it."""
    for _ in range(500):
        if b'"used"' in await world.transport.request("GET", f"{quotas}/small"):
            return
    pytest.fail("the quota controller does not answer")


async def test_an_idle_job_costs_no_request(world: World, node: FakeNode) -> None:
    node.script(lambda pod: FOR_EVER if pod.metadata.name.startswith("resnet") else None)
    world.start_manager()
    await world.submit(make.manifest())
    await world.submit(make.manifest("ended", cleanPodPolicy="Never"))
    await world.submit(make.manifest("unserved", elastic=1))
    await world.phase("resnet", "Running")
    await world.phase("ended", "Completed")
    await world.condition("unserved", "Created", "False", "NotServed")
    # Lets the last write come back, and the pauses of the queue pass.
    await asyncio.sleep(2)
    before = tally(world.requests())
    await asyncio.sleep(5)
    assert tally(world.requests()) == before


async def test_sixty_four_workers_cost_few_requests(world: World, node: FakeNode) -> None:
    workers = 64
    world.start_manager()
    await world.submit(make.manifest(workers=workers, cleanPodPolicy="Never"))
    await world.phase("resnet", "Completed")
    world.stop_managers()
    counts = tally(world.requests())
    print("\nrequests of 1x64:", dict(sorted(counts.items())), "in all", counts.total())
    assert counts["create pods"] == workers
    assert counts["patch pods"] <= workers
    assert counts.total() <= 2 * workers + 15
    # An event may still be under way when the manager is stopped.
    refused = [one for one in world.requests() if one.code >= 400 and one.resource != "events"]
    assert [str(request) for request in refused] == ["get configmaps"]  # it was not there yet


async def test_a_pod_that_stays_stuck_after_its_nudge_is_nudged_again(
    world: World, denying_node: FakeNode
) -> None:
    world.start_manager()
    await world.submit(make.manifest(cleanPodPolicy="Never"))
    assert (await world.phase("resnet", "Completed", "Failed")).status.phase == "Completed"
    counts = tally(world.requests())
    assert 3 <= counts["patch pods"] <= 4


@pytest.fixture
async def denying_node(world: World) -> AsyncIterator[FakeNode]:
    """A kubelet that is not yet allowed to read the new map, and would by itself try again in ten minutes."""
    async with world.fake_node(
        retry_seconds=(600.0, 600.0),
        deny_first_lookup=1,
    ) as fake:
        yield fake


async def test_the_operator_gets_along_with_its_rights(world: World, node: FakeNode) -> None:
    world.start_manager()
    await world.submit(make.manifest())
    await world.phase("resnet", "Completed")
    await world.no_pods()
    assert [request for request in world.requests(OPERATOR) if request.code == 403] == []
