"""What time and users do to a job on a real API server: deadlines, suspension, scale, expiry.

And what is said of a job that could run and does not.
"""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import make
import pytest
from audit import tally
from world import World

from paddle_operator.api.core import ENDED_PHASES, Pod
from paddle_operator.api.meta import Manifest, find_condition
from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS
from testbed.node import FakeNode
from testbed.node_pods import Behaviour
from testbed.node_pods import Pod as PlayedPod

pytestmark = [pytest.mark.apiserver, pytest.mark.usefixtures("node")]

FOR_EVER = Behaviour(runs_for_ever=True)
UNSCHEDULABLE = {"annotations": {"fake-node/unschedulable": "true"}}


@pytest.fixture(autouse=True)
async def nothing_is_forbidden(world: World) -> AsyncIterator[None]:
    """The operator has exactly the rights that docs/en/security.md lists."""
    yield
    world.stop_managers()
    assert [str(request) for request in world.requests() if request.code == 403] == []


def manifest(policy: Manifest, workers: int = 2, **spec: Any) -> Manifest:
    return make.manifest(workers=workers, runPolicy=policy, **spec)


async def kubectl(world: World, *arguments: str) -> tuple[int, str]:
    """Not in this thread: the node plays on meanwhile."""
    result = await asyncio.to_thread(world.kubectl, *arguments)
    return result.returncode, result.stderr


async def suspend(world: World) -> None:
    await world.patch(PADDLE_JOBS, "resnet", {"spec": {"runPolicy": {"suspend": True}}})


async def resume(world: World) -> None:
    await world.patch(PADDLE_JOBS, "resnet", {"spec": {"runPolicy": {"suspend": False}}})


def condition(job: PaddleJob, kind: str) -> tuple[str, str]:
    found = find_condition(job.status.conditions, kind)
    return (found.status, found.reason) if found is not None else ("", "")


def message(job: PaddleJob, kind: str) -> str:
    found = find_condition(job.status.conditions, kind)
    return found.message if found is not None else ""


class TestASuspendedJob:
    async def test_has_no_pods_can_be_scaled_and_goes_on_with_so_many(
        self, world: World, node: FakeNode
    ) -> None:
        node.script(lambda pod: FOR_EVER if pod.metadata.labels["paddlepaddle.org/attempt"] == "0" else None)
        world.start_manager()
        await world.submit(manifest({}, workers=2, cleanPodPolicy="Never"))
        await world.phase("resnet", "Running")
        await suspend(world)
        job = await world.phase("resnet", "Suspended")
        assert condition(job, "Suspended") == ("True", "Suspended")
        assert condition(job, "Running")[0] == "False"
        await world.no_pods()
        await world.gone(CONFIG_MAPS, "resnet")

        assert await kubectl(world, "scale", "pdj/resnet", "--replicas=3") == (0, "")
        await resume(world)
        job = await world.phase("resnet", "Completed", "Failed")
        assert job.status.phase == "Completed"
        assert condition(job, "Suspended") == ("False", "Resumed")
        # It was the user's wish: no limit is used.
        used = (job.status.restarts, job.status.failures, job.status.disruptions)
        assert (job.status.attempt, *used) == (1, 0, 0, 0)
        pods = await world.pods()
        assert len(pods) == 3
        for name, pod in pods.items():
            told = node.environment[world.namespace, name, pod.metadata.uid]["paddle"]
            assert told["PADDLE_TRAINERS_NUM"] == "3"
        assert job.status.worker is not None
        assert job.status.worker.succeeded == 3

    async def test_can_shrink(self, world: World, node: FakeNode) -> None:
        node.script(lambda pod: FOR_EVER if pod.metadata.labels["paddlepaddle.org/attempt"] == "0" else None)
        world.start_manager()
        await world.submit(manifest({}, workers=4, cleanPodPolicy="Never", intranet="Service"))
        await world.phase("resnet", "Running")
        # Both at once: some pods are of an earlier try, and of a rank that there is no more.
        body = {"spec": {"worker": {"replicas": 1}, "runPolicy": {"suspend": True}}}
        await world.patch(PADDLE_JOBS, "resnet", body)
        await world.phase("resnet", "Suspended")
        await world.no_pods()
        await resume(world)
        job = await world.phase("resnet", "Completed", "Failed")
        assert (job.status.phase, job.status.mode) == ("Completed", "Single")
        assert set(await world.pods()) == {"resnet-worker-0"}
        services = await asyncio.to_thread(world.kubectl, "get", "services", "-o", "name")
        assert services.stdout.split() == ["service/resnet-worker-0"]

    @pytest.mark.parametrize("workers", [3, 1])
    async def test_that_was_resized_and_resumed_while_nobody_looked_begins_anew_and_uses_no_limit(
        self, world: World, node: FakeNode, workers: int
    ) -> None:
        """The operator was down, say. No pod was lost: its user wants another number of them."""
        node.script(lambda pod: FOR_EVER if pod.metadata.labels["paddlepaddle.org/attempt"] == "0" else None)
        manager = world.start_manager()
        await world.submit(manifest({"maxDisruptions": 0}, cleanPodPolicy="Never"))
        await world.phase("resnet", "Running")
        world.kill(manager)
        await suspend(world)
        await world.patch(PADDLE_JOBS, "resnet", {"spec": {"worker": {"replicas": workers}}})
        await resume(world)
        world.start_manager()
        job = await world.phase("resnet", "Completed", "Failed")
        assert (job.status.phase, job.status.disruptions) == ("Completed", 0)
        assert len(await world.pods()) == workers

    async def test_from_the_start_makes_nothing_until_it_is_resumed(self, world: World) -> None:
        world.start_manager()
        await world.submit(manifest({"suspend": True, "startDeadlineSeconds": 60}, cleanPodPolicy="Never"))
        job = await world.phase("resnet", "Suspended")
        assert condition(job, "Suspended") == ("True", "Suspended")
        assert await world.pods() == {}
        await resume(world)
        job = await world.phase("resnet", "Completed", "Failed")
        assert (job.status.phase, job.status.attempt) == ("Completed", 0)
        assert {"create pods": 2, "create configmaps": 1}.items() <= tally(world.requests()).items()

    async def test_is_deleted_like_any_other(self, world: World, node: FakeNode) -> None:
        node.script(lambda _: FOR_EVER)
        world.start_manager()
        job = await world.submit(manifest({}))
        await world.phase("resnet", "Running")
        await suspend(world)
        await world.phase("resnet", "Suspended")
        await world.delete(PADDLE_JOBS, job)
        await world.gone(PADDLE_JOBS, "resnet")
        await world.no_pods()

    async def test_costs_no_request(self, world: World, node: FakeNode) -> None:
        node.script(lambda _: FOR_EVER)
        world.start_manager()
        await world.submit(manifest({"activeDeadlineSeconds": 1000, "startDeadlineSeconds": 1000}))
        await world.phase("resnet", "Running")
        await suspend(world)
        await world.phase("resnet", "Suspended")
        await world.no_pods()
        # Lets the last write come back, and the pauses of the queue pass.
        await asyncio.sleep(2)
        before = tally(world.requests())
        await asyncio.sleep(3)
        assert tally(world.requests()) == before


class TestScale:
    async def test_of_a_job_that_runs_is_refused_with_the_way_to_do_it(
        self, world: World, node: FakeNode
    ) -> None:
        node.script(lambda _: FOR_EVER)
        world.start_manager()
        await world.submit(manifest({}))
        await world.phase("resnet", "Running")
        code, said = await kubectl(world, "scale", "pdj/resnet", "--replicas=3")
        assert code != 0
        assert "spec.worker.replicas" in said
        assert "set runPolicy.suspend first" in said
        assert len(await world.pods()) == 2

    @pytest.mark.parametrize("replicas", [0, 6001])
    async def test_has_the_bounds_of_the_field(self, world: World, replicas: int) -> None:
        await world.submit(manifest({"suspend": True}))
        code, said = await kubectl(world, "scale", "pdj/resnet", f"--replicas={replicas}")
        assert code != 0
        assert "spec.worker.replicas" in said

    async def test_shows_how_many_are_wanted_and_how_many_there_are(
        self, world: World, node: FakeNode
    ) -> None:
        node.script(lambda _: FOR_EVER)
        world.start_manager()
        await world.submit(manifest({}))
        await world.job_until(
            "resnet", lambda job: job.status.worker is not None and job.status.worker.running == 2
        )
        shown = world.kubectl(
            *("get", "pdj", "resnet", "--subresource=scale"),
            *("-o", "jsonpath={.spec.replicas} {.status.replicas}"),
        )
        assert shown.stdout == "2 2"


class TestADeadline:
    async def test_to_end_fails_a_job_that_runs_too_long(self, world: World, node: FakeNode) -> None:
        node.script(lambda _: FOR_EVER)
        world.start_manager()
        await world.submit(manifest({"activeDeadlineSeconds": 2, "backoffLimit": 9}))
        job = await world.phase("resnet", "Completed", "Failed")
        assert condition(job, "Failed") == ("True", "ActiveDeadlineExceeded")
        assert "activeDeadlineSeconds" in message(job, "Failed")
        assert job.status.failure is not None
        assert job.status.failure.reason == "ActiveDeadlineExceeded"
        assert job.status.start_time is not None
        assert job.status.completion_time is not None
        ran = job.status.completion_time - job.status.start_time
        assert timedelta(seconds=2) <= ran <= timedelta(seconds=4)
        # It is out of time: that is no failure of a try, and begins none.
        assert (job.status.restarts, job.status.failures) == (0, 0)
        for rank in (0, 1):
            await world.pod_until(f"resnet-worker-{rank}", lambda pod: pod.status.phase == "Failed")

    async def test_to_end_is_not_put_off_by_restarts(self, world: World, node: FakeNode) -> None:
        node.script(lambda _: Behaviour(run_seconds=0.5, exit_code=1))
        world.start_manager()
        await world.submit(manifest({"activeDeadlineSeconds": 4, "backoffLimit": 1000}))
        job = await world.phase("resnet", "Completed", "Failed")
        assert condition(job, "Failed") == ("True", "ActiveDeadlineExceeded")
        assert job.status.restarts >= 1
        # A try that was about to begin does not begin.
        assert all(pod.status.phase != "Running" for pod in (await at_rest(world)).values())

    async def test_to_start_fails_a_job_that_finds_no_node_with_the_schedulers_words(
        self, world: World
    ) -> None:
        world.start_manager()
        # It takes a while to come up, and the time to start runs from when the job is stored.
        await world.submit(make.manifest("warm-up"))
        await world.phase("warm-up", "Completed")
        pod = make.template(metadata=UNSCHEDULABLE)
        await world.submit(manifest({"startDeadlineSeconds": 2, "backoffLimit": 9}, pod=pod))
        job = await world.phase("resnet", "Completed", "Failed")
        assert condition(job, "Failed") == ("True", "StartDeadlineExceeded")
        assert "startDeadlineSeconds" in message(job, "Failed")
        assert "Insufficient cpu" in message(job, "Failed")
        assert job.status.failure is not None
        assert (job.status.failure.kind, job.status.failure.pod) == ("config", "resnet-worker-0")
        # They have no node and no log, and would take a place as soon as there is one.
        for rank in (0, 1):
            await world.gone(PODS, f"resnet-worker-{rank}")

    async def test_to_start_is_of_no_interest_once_all_have_run(self, world: World, node: FakeNode) -> None:
        node.script(lambda _: Behaviour(run_seconds=4))
        world.start_manager()
        await world.submit(manifest({"startDeadlineSeconds": 3}))
        assert (await world.phase("resnet", "Completed", "Failed")).status.phase == "Completed"


class TestAJobThatHasEnded:
    @pytest.mark.parametrize(("seconds", "code"), [(0, 0), (2, 0), (1, 3)])
    async def test_goes_when_its_time_is_over_and_takes_everything_with_it(
        self, world: World, node: FakeNode, seconds: int, code: int
    ) -> None:
        node.script(lambda _: Behaviour(exit_code=code))
        world.start_manager()
        await world.submit(manifest({"ttlSecondsAfterFinished": seconds}, cleanPodPolicy="Never"))
        await world.gone(PADDLE_JOBS, "resnet")
        await world.no_pods()
        await world.gone(CONFIG_MAPS, "resnet")
        assert tally(world.requests())["delete paddlejobs"] == 1

    async def test_stays_when_it_is_given_more_time(self, world: World) -> None:
        world.start_manager()
        await world.submit(manifest({"ttlSecondsAfterFinished": 3}))
        await world.phase("resnet", "Completed")
        more = {"spec": {"runPolicy": {"ttlSecondsAfterFinished": 3600}}}
        await world.patch(PADDLE_JOBS, "resnet", more)
        await asyncio.sleep(4)
        assert (await world.phase("resnet", "Completed")).run_policy.ttl_seconds_after_finished == 3600
        assert tally(world.requests())["delete paddlejobs"] == 0

    async def test_goes_also_if_its_manager_was_not_there_when_it_was_time(self, world: World) -> None:
        first = world.start_manager()
        await world.submit(manifest({"ttlSecondsAfterFinished": 1}))
        await world.phase("resnet", "Completed")
        world.kill(first)
        await asyncio.sleep(1.5)
        world.start_manager()
        await world.gone(PADDLE_JOBS, "resnet")


class TestAJobThatDoesNotStart:
    async def test_says_what_its_scheduler_says(self, world: World) -> None:
        world.start_manager()
        await world.submit(manifest({}, pod=make.template(metadata=UNSCHEDULABLE)))
        job = await world.condition("resnet", "Running", "False", "Unschedulable")
        assert "0/1 nodes are available: 1 Insufficient cpu" in message(job, "Running")
        assert "worker 0 (pod resnet-worker-0)" in message(job, "Running")
        assert job.status.phase == "Pending"
        world.stop_managers()  # who has ended has also told what it wrote
        assert ("Warning", "Unschedulable") in await world.events("resnet")

    async def test_says_what_its_kubelet_says_of_an_image_and_takes_it_back_when_it_runs(
        self, world: World, node: FakeNode
    ) -> None:
        node.script(slow_to_start)
        world.start_manager()
        await world.submit(manifest({}))
        await world.pod_until("resnet-worker-1", lambda pod: bool(pod.status.container_statuses))
        for reason in ("ErrImagePull", "ImagePullBackOff", "ErrImagePull"):
            await waiting(world, "resnet-worker-1", reason, "Back-off pulling image: not found")
            job = await world.condition("resnet", "Running", "False", "ImagePullBackOff")
        said = message(job, "Running")
        assert "worker 1 (pod resnet-worker-1)" in said
        assert "demo-resnet:v1" in said
        assert "not found" in said
        assert "imagePullSecrets" in said
        job = await world.phase("resnet", "Running")
        assert condition(job, "Running") == ("True", "AllPodsRun")
        world.stop_managers()
        # A kubelet says the two in turn, for hours: that is told once.
        assert (await world.events("resnet")).count(("Warning", "ImagePullBackOff")) == 1


async def at_rest(world: World) -> dict[str, Pod]:
    """The pods once none of them is on its way any more."""
    for name in await world.pods():
        await world.until(PODS, name, lambda pod: pod is None or pod.status.phase in ENDED_PHASES)
    return await world.pods()


def slow_to_start(pod: PlayedPod) -> Behaviour:
    late = pod.metadata.name.endswith("-1")
    return Behaviour(runs_for_ever=True, start_seconds=3.0 if late else 0.0)


async def waiting(world: World, name: str, reason: str, text: str) -> None:
    container = {"name": "paddle", "image": "", "imageID": "", "ready": False, "restartCount": 0}
    status = {**container, "state": {"waiting": {"reason": reason, "message": text}}}
    await world.patch(PODS, name, {"status": {"containerStatuses": [status]}}, subresource="status")
