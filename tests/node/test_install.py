"""The operator installed in each way that the documents tell of: it works, is upgraded, goes without a trace.

Each way is gone once, from the first test to the last: a test finds what the one before has left, or a new
installation. Pod Security of the operator's namespace is `restricted`, for the operator and for jobs there.
"""

import asyncio
from collections.abc import Callable, Iterator

import pytest
import yaml
from installation import (
    KIND,
    NAMESPACE,
    NO_ROOM_YET,
    RESTART,
    ROLLED_OUT,
    TOP,
    UNTIL_TOLD,
    Files,
    Helm,
    Kustomize,
    Shell,
    Site,
    Way,
    finish,
    job,
    lease_until,
    pods_of_jobs,
    prepare,
    remove,
)
from operator_acts import longest_gap, one_at_a_time, pods_made, refused
from real_cluster import pod
from world import World

from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS, SERVICES
from paddle_operator.cluster import ApiError, NotFound, Scope
from paddle_operator.kube.transport import Transport
from testbed import images
from testbed.controlplane import ControlPlane

pytestmark = [pytest.mark.node, pytest.mark.alone]

TRAINING = TOP / "examples" / "01-single" / "job.yaml"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# One after the other, so that some end at any moment of a change of operators.
ENDING = 6
CLUSTER_WIDE = (
    "clusterrole,clusterrolebinding,validatingadmissionpolicy,validatingadmissionpolicybinding,crd,namespace"
)
# Kubernetes puts it into each namespace.
NOT_OURS = "kube-root-ca.crt"


@pytest.fixture(scope="module")
def _images(apiserver: ControlPlane) -> None:
    for image in (images.OPERATOR, images.PADDLE):
        apiserver.node.import_image(images.ensure(image))


@pytest.fixture(scope="module", params=[Files, Kustomize, Helm], ids=["kubectl", "kustomize", "helm"])
def way(
    request: pytest.FixtureRequest,
    apiserver: ControlPlane,
    tmp_path_factory: pytest.TempPathFactory,
    _images: None,
) -> Iterator[Way]:
    shell = Shell(apiserver)
    prepare(shell)
    shell(f"kubectl create namespace {NAMESPACE}")
    shell(f"kubectl label namespace {NAMESPACE} pod-security.kubernetes.io/enforce=restricted")
    way: Way = request.param(shell, tmp_path_factory.mktemp("copy"))
    way.install()
    yield way
    remove(shell)


@pytest.fixture
def site(way: Way, apiserver: ControlPlane, admin: Transport, namespace: str) -> Iterator[Site]:
    site = Site.of(apiserver, admin, namespace)
    yield site
    site.take_room()


async def test_it_follows_its_own_namespace_and_no_other(
    way: Way, site: Site, outcomes: dict[str, str]
) -> None:
    with pytest.raises(ApiError, match="violates PodSecurity"):
        await site.system.post(f"/api/v1/namespaces/{NAMESPACE}/pods", pod("careless", "true"))
    await site.elsewhere.submit(job("alone", "true"))
    await site.system.submit(job("own", "true", workers=2))
    await site.system.phase("own", "Completed")
    alone = await site.elsewhere.get(PADDLE_JOBS, "alone")
    assert alone is not None
    assert (alone.status.phase, await site.elsewhere.pods()) == ("", {})
    acts = site.watchman.acts()
    assert pods_made(acts) == 2
    assert refused(acts) == []
    assert {act.namespace for act in acts} == {NAMESPACE}
    outcomes[f"{way.name}: install"] = f"a job in {NAMESPACE} completed, one elsewhere was left alone"


async def test_jobs_do_not_notice_an_upgrade(way: Way, site: Site, outcomes: dict[str, str]) -> None:
    outcomes[f"{way.name}: upgrade"] = await unnoticed(site, "upgrade", way.upgrade)


@pytest.mark.parametrize("way", [Files], indirect=True, ids=["kubectl"])
async def test_jobs_do_not_notice_that_two_operators_are_restarted(
    way: Files, site: Site, outcomes: dict[str, str]
) -> None:
    def restart() -> None:
        site.shell(RESTART)
        site.shell(ROLLED_OUT)

    way.upgrade()
    outcomes[f"{way.name}: restart"] = await unnoticed(site, "restart", restart)


async def unnoticed(site: Site, change: str, make_it: Callable[[], None]) -> str:
    """Some jobs wait for room, some run, some end just then: one when nobody leads."""
    system, running, pending = site.system, f"{change}-running", f"{change}-pending"
    ending = [f"{change}-ending-{seconds}" for seconds in range(ENDING)]
    leader = await lease_until(system, bool, "a leader")
    await system.submit(job(running, UNTIL_TOLD, workers=2, servers=1))
    await system.submit(job(pending, "true", workers=2, pod=NO_ROOM_YET))
    await system.phase(running, "Running")
    await system.pod_until(f"{pending}-worker-1", lambda seen: seen.status.phase == "Pending")
    before = await pods_of_jobs(system)
    for seconds, name in enumerate(ending):
        await system.submit(job(name, f"sleep {seconds}"))
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.to_thread(make_it))
        await lease_until(system, lambda holder: holder != leader, "the leader to give back its lease")
        await finish(system, running)
    site.make_room()
    for name in (running, pending, *ending):
        ended = await system.phase(name, "Completed", "Failed")
        assert (ended.status.phase, ended.status.restarts) == ("Completed", 0), ended.status

    acts = site.watchman.acts()
    assert before.items() <= (await pods_of_jobs(system)).items()
    made = pods_made(acts)
    assert made == 5 + ENDING
    assert len(one_at_a_time(acts)) >= 2
    assert refused(acts) == []
    return f"{2 + ENDING} jobs, {made} pods, each made once; led by nobody {longest_gap(acts):.1f} s"


async def test_it_can_follow_all_namespaces(way: Way, site: Site, outcomes: dict[str, str]) -> None:
    """With real Paddle, where Pod Security does not mind."""
    way.follow_all()
    await site.elsewhere.submit(yaml.safe_load(TRAINING.read_text()))
    await site.system.submit(job("also", "true"))
    trained = await site.elsewhere.phase("single", "Completed", "Failed")
    assert trained.status.phase == "Completed", trained.status
    await site.system.phase("also", "Completed")
    assert refused(site.watchman.acts()) == []
    outcomes[f"{way.name}: all namespaces"] = (
        "a training elsewhere completed, and a job in the operator's namespace"
    )


@pytest.mark.parametrize("way", [Helm], indirect=True, ids=["helm"])
async def test_helm_keeps_the_jobs_of_a_release_that_goes_and_the_next_goes_on(
    way: Helm, site: Site, outcomes: dict[str, str]
) -> None:
    await site.system.submit(job("kept", UNTIL_TOLD))
    await site.system.phase("kept", "Running")
    before = await pods_of_jobs(site.system)
    told = way.remove_release()
    assert "kept due to the resource policy" in told
    assert KIND in told
    await finish(site.system, "kept")
    way.install()
    await site.system.phase("kept", "Completed")
    assert await pods_of_jobs(site.system) == before
    outcomes[f"{way.name}: uninstall without the kind"] = (
        "the job ran on without a release, and was completed by the next"
    )


async def test_nothing_is_left_of_it_and_of_its_jobs(way: Way, site: Site, outcomes: dict[str, str]) -> None:
    """Uninstalled while one job runs and one has ended, in the operator's namespace and in another."""
    way.follow_all()
    worlds = (site.system, site.elsewhere)
    for world in worlds:
        await world.submit(job("live", UNTIL_TOLD, workers=2, servers=1, intranet="Service"))
        await world.submit(job("over", "true"))
    for world in worlds:
        await world.phase("live", "Running")
        await world.phase("over", "Completed")
    way.uninstall()
    for gone in (f"{CRDS}/{KIND}", f"/api/v1/namespaces/{NAMESPACE}"):
        with pytest.raises(NotFound):
            await site.system.transport.request("GET", gone)
    await nothing_in(site.elsewhere)
    assert "paddle" not in site.shell(f"kubectl get {CLUSTER_WIDE} -o name")
    outcomes[f"{way.name}: uninstall"] = "no kind, namespace, pod, service, config map or right is left"


async def nothing_in(world: World) -> None:
    for resource in (PODS, SERVICES, CONFIG_MAPS):
        for one in (await world.cluster.list(resource, Scope(world.namespace))).items:
            if one.metadata.name != NOT_OURS:
                await world.gone(resource, one.metadata.name)
