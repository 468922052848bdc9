"""The Go operator in a cluster, by its own manifests; ours put over it while its jobs run: none is lost."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from installation import (
    NAMESPACE,
    NO_ROOM_YET,
    RELEASE,
    ROLLED_OUT,
    TOP,
    UNTIL_TOLD,
    Shell,
    Site,
    finish,
    job,
    lease_until,
    pods_of_jobs,
    prepare,
    remove,
)
from operator_acts import longest_gap, one_at_a_time, pods_made, refused
from world import World

from paddle_operator.api.names import OLD_FINALIZER
from paddle_operator.api.resources import PADDLE_JOBS, PODS
from paddle_operator.api.rights import FOLLOWED, rules
from paddle_operator.kube.transport import Transport
from testbed import binaries, images
from testbed.controlplane import ControlPlane

pytestmark = [pytest.mark.node, pytest.mark.alone]

PAGE = TOP / "docs" / "en" / "upgrade.md"
OUR_KIND = "kubectl apply -f deploy/v1/crd.yaml"
OUR_OPERATOR = "kubectl apply -f deploy/v1/operator.yaml"
OURS_FOR_ALL = "kubectl apply -k config/overlays/all-namespaces"
LEFTOVER_RIGHTS = (
    "kubectl delete clusterrolebinding paddle-manager-rolebinding",
    "kubectl delete clusterrole paddle-manager-role",
)
LEFTOVER_MAPS = (
    "kubectl -n paddle-system delete configmap paddle-manager-config b2a304f2.paddlepaddle.org "
    "--ignore-not-found"
)
HELM_FOR_ALL = f"helm install {RELEASE} --take-ownership --set watchNamespace= --wait --timeout 90s"
# Jobs in the operator's namespace; one more is elsewhere, and one is deleted on the way.
LIVE = ("servers", "by-name")
STAY = (*LIVE, "waiting", "over")
ALL_PODS = 11


@pytest.fixture(scope="module", autouse=True)
def _images(apiserver: ControlPlane) -> None:
    for image in (images.GO_OPERATOR, images.OPERATOR):
        apiserver.node.import_image(images.ensure(image))


@pytest.fixture
def site(apiserver: ControlPlane, admin: Transport, namespace: str, tmp_path: Path) -> Iterator[Site]:
    """With the Go operator."""
    site = Site.of(apiserver, admin, namespace)
    prepare(site.shell)
    install_go_operator(site.shell, tmp_path / "operator.yaml")
    yield site
    site.take_room()
    remove(site.shell)


def install_go_operator(shell: Shell, copy: Path) -> None:
    """From an image that is here already, and without its init container, as alpine is not.

    Its kind is too large for `kubectl apply`.
    """
    folder = binaries.source_folder(binaries.GO_OPERATOR) / "deploy" / "v1"
    documents = list(yaml.safe_load_all((folder / "operator.yaml").read_text()))
    (deployment,) = (one for one in documents if one["kind"] == "Deployment")
    (manager,) = deployment["spec"]["template"]["spec"]["containers"]
    manager["imagePullPolicy"] = "IfNotPresent"
    manager["args"].append("--initImage=")
    copy.write_text(yaml.safe_dump_all(documents))
    shell(f"kubectl create -f {folder / 'crd.yaml'}")
    shell(f"kubectl apply -f {copy}")


@pytest.fixture
async def begun(site: Site) -> dict[str, str]:
    """Jobs of the Go operator in all states; the UIDs of the pods that are to stay."""
    system, elsewhere = site.system, site.elsewhere
    await lease_until(system, bool, "the Go operator to lead")
    await elsewhere.submit(job("collective", UNTIL_TOLD, workers=2))
    await system.submit(job("servers", UNTIL_TOLD, workers=2, servers=1))
    await system.submit(job("by-name", UNTIL_TOLD, workers=2, intranet="Service"))
    await system.submit(job("unwanted", UNTIL_TOLD))
    await system.submit(job("over", "true"))
    await system.submit(job("waiting", "true", workers=2, pod=NO_ROOM_YET))
    await elsewhere.phase("collective", "Running")
    for name in (*LIVE, "unwanted"):
        await system.phase(name, "Running")
    await system.phase("over", "Completed")
    await system.pod_until("waiting-worker-1", lambda seen: seen.status.phase == "Pending")
    for world, name in [(elsewhere, "collective"), *((system, name) for name in (*STAY, "unwanted"))]:
        await world.job_until(name, lambda seen: seen.metadata.finalizers == (OLD_FINALIZER,))
    pods = await pods_that_stay(site)
    assert len(pods) == ALL_PODS - 1
    return pods


async def test_ours_follows_its_own_namespace(
    site: Site, begun: dict[str, str], outcomes: dict[str, str]
) -> None:
    """What it does not follow runs on as it is, until Helm puts one in its place that follows all."""
    replace_operator(site, OUR_KIND, OUR_OPERATOR, ROLLED_OUT)
    await taken_over(site.system, *STAY)
    for line in (*LEFTOVER_RIGHTS, LEFTOVER_MAPS):
        site.shell(line)
    await all_complete(site)
    alone = await site.elsewhere.get(PADDLE_JOBS, "collective")
    assert alone is not None
    assert (alone.status.phase, alone.metadata.finalizers) == ("Running", (OLD_FINALIZER,))

    site.shell(HELM_FOR_ALL)
    await nothing_is_mixed(site)
    await collective_completes(site)
    assert await pods_that_stay(site) == begun
    outcomes["Go operator, kubectl, helm"] = told(site)


async def test_ours_follows_all_namespaces(
    site: Site, begun: dict[str, str], outcomes: dict[str, str]
) -> None:
    replace_operator(site, OUR_KIND, OURS_FOR_ALL, ROLLED_OUT)
    await taken_over(site.system, *STAY)
    site.shell(LEFTOVER_MAPS)
    await nothing_is_mixed(site)
    await all_complete(site)
    await collective_completes(site)
    assert await pods_that_stay(site) == begun
    outcomes["Go operator, kustomize"] = told(site)


def test_that_is_what_users_are_told_to_type() -> None:
    page = PAGE.read_text()
    for line in (OUR_KIND, OUR_OPERATOR, OURS_FOR_ALL, *LEFTOVER_RIGHTS, LEFTOVER_MAPS):
        assert line in page


def replace_operator(site: Site, *lines: str) -> None:
    """And a job is deleted at once, most likely while nobody leads."""
    for line in lines:
        site.shell(line)
    site.shell(f"kubectl -n {NAMESPACE} delete pdj unwanted --wait=false")


async def taken_over(world: World, *names: str) -> None:
    """Ours takes off the finalizer. For the rest jobs are as they were."""
    phases = {"waiting": "Pending", "over": "Completed"}
    for name in names:
        taken = await world.job_until(name, lambda seen: not seen.metadata.finalizers, f"{name} taken over")
        assert taken.status.phase == phases.get(name, "Running"), taken.status


async def all_complete(site: Site) -> None:
    """Those in the operator's namespace, but the unwanted one, which goes."""
    for name in LIVE:
        await finish(site.system, name)
    site.make_room()
    for name in STAY:
        await completes(site.system, name)
    await site.system.gone(PADDLE_JOBS, "unwanted")
    await site.system.gone(PODS, "unwanted-worker-0")


async def collective_completes(site: Site) -> None:
    await taken_over(site.elsewhere, "collective")
    await finish(site.elsewhere, "collective")
    await completes(site.elsewhere, "collective")


async def completes(world: World, name: str) -> None:
    ended = await world.phase(name, "Completed", "Failed")
    assert (ended.status.phase, ended.status.restarts) == ("Completed", 0), ended.status


async def nothing_is_mixed(site: Site) -> None:
    """Of two manifests under one name: rights and limits are ours alone."""
    transport = site.system.transport
    rights = await transport.request(
        "GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/paddle-manager-role"
    )
    assert json.loads(rights)["rules"] == rules(FOLLOWED)
    deployment = await transport.request(
        "GET", f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/paddle-controller-manager"
    )
    (manager,) = json.loads(deployment)["spec"]["template"]["spec"]["containers"]
    assert manager["args"] == ["--leader-elect"]
    assert manager["resources"]["limits"].keys() == {"memory"}


async def pods_that_stay(site: Site) -> dict[str, str]:
    pods = await pods_of_jobs(site.system, site.elsewhere)
    return {name: uid for name, uid in pods.items() if "/unwanted-" not in name}


def told(site: Site) -> str:
    acts = site.watchman.acts()
    theirs, *_ours = one_at_a_time(acts)
    assert pods_made(acts) == ALL_PODS
    assert {act.pod for act in acts if str(act) == "create pods"} == {theirs}
    assert refused(act for act in acts if act.pod != theirs) == []
    return f"6 jobs, {ALL_PODS} pods, none made by ours; led by nobody {longest_gap(acts):.1f} s"
