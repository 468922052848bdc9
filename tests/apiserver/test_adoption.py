"""Jobs that the Go operator started live on under ours: the real one begins them and is killed, ours goes on.

This has a control plane of its own: the kind is first the Go operator's.
"""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import make
import msgspec
import pytest
from audit import tally
from world import World, unique_name

from paddle_operator.api.core import Pod
from paddle_operator.api.meta import Manifest, find_condition
from paddle_operator.api.names import OLD_FINALIZER
from paddle_operator.api.paddlejob import PaddleJob, PodReference
from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, SERVICES
from paddle_operator.cluster import ApiError, NotFound, Scope
from paddle_operator.kube.client import path
from paddle_operator.kube.transport import Transport
from testbed import binaries
from testbed.controlplane import ControlPlane
from testbed.node import FakeNode
from testbed.node_pods import Behaviour

pytestmark = pytest.mark.apiserver

OUR_CRD = Path(__file__).parents[2] / "deploy" / "v1" / "crd.yaml"
PATIENCE_SECONDS = 60.0
FOR_EVER = Behaviour(runs_for_ever=True)
JOBS = {
    "collective": make.manifest(workers=4, cleanPodPolicy="Never"),
    "ps": make.manifest(workers=2, ps=make.role(2), cleanPodPolicy="Never"),
}
BY_NAME = make.manifest(workers=4, cleanPodPolicy="Never", intranet="Service")
ALL_PODS = 4
every_mode = pytest.mark.parametrize("manifest", JOBS.values(), ids=JOBS.keys())


@pytest.fixture(scope="module")
def apiserver() -> Iterator[ControlPlane]:
    with ControlPlane(unique_name("adoption")) as plane:
        yield plane


@pytest.fixture(scope="module")
def go_operator() -> Path:
    return binaries.ensure(binaries.PEERS)["go-paddle-operator"]


@pytest.fixture
async def paddle_job_kind(apiserver: ControlPlane, admin: Transport) -> None:
    """The Go operator's; too large for `kubectl apply`, so its users create or replace it."""
    crd = binaries.source_folder(binaries.GO_OPERATOR) / "deploy" / "v1" / "crd.yaml"
    if kubectl(apiserver, "create", "-f", str(crd)).returncode != 0:
        replaced = kubectl(apiserver, "replace", "-f", str(crd))
        assert replaced.returncode == 0, replaced.stderr
    await until_served(admin, ours=False)


@pytest.fixture
async def node(world: World) -> AsyncIterator[FakeNode]:
    """Looks for config maps often: the Go operator does not nudge its pods."""
    async with world.fake_node(retry_seconds=(0.2, 0.4)) as node:
        node.script(lambda _: FOR_EVER)
        yield node


def kubectl(plane: ControlPlane, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(plane.kubectl), "--kubeconfig", str(plane.kubeconfig), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


async def until_served(admin: Transport, *, ours: bool) -> None:
    """A new schema is in force within a second, and nothing tells when; `cleanPolicy` is only in ours."""
    body = msgspec.json.encode(make.manifest("probe", cleanPolicy="Never"))
    query = {"dryRun": "All", "fieldValidation": "Strict"}
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                await admin.request("POST", path(PADDLE_JOBS, "default"), query=query, body=body)
            except ApiError as error:
                if not ours and 'unknown field "spec.cleanPolicy"' in str(error):
                    return
            else:
                if ours:
                    return
            await asyncio.sleep(0.05)


@pytest.fixture
def change_of_operator(world: World, go_operator: Path, tmp_path: Path) -> Iterator["Change"]:
    change = Change(world, go_operator, tmp_path / "go-operator.log")
    yield change
    change.stop()


class Change:
    """First the Go operator, then ours, never both."""

    def __init__(self, world: World, program: Path, log: Path) -> None:
        self.world = world
        self._program = program
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        command = [str(self._program), f"--kubeconfig={self.world.plane.kubeconfig}", "--initImage="]
        command += [f"--namespace={self.world.namespace}"]
        command += ["--metrics-bind-address=0", "--health-probe-bind-address=0"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    async def take_over(self) -> dict[str, Pod]:
        """The pods that the Go operator left behind, as our manager starts."""
        if self._process is not None:
            assert self._process.poll() is None, self._log.read_text()
        self.stop()
        with suppress(NotFound):
            await self.world.transport.request("DELETE", f"{quotas(self.world)}/limit")
        left = await self.world.pods()
        upgrade = kubectl(self.world.plane, "apply", "-f", str(OUR_CRD))
        assert upgrade.returncode == 0, upgrade.stderr
        await until_served(self.world.transport, ours=True)
        self.world.start_manager()
        return left


def quotas(world: World) -> str:
    return f"/api/v1/namespaces/{world.namespace}/resourcequotas"


async def limit(world: World, **hard: str) -> None:
    """A quota stops the Go operator at a certain point, as long as we like."""
    where = quotas(world)
    await world.post(where, {"metadata": {"name": "limit"}, "spec": {"hard": hard}})
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            quota = json.loads(await world.transport.request("GET", f"{where}/limit"))
            if quota.get("status", {}).get("hard") == hard:
                return
            await asyncio.sleep(0.05)


async def until_pods(world: World, count: int, holds: Callable[[Pod], bool] = lambda _: True) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            pods = await world.pods()
            if len(pods) == count and all(map(holds, pods.values())):
                return
            await asyncio.sleep(0.05)


def has_address(pod: Pod) -> bool:
    return bool(pod.status.pod_ip)


def is_ours(job: PaddleJob) -> bool:
    """Conditions are ours alone; the old finalizer is gone."""
    running = find_condition(job.status.conditions, "Running")
    return running is not None and running.status == "True" and OLD_FINALIZER not in job.metadata.finalizers


def uids(pods: dict[str, Pod]) -> dict[str, str]:
    return {name: pod.metadata.uid for name, pod in pods.items()}


async def finish(world: World, node: FakeNode) -> PaddleJob:
    """The workers end well; the job follows, and servers are stopped."""
    for name in await world.pods():
        if "-worker-" in name:
            node.finish(world.namespace, name)
    return await world.phase("resnet", "Completed", "Failed")


async def nothing_is_left(world: World) -> None:
    await world.gone(PADDLE_JOBS, "resnet")
    await world.no_pods()
    await world.gone(CONFIG_MAPS, "resnet")
    for service in (await world.cluster.list(SERVICES, Scope(world.namespace))).items:
        await world.gone(SERVICES, service.metadata.name)


def assert_peers_agree(node: FakeNode, pods: dict[str, Pod]) -> None:
    told = [
        node.environment[pod.metadata.namespace, name, pod.metadata.uid]["paddle"]
        for name, pod in pods.items()
    ]
    lists = {(one.get("PADDLE_PSERVERS_IP_PORT_LIST"), one["PADDLE_TRAINER_ENDPOINTS"]) for one in told}
    assert len(lists) == 1
    ranks = [(one["TRAINING_ROLE"], one["PADDLE_TRAINER_ID"]) for one in told]
    assert len(set(ranks)) == len(told) == ALL_PODS


async def run_on(change: Change, node: FakeNode, *, pods_by_us: int = 0, maps_by_us: int = 0) -> None:
    """From the change to the end: the same pods, the missing ones once, the end, and nothing left."""
    world = change.world
    left = await change.take_over()
    node.release()
    assert len(left) == ALL_PODS - pods_by_us
    job = await world.job_until("resnet", is_ours, "Running=True and no finalizer")
    pods = await world.pods()
    assert len(pods) == ALL_PODS
    assert uids(pods).items() >= uids(left).items()
    assert_peers_agree(node, pods)

    ended = await finish(world, node)
    assert ended.status.phase == "Completed", ended.status
    assert ended.status.worker is not None
    assert ended.status.worker.succeeded == job.spec.worker.replicas
    assert uids(await world.pods()) == uids(pods)
    done = tally([request for request in world.requests() if request.code < 300])
    assert (done["create pods"], done["create configmaps"]) == (pods_by_us, maps_by_us)
    assert done["delete pods"] == 0
    await world.delete(PADDLE_JOBS, ended)
    await nothing_is_left(world)


@pytest.mark.parametrize("manifest", [*JOBS.values(), BY_NAME], ids=[*JOBS, "service"])
async def test_a_running_job_does_not_notice(
    change_of_operator: Change, node: FakeNode, manifest: Manifest
) -> None:
    change_of_operator.begin()
    await change_of_operator.world.submit(manifest)
    job = await change_of_operator.world.phase("resnet", "Running")
    assert (job.metadata.finalizers, job.status.conditions) == ((OLD_FINALIZER,), ())
    await run_on(change_of_operator, node)


@every_mode
async def test_a_job_with_half_of_its_pods_gets_the_other_half(
    change_of_operator: Change, node: FakeNode, manifest: Manifest
) -> None:
    world = change_of_operator.world
    await limit(world, pods="2")
    change_of_operator.begin()
    await world.submit(manifest)
    await until_pods(world, 2, has_address)
    await run_on(change_of_operator, node, pods_by_us=2, maps_by_us=1)


@every_mode
async def test_a_job_without_its_config_map_gets_ours(
    change_of_operator: Change, node: FakeNode, manifest: Manifest
) -> None:
    world = change_of_operator.world
    await world.config_map("kube-root-ca.crt")
    await limit(world, configmaps="1")
    change_of_operator.begin()
    await world.submit(manifest)
    await until_pods(world, ALL_PODS, has_address)
    await run_on(change_of_operator, node, maps_by_us=1)


@every_mode
async def test_a_job_whose_pods_have_no_address_yet_gets_our_config_map(
    change_of_operator: Change, node: FakeNode, manifest: Manifest
) -> None:
    node.hold()
    change_of_operator.begin()
    await change_of_operator.world.submit(manifest)
    await until_pods(change_of_operator.world, ALL_PODS)
    await run_on(change_of_operator, node, maps_by_us=1)


async def test_a_job_that_is_deleted_while_no_operator_is_there_goes(
    change_of_operator: Change, node: FakeNode
) -> None:
    world = change_of_operator.world
    change_of_operator.begin()
    await world.submit(JOBS["ps"])
    job = await world.phase("resnet", "Running")
    change_of_operator.stop()
    await world.delete(PADDLE_JOBS, job)
    held = await world.job_until("resnet", lambda seen: seen.metadata.terminating)
    assert held.metadata.finalizers == (OLD_FINALIZER,)
    await change_of_operator.take_over()
    await nothing_is_left(world)


def counted(job: PaddleJob) -> tuple[int, set[PodReference]]:
    assert job.status.worker is not None
    return job.status.worker.succeeded, set(job.status.worker.refs)


async def test_a_job_that_the_go_operator_completed_stays_as_it_is(
    change_of_operator: Change, node: FakeNode
) -> None:
    world = change_of_operator.world
    change_of_operator.begin()
    await world.submit(JOBS["collective"])
    await world.phase("resnet", "Running")
    before = await finish(world, node)
    left = await change_of_operator.take_over()
    job = await world.job_until("resnet", lambda seen: not seen.metadata.finalizers)
    # (The Go operator writes the references in another order each time.)
    assert job.status.phase == "Completed"
    assert counted(job) == counted(before)
    assert uids(await world.pods()) == uids(left)
    await world.delete(PADDLE_JOBS, job)
    await nothing_is_left(world)
