"""deploy/v1/admission-policy.yaml on a real API server: a job gives its author no more than a pod would."""

import asyncio
import itertools
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import make
import msgspec
import pytest
import yaml
from conftest import make_namespace
from tricks import ACCOUNT, HOST_NETWORK, ORDINARY, PRIVILEGED, TRICKS, Trick, in_pod, job
from world import World

from paddle_operator.api.meta import Manifest
from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS
from paddle_operator.cluster import Forbidden, Invalid
from paddle_operator.kube.client import path
from paddle_operator.kube.config import from_file
from paddle_operator.kube.transport import Transport
from testbed.controlplane import ControlPlane
from testbed.node import FakeNode

pytestmark = pytest.mark.apiserver

TOP = Path(__file__).parents[2]
POLICY = TOP / "deploy" / "v1" / "admission-policy.yaml"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
DENIED = "ValidatingAdmissionPolicy 'paddlejobs.batch.paddlepaddle.org'"
MERGE = "application/merge-patch+json"
PATIENCE_SECONDS = 30.0

AUTHOR = "author"
STORED = "stored"
ASLEEP = "asleep"
"""Suspended, so that the number of its workers may change."""
GROUP = "batch.paddlepaddle.org"
WRITES_JOBS = {
    "apiGroups": [GROUP],
    "resources": ["paddlejobs", "paddlejobs/scale"],
    "verbs": ["create", "update", "patch", "delete"],
}
MAKES_PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}
RIGHTS: dict[str, Manifest] = {
    ACCOUNT: {
        "apiGroups": [""],
        "resources": ["serviceaccounts"],
        "resourceNames": ["trainer"],
        "verbs": [ACCOUNT],
    },
    HOST_NETWORK: {"apiGroups": [GROUP], "resources": ["paddlejobs"], "verbs": [HOST_NETWORK]},
    PRIVILEGED: {"apiGroups": [GROUP], "resources": ["paddlejobs"], "verbs": [PRIVILEGED]},
}
NO_PODS = "policy-no-pods"
PODS_ONLY = "policy-pods"
# Namespaces, by what the author may do there beyond writing jobs.
PLACES: dict[str, list[Manifest]] = {
    NO_PODS: [],
    PODS_ONLY: [MAKES_PODS],
    **{f"policy-{verb}": [MAKES_PODS, right] for verb, right in RIGHTS.items()},
}
EVERYTHING = "policy-everything"
ALL_PLACES = {
    **PLACES,
    EVERYTHING: [MAKES_PODS, *RIGHTS.values(), {**RIGHTS[ACCOUNT], "resourceNames": []}],
}


def role(namespace: str, rules: list[Manifest]) -> list[Manifest]:
    api = "rbac.authorization.k8s.io"
    where = {"name": AUTHOR, "namespace": namespace}
    return [
        {"apiVersion": f"{api}/v1", "kind": "Role", "metadata": where, "rules": rules},
        {
            "apiVersion": f"{api}/v1",
            "kind": "RoleBinding",
            "metadata": where,
            "subjects": [{"kind": "User", "name": AUTHOR}],
            "roleRef": {"apiGroup": api, "kind": "Role", "name": AUTHOR},
        },
    ]


def kubectl(plane: ControlPlane, *arguments: str, documents: list[Manifest] | None = None) -> None:
    command = [str(plane.kubectl), "--kubeconfig", str(plane.kubeconfig), *arguments]
    stdin = yaml.safe_dump_all(documents or [])
    result = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.fixture(scope="module")
def policy(apiserver: ControlPlane) -> Iterator[set[str]]:
    """The policy, and a namespace for each set of rights; the policy goes again, for it holds everywhere.

    What is yielded is a note: it is in force.
    """
    namespaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in ALL_PLACES
    ]
    roles = [one for name, rules in ALL_PLACES.items() for one in role(name, [WRITES_JOBS, *rules])]
    kubectl(apiserver, "apply", "-f", "-", documents=[*namespaces, *roles])
    kubectl(apiserver, "apply", "-f", str(POLICY))
    yield set()
    kubectl(apiserver, "delete", "-f", str(POLICY))
    kubectl(apiserver, "delete", "namespace", "--wait=false", *ALL_PLACES)


# Said by the kind itself, whoever asks.
FIXED = "spec.intranet: Invalid value"


class Author:
    """Tries things on: by default nothing is kept, but the server's answer is the real one."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def create(self, namespace: str, manifest: Manifest, *, keep: bool = False) -> str:
        """Empty if it is let in, else the server's words."""
        return await self._ask("POST", path(PADDLE_JOBS, namespace), manifest, keep=keep)

    async def patch(self, namespace: str, name: str, body: Manifest) -> str:
        return await self._ask("PATCH", path(PADDLE_JOBS, namespace, name), body, content_type=MERGE)

    async def scale(self, namespace: str, name: str, spec: Manifest) -> str:
        where = path(PADDLE_JOBS, namespace, name, "scale")
        return await self._ask("PATCH", where, {"spec": spec}, content_type=MERGE)

    async def _ask(
        self, method: str, where: str, body: Manifest, *, keep: bool = False, **options: Any
    ) -> str:
        query = {} if keep else {"dryRun": "All"}
        try:
            await self._transport.request(
                method, where, query=query, body=msgspec.json.encode(body), **options
            )
        except (Forbidden, Invalid) as error:
            return str(error)
        return ""


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Roles and policies are in force a moment after they are stored, and nothing tells when."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            if await holds():
                return
            await asyncio.sleep(0.05)


@pytest.fixture
async def author(
    apiserver: ControlPlane, policy: set[str], paddle_job_kind: None, admin: Transport
) -> AsyncIterator[Author]:
    """Somebody in whose namespaces roles and policy are in force, and a job of somebody else stands."""
    async with Transport(from_file(apiserver.kubeconfig_for(AUTHOR))) as transport:
        someone = Author(transport)
        if not policy:
            await all_in_force(someone)
            for place in ALL_PLACES:
                for stored in (job(STORED), job(ASLEEP, runPolicy={"suspend": True})):
                    await admin.request("POST", path(PADDLE_JOBS, place), body=msgspec.json.encode(stored))
            policy.add("in force")
        yield someone


async def all_in_force(author: Author) -> None:
    async def is_refused() -> bool:
        return DENIED in await author.create(NO_PODS, job())

    async def is_let_in(place: str, manifest: Manifest) -> bool:
        return await author.create(place, manifest) == ""

    await until(is_refused)
    for verb in RIGHTS:
        trick = next(trick for trick in TRICKS.values() if trick.verb == verb)
        await until(partial(is_let_in, f"policy-{verb}", trick.job))
    await until(partial(is_let_in, PODS_ONLY, job()))
    await until(partial(is_let_in, EVERYTHING, TRICKS["host-pid"].job))


def test_there_are_tricks_for_every_right() -> None:
    assert len(TRICKS) >= 40
    assert {trick.verb for trick in TRICKS.values()} == set(RIGHTS)


async def test_the_server_finds_no_fault_in_the_types_of_the_policy(author: Author, admin: Transport) -> None:
    found: Manifest = {}

    async def is_checked() -> bool:
        found.update(msgspec.json.decode(await admin.request("GET", f"{POLICIES}/paddlejobs.{GROUP}")))
        return bool(found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"])

    await until(is_checked)
    assert found["status"]["typeChecking"] == {}


@pytest.mark.parametrize("trick", TRICKS.values(), ids=TRICKS.keys())
async def test_a_trick_takes_its_right_and_no_other_will_do(author: Author, trick: Trick) -> None:
    for place in PLACES:
        answer = await author.create(place, trick.job)
        if place == f"policy-{trick.verb}":
            assert answer == ""
        elif place == NO_PODS:
            assert f"you need the verb create on pods in namespace {NO_PODS}" in answer
        else:
            assert_refused(answer, trick, place)


@pytest.mark.parametrize("trick", TRICKS.values(), ids=TRICKS.keys())
async def test_a_trick_cannot_be_brought_in_later(author: Author, trick: Trick) -> None:
    for place in PLACES:
        answer = await author.patch(place, STORED, {"spec": trick.job["spec"]})
        if "intranet" in trick.job["spec"]:
            assert FIXED in answer
        elif place == f"policy-{trick.verb}":
            assert answer == ""
        elif place == NO_PODS:
            assert f"you need the verb create on pods in namespace {NO_PODS}" in answer
        else:
            assert_refused(answer, trick, place)


def assert_refused(answer: str, trick: Trick, place: str) -> None:
    """The words say what, where, and what to ask for."""
    resource = "serviceaccounts trainer" if trick.verb == ACCOUNT else f"paddlejobs.{GROUP}"
    assert DENIED in answer
    assert f"{trick.field}: you need the verb {trick.verb} on {resource} in namespace {place}" in answer
    assert "docs/en/security.md" in answer


@pytest.mark.parametrize("name", ORDINARY)
async def test_what_is_ordinary_takes_no_right_but_that_to_make_pods(author: Author, name: str) -> None:
    assert await author.create(PODS_ONLY, ORDINARY[name]) == ""
    answer = await author.patch(PODS_ONLY, STORED, {"spec": ORDINARY[name]["spec"]})
    assert FIXED in answer if "intranet" in ORDINARY[name]["spec"] else answer == ""
    assert "the verb create on pods" in await author.create(NO_PODS, ORDINARY[name])


FILES = [
    *TOP.glob("examples/*/job.yaml"),
    *TOP.glob("deploy/examples/*.yaml"),
    *TOP.glob("tests/golden/seeds/*.yaml"),
]
JOBS = {
    f"{file.parent.name}-{file.stem}-{document['metadata']['name']}": document
    for file in sorted(FILES)
    for document in yaml.safe_load_all(file.read_text(encoding="utf-8"))
    if document and document["kind"] == "PaddleJob"
}


@pytest.mark.parametrize("name", JOBS)
async def test_examples_and_seeds_ask_for_the_host_network_at_most(author: Author, name: str) -> None:
    manifest = {**JOBS[name], "metadata": {**JOBS[name]["metadata"], "namespace": PODS_ONLY}}
    answer = await author.create(PODS_ONLY, manifest)
    if JOBS[name]["spec"].get("intranet") in {"Host", "HostNetwork"}:
        assert "spec.intranet: you need the verb use-host-network" in answer
    else:
        assert answer == ""


async def test_all_that_is_missing_is_said_at_once(author: Author) -> None:
    context = {"privileged": True, "capabilities": {"add": ["SYS_ADMIN"]}}
    pod = make.template(make.container(securityContext=context), hostPID=True)
    answer = await author.create(PODS_ONLY, job(role="ps", template=pod))
    for field in (".hostPID", ".securityContext.privileged", ".securityContext.capabilities.add"):
        assert field in answer


async def test_a_large_job_does_not_exhaust_the_server(author: Author) -> None:
    """The server stops expressions that take too long, and would then refuse the job."""
    volumes = [{"name": f"volume-{number}", "emptyDir": {}} for number in range(60)]
    mounts = [{"name": one["name"], "mountPath": f"/{one['name']}"} for one in volumes]
    containers = [
        make.container(name=f"paddle-{number}", volumeMounts=mounts, securityContext={"privileged": True})
        for number in range(30)
    ]
    large = make.template(
        *containers, volumes=volumes, serviceAccountName="trainer", serviceAccount="trainer"
    )
    manifest = job()
    manifest["spec"] |= {name: {"replicas": 1, "template": large} for name in ("worker", "ps", "heter")}
    assert "you need the verb use on serviceaccounts trainer" in await author.create(PODS_ONLY, manifest)
    assert "you need the verb use-privileged" in await author.create("policy-use", manifest)


async def test_an_update_that_leaves_the_spec_alone_passes(author: Author, admin: Transport) -> None:
    place = NO_PODS
    powerful = in_pod(hostPID=True, serviceAccountName="trainer")
    powerful["metadata"]["name"] = "powerful"
    await admin.request("POST", path(PADDLE_JOBS, place), body=msgspec.json.encode(powerful))
    assert await author.patch(place, "powerful", {"metadata": {"labels": {"seen": "yes"}}}) == ""
    assert DENIED in await author.patch(place, "powerful", {"spec": {"cleanPodPolicy": "Never"}})
    assert DENIED in await author.patch(
        place, "powerful", {"metadata": {"labels": {"seen": "yes"}}, "spec": {"cleanPodPolicy": "Never"}}
    )


@pytest.mark.parametrize("place", ALL_PLACES)
async def test_to_scale_takes_every_right_as_it_does_not_show_what_it_makes_more_of(
    author: Author, place: str
) -> None:
    """Somebody else may have been allowed to write what is scaled; the author could not have."""
    answer = await author.scale(place, ASLEEP, {"replicas": 3})
    if place == EVERYTHING:
        assert answer == ""
    elif place == NO_PODS:
        assert f"you need the verb create on pods in namespace {NO_PODS}" in answer
    else:
        assert DENIED in answer
        assert "you need the verb" in answer
        assert f"in namespace {place}; or change spec.worker.replicas of the job itself" in answer


async def test_who_may_not_scale_can_resize_what_is_ordinary_by_an_edit(
    author: Author, admin: Transport
) -> None:
    larger = {"spec": {"worker": {"replicas": 3}}}
    assert await author.patch(PODS_ONLY, ASLEEP, larger) == ""
    powerful = in_pod(hostPID=True)
    powerful["metadata"]["name"] = "powerful-and-asleep"
    powerful["spec"]["runPolicy"] = {"suspend": True}
    await admin.request("POST", path(PADDLE_JOBS, PODS_ONLY), body=msgspec.json.encode(powerful))
    for name in ("scale", "patch"):
        change = {"replicas": 3} if name == "scale" else larger
        assert DENIED in await getattr(author, name)(PODS_ONLY, "powerful-and-asleep", change)


async def test_a_scale_brings_in_nothing_but_a_number(author: Author, admin: Transport) -> None:
    pod = make.template(hostPID=True)
    await author.scale(EVERYTHING, ASLEEP, {"replicas": 3, "worker": {"template": pod}, "template": pod})
    stored = await admin.request("GET", path(PADDLE_JOBS, EVERYTHING, ASLEEP))
    assert b"hostPID" not in stored


@pytest.mark.parametrize(
    "policy",
    [
        {"suspend": True},
        {"suspend": False},
        {"backoffLimit": 1000, "maxDisruptions": 1000},
        {"ttlSecondsAfterFinished": 0},
        {"forceDeleteAfterSeconds": 0},
    ],
    ids=str,
)
async def test_a_run_policy_is_ordinary_but_not_for_a_job_that_is_not(
    author: Author, admin: Transport, policy: Manifest
) -> None:
    """To resume or restart it makes pods that its author could not make."""
    assert await author.create(PODS_ONLY, job(runPolicy=policy)) == ""
    assert await author.patch(PODS_ONLY, STORED, {"spec": {"runPolicy": policy}}) == ""
    name = f"powerful-{next(_numbers)}"
    powerful = in_pod(hostPID=True)
    powerful["metadata"]["name"] = name
    powerful["spec"]["runPolicy"] = {"suspend": not policy.get("suspend", False)}
    await admin.request("POST", path(PADDLE_JOBS, PODS_ONLY), body=msgspec.json.encode(powerful))
    assert DENIED in await author.patch(PODS_ONLY, name, {"spec": {"runPolicy": policy}})


_numbers = itertools.count()


async def test_the_operator_is_not_held_up(author: Author, world: World, node: FakeNode) -> None:
    """It has none of these rights, and needs none: it writes status and takes the old finalizer off."""
    kubectl(world.plane, "apply", "-f", "-", documents=role(world.namespace, [WRITES_JOBS, MAKES_PODS]))
    mine = make.manifest("mine", cleanPodPolicy="Never")

    async def is_let_in() -> bool:
        return await author.create(world.namespace, mine, keep=True) == ""

    await until(is_let_in)
    powerful = make.manifest("powerful", pod=make.template(hostPID=True))
    powerful["metadata"]["finalizers"] = ["finalizers.paddlepaddle.org"]
    await world.submit(powerful)
    world.start_manager()
    for name in ("mine", "powerful"):
        ended = await world.phase(name, "Completed", "Failed")
        assert (ended.status.phase, ended.metadata.finalizers) == ("Completed", ())
        await world.delete(PADDLE_JOBS, ended)
        await world.gone(PADDLE_JOBS, name)
        await world.gone(CONFIG_MAPS, name)
    await world.no_pods()
    assert [request for request in world.requests() if request.code == 403] == []


async def test_a_job_of_another_namespace_is_judged_there(author: Author, admin: Transport) -> None:
    """Rights in one namespace are none in the next."""
    other = await make_namespace(admin, "policy-elsewhere")
    answer = await author.create(other, TRICKS["host-pid"].job)
    assert "cannot create resource" in answer
