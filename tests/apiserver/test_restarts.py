"""Restarts on a real API server: the whole job begins anew, and each end of a try is counted once.

That a manager may die at any moment of it is tried here where the server has a say, and in tests/simulation
at every write.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import make
import pytest
from audit import tally
from world import World

from paddle_operator.api.core import Pod
from paddle_operator.api.meta import Manifest, find_condition
from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.api.resources import PADDLE_JOBS, PODS, SERVICES
from paddle_operator.cluster import Scope
from paddle_operator.kube.client import path
from testbed.node import FakeNode
from testbed.node_pods import Behaviour
from testbed.node_pods import Pod as PlayedPod

pytestmark = pytest.mark.apiserver

ATTEMPT = "paddlepaddle.org/attempt"
FOR_EVER = Behaviour(runs_for_ever=True)
RUN_ON = Behaviour(runs_for_ever=True, termination_seconds=1.0)
"""For ever; and its end takes long enough for others to look at it."""


@pytest.fixture(autouse=True)
async def nothing_is_forbidden(world: World) -> AsyncIterator[None]:
    """The operator has exactly the rights that docs/en/security.md lists."""
    yield
    world.stop_managers()
    assert [str(request) for request in world.requests() if request.code == 403] == []


def attempt_of(pod: PlayedPod | Pod) -> int:
    return int(pod.metadata.labels[ATTEMPT])


def failing_in(*attempts: int, exit_code: int = 3) -> Callable[[PlayedPod], Behaviour | None]:
    """Worker 1 fails in these tries, and the others would go on; in all other tries all end well."""

    def behave(pod: PlayedPod) -> Behaviour | None:
        if attempt_of(pod) not in attempts:
            return None
        return Behaviour(exit_code=exit_code) if pod.metadata.name.endswith("-worker-1") else RUN_ON

    return behave


def for_ever_in_the_first_try(pod: PlayedPod) -> Behaviour | None:
    return FOR_EVER if attempt_of(pod) == 0 or "-ps-" in pod.metadata.name else None


def slow_to_go(pod: PlayedPod) -> Behaviour | None:
    """As with a real kubelet, how a pod ended is seen for a while before it is gone."""
    return replace(FOR_EVER, cleanup_seconds=2.0) if attempt_of(pod) == 0 else None


def counts(job: PaddleJob) -> dict[str, int]:
    status = job.status
    return {
        "attempt": status.attempt,
        "restarts": status.restarts,
        "failures": status.failures,
        "disruptions": status.disruptions,
    }


def condition(job: PaddleJob, kind: str) -> tuple[str, str]:
    found = find_condition(job.status.conditions, kind)
    return (found.status, found.reason) if found is not None else ("", "")


def manifest(policy: Manifest | None = None, workers: int = 2, **spec: Any) -> Manifest:
    return make.manifest(workers=workers, runPolicy=policy or {}, cleanPodPolicy="Never", **spec)


async def test_a_job_that_fails_is_restarted_whole_and_completes(world: World, node: FakeNode) -> None:
    node.script(failing_in(0))
    world.start_manager()
    await world.submit(manifest({"backoffLimit": 1}))
    await world.phase("resnet", "Running")
    first, old_map = await world.pods(), await world.config_map("resnet")
    job = await world.condition("resnet", "Restarting", "True", "PodFailed")
    assert job.status.failure is not None
    assert (job.status.failure.pod, job.status.failure.exit_code) == ("resnet-worker-1", 3)
    assert condition(job, "Running") == ("False", "Restarting")
    assert condition(job, "Created") == ("False", "Restarting")

    job = await world.phase("resnet", "Completed", "Failed")
    assert job.status.phase == "Completed"
    assert counts(job) == {"attempt": 1, "restarts": 1, "failures": 1, "disruptions": 0}
    assert job.status.failure is None
    assert condition(job, "Restarting")[0] == "False"
    assert condition(job, "Created") == ("True", "PodsCreated")
    pods, config_map = await world.pods(), await world.config_map("resnet")
    assert {attempt_of(pod) for pod in pods.values()} == {1}
    assert config_map.metadata.labels[ATTEMPT] == "1"
    assert config_map.metadata.uid != old_map.metadata.uid
    assert {pod.metadata.uid for pod in pods.values()}.isdisjoint(pod.metadata.uid for pod in first.values())
    addresses = ",".join(f"{pods[name].status.pod_ip}:2379" for name in sorted(pods))
    for name, pod in pods.items():
        told = node.environment[world.namespace, name, pod.metadata.uid]["paddle"]
        assert told["PADDLE_TRAINER_ENDPOINTS"] == addresses
    world.stop_managers()
    events = await world.events("resnet")
    assert events[0] == ("Normal", "PodsCreated")
    assert events.count(("Warning", "PodFailed")) == 1
    assert events[-1] == ("Normal", "AllPodsSucceeded")


async def test_a_limit_that_is_used_up_fails_the_job(world: World, node: FakeNode) -> None:
    node.script(failing_in(0, 1, 2))
    world.start_manager()
    await world.submit(manifest({"backoffLimit": 2}))
    job = await world.phase("resnet", "Completed", "Failed")
    assert job.status.phase == "Failed"
    assert counts(job) == {"attempt": 2, "restarts": 2, "failures": 3, "disruptions": 0}
    assert condition(job, "Failed") == ("True", "PodFailed")
    assert condition(job, "Restarting")[0] == "False"
    failed = find_condition(job.status.conditions, "Failed")
    assert failed is not None
    assert "exited with 3" in failed.message
    assert "restarts 2, failures 3 (backoffLimit 2)" in failed.message
    assert "backoffLimit" in failed.message
    assert job.status.failure is not None
    assert job.status.failure.attempt == 2
    # The pods of the last try are kept for their logs, and those of the others are gone.
    assert {attempt_of(pod) for pod in (await world.pods()).values()} == {2}


async def test_without_a_limit_a_failure_is_the_end(world: World, node: FakeNode) -> None:
    node.script(failing_in(0))
    world.start_manager()
    await world.submit(make.manifest(cleanPodPolicy="Never"))
    job = await world.phase("resnet", "Completed", "Failed", "Restarting")
    assert job.status.phase == "Failed"
    assert counts(job) == {"attempt": 0, "restarts": 0, "failures": 1, "disruptions": 0}


async def evict(world: World, name: str) -> None:
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    await world.post(path(PODS, world.namespace, name, "eviction"), eviction)


async def kubectl_delete(world: World, name: str) -> None:
    deleted = await asyncio.to_thread(world.kubectl, "delete", "pod", name, "--wait=false")
    assert deleted.returncode == 0, deleted.stderr


async def kubectl_delete_by_force(world: World, name: str) -> None:
    deleted = await asyncio.to_thread(
        world.kubectl, "delete", "pod", name, "--force", "--grace-period=0", "--wait=false"
    )
    assert deleted.returncode == 0, deleted.stderr


@pytest.mark.parametrize(
    ("take_away", "reason", "said"),
    [
        (kubectl_delete, "PodLost", "PodLost"),
        (kubectl_delete_by_force, "PodLost", "PodLost"),
        (evict, "EvictionByEvictionAPI", "PodFailed"),
    ],
    ids=["kubectl delete", "kubectl delete --force", "eviction"],
)
async def test_a_pod_that_is_taken_away_is_a_disruption_and_uses_no_limit_of_failures(
    world: World, node: FakeNode, take_away: Callable[[World, str], Any], reason: str, said: str
) -> None:
    node.script(slow_to_go)
    world.start_manager()
    await world.submit(manifest({"backoffLimit": 0}))
    await world.phase("resnet", "Running")
    await take_away(world, "resnet-worker-1")
    job = await world.condition("resnet", "Restarting", "True")
    assert condition(job, "Restarting") == ("True", said)
    assert job.status.failure is not None
    assert (job.status.failure.pod, job.status.failure.reason) == ("resnet-worker-1", reason)
    assert job.status.failure.kind == "preempted"
    job = await world.phase("resnet", "Completed", "Failed")
    assert job.status.phase == "Completed"
    assert counts(job) == {"attempt": 1, "restarts": 1, "failures": 0, "disruptions": 1}


@pytest.mark.parametrize("intranet", ["PodIP", "Service", "Host"])
async def test_servers_and_workers_are_restarted_together_on_every_network(
    world: World, node: FakeNode, intranet: str
) -> None:
    node.script(for_ever_in_the_first_try)
    world.start_manager()
    await world.submit(manifest({"backoffLimit": 1}, intranet=intranet, ps=make.role(2)))
    before = await world.phase("resnet", "Running")
    services = await service_uids(world)
    first = {pod.metadata.uid for pod in (await world.pods()).values()}
    node.finish(world.namespace, "resnet-worker-1", 3)
    job = await world.phase("resnet", "Completed", "Failed")
    assert job.status.phase == "Completed"
    assert counts(job) == {"attempt": 1, "restarts": 1, "failures": 1, "disruptions": 0}
    pods = await world.pods()
    assert len(pods) == 4
    assert first.isdisjoint(pod.metadata.uid for pod in pods.values())
    # Names last: to make services anew would only let peers look for each other in vain.
    assert await service_uids(world) == services
    assert bool(services) == (intranet == "Service")
    assert job.status.host_port == before.status.host_port


async def service_uids(world: World) -> set[str]:
    listing = await world.cluster.list(SERVICES, Scope(world.namespace))
    return {one.metadata.uid for one in listing.items}


@pytest.mark.parametrize("moment", ["it is written", "the old pods are gone", "a new pod is there"])
async def test_a_manager_killed_while_it_restarts_a_job_counts_nothing_twice(
    world: World, node: FakeNode, moment: str
) -> None:
    node.script(failing_in(0))
    manager = world.start_manager()
    await world.submit(manifest({"backoffLimit": 1}, workers=4))
    job = await world.job_until("resnet", lambda job: job.status.attempt == 1)
    if moment == "the old pods are gone":
        await world.until(PODS, "resnet-worker-1", lambda pod: pod is None or attempt_of(pod) == 1)
    elif moment == "a new pod is there":
        await world.pod_until("resnet-worker-1", lambda pod: attempt_of(pod) == 1)
    world.kill(manager)
    world.start_manager()
    job = await world.phase("resnet", "Completed", "Failed")
    assert job.status.phase == "Completed"
    assert counts(job) == {"attempt": 1, "restarts": 1, "failures": 1, "disruptions": 0}
    created = tally([request for request in world.requests() if request.code == 201])
    assert created["create pods"] <= 2 * 4
    assert created["create configmaps"] <= 2
    pods = await world.pods()
    assert {attempt_of(pod) for pod in pods.values()} == {1}
    assert len(told_endpoints(node, world, pods)) == 1


def told_endpoints(node: FakeNode, world: World, pods: dict[str, Pod]) -> set[str]:
    return {
        node.environment[world.namespace, name, pod.metadata.uid]["paddle"]["PADDLE_TRAINER_ENDPOINTS"]
        for name, pod in pods.items()
    }


@pytest.mark.parametrize("labels", ["as they were", "taken off"])
async def test_what_a_manager_wrote_with_its_last_breath_is_carried_out_by_the_next(
    world: World, node: FakeNode, labels: str
) -> None:
    """Nothing is deleted yet. One without its labels is seen only when its name is found to be taken."""
    node.script(for_ever_in_the_first_try)
    manager = world.start_manager()
    job = await world.submit(manifest({"backoffLimit": 1}))
    await world.phase("resnet", "Running")
    world.kill(manager)
    first = await world.pods()
    if labels == "taken off":
        nothing = dict.fromkeys(first["resnet-worker-1"].metadata.labels)
        await world.patch(PODS, "resnet-worker-1", {"metadata": {"labels": nothing}})
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    restarting = {"type": "Restarting", "status": "True", "reason": "PodFailed", "lastTransitionTime": now}
    written = {
        "phase": "Restarting",
        "attempt": 1,
        "attemptTime": now,
        "restarts": 1,
        "failures": 1,
        "worker": None,
        "conditions": [restarting],
    }
    await world.patch(PADDLE_JOBS, "resnet", {"status": written}, subresource="status")
    world.start_manager()
    job = await world.phase("resnet", "Completed", "Failed")
    assert job.status.phase == "Completed"
    assert counts(job) == {"attempt": 1, "restarts": 1, "failures": 1, "disruptions": 0}
    pods = await world.pods()
    assert {attempt_of(pod) for pod in pods.values()} == {1}
    assert {pod.metadata.uid for pod in pods.values()}.isdisjoint(pod.metadata.uid for pod in first.values())
    assert len(told_endpoints(node, world, pods)) == 1


SHORT_GRACE = make.template(terminationGracePeriodSeconds=1)


async def fail_without_a_node(world: World, name: str) -> None:
    """As if written by a kubelet, while the node that plays is held."""
    end = {"exitCode": 3, "reason": "Error", "finishedAt": datetime.now(UTC).isoformat()}
    container = {"name": "paddle", "image": "", "imageID": "", "ready": False, "restartCount": 0}
    ended = [{**container, "state": {"terminated": end}}]
    body = {"status": {"phase": "Failed", "containerStatuses": ended}}
    await world.patch(PODS, name, body, subresource="status")


async def test_a_pod_whose_node_does_not_answer_is_deleted_by_force_where_that_is_asked_for(
    world: World, node: FakeNode
) -> None:
    node.script(for_ever_in_the_first_try)
    world.start_manager()
    await world.submit(manifest({"backoffLimit": 1, "forceDeleteAfterSeconds": 1}, pod=SHORT_GRACE))
    await world.phase("resnet", "Running")
    stuck = (await world.pods())["resnet-worker-0"]
    node.hold()
    await fail_without_a_node(world, "resnet-worker-1")
    await world.pod_until("resnet-worker-0", lambda pod: pod.metadata.terminating)
    # Nobody but the operator could have removed it.
    await world.until(
        PODS, "resnet-worker-0", lambda pod: pod is None or pod.metadata.uid != stuck.metadata.uid
    )
    node.release()
    job = await world.phase("resnet", "Completed", "Failed")
    assert job.status.phase == "Completed"
    assert counts(job) == {"attempt": 1, "restarts": 1, "failures": 1, "disruptions": 0}


async def test_a_pod_that_stays_even_then_because_somebody_holds_it_does_not_make_its_job_blind(
    world: World, node: FakeNode
) -> None:
    """Not even force removes what has a finalizer: what the user wants meanwhile is still heard."""
    node.script(for_ever_in_the_first_try)
    world.start_manager()
    await world.submit(manifest({"backoffLimit": 1, "forceDeleteAfterSeconds": 0}, pod=SHORT_GRACE))
    await world.phase("resnet", "Running")
    held = {"metadata": {"finalizers": ["example.com/hold"]}}
    await world.patch(PODS, "resnet-worker-0", held)
    node.hold()
    await fail_without_a_node(world, "resnet-worker-1")
    await world.pod_until("resnet-worker-0", lambda pod: pod.metadata.terminating)
    # Its grace period is over, and force has been tried or found to be in vain.
    await asyncio.sleep(3)
    await world.patch(PADDLE_JOBS, "resnet", {"spec": {"runPolicy": {"suspend": True}}})
    await world.phase("resnet", "Suspended")
    await world.patch(PODS, "resnet-worker-0", {"metadata": {"finalizers": None}})
    node.release()
    await world.no_pods()


async def test_a_restart_costs_few_requests(world: World, node: FakeNode) -> None:
    workers = 16
    node.script(failing_in(0))
    world.start_manager()
    await world.submit(manifest({"backoffLimit": 1}, workers=workers))
    await world.phase("resnet", "Completed")
    world.stop_managers()
    spent = tally(world.requests())
    print(f"\nrequests of {workers} workers, one restart:", dict(sorted(spent.items())), spent.total())
    assert spent["delete pods"] == workers
    assert spent["create pods"] == 2 * workers
    assert spent["patch pods"] <= 2 * workers
    assert (spent["delete configmaps"], spent["create configmaps"]) == (1, 2)
    assert spent["patch paddlejobs/status"] <= 14
    assert spent.total() <= (2 * workers + 15) + (3 * workers + 15)


async def test_the_config_map_of_an_earlier_try_starts_nobody(world: World, node: FakeNode) -> None:
    """A pod of the new try that found the old list would look for peers that are gone."""
    node.script(failing_in(0, 1))
    world.start_manager()
    await world.submit(manifest({"backoffLimit": 2}, workers=4))
    assert (await world.phase("resnet", "Completed", "Failed")).status.phase == "Completed"
    lists = {
        uid: told["paddle"]["PADDLE_TRAINER_ENDPOINTS"] for (_, _, uid), told in node.environment.items()
    }
    # Who started at all was told of the peers of his own try: three lists, each for at most four.
    assert len({*lists.values()}) == 3
    assert max(list(lists.values()).count(one) for one in lists.values()) <= 4
