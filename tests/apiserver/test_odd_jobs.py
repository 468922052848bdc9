"""Jobs that the server takes although they are odd: each is told, and none troubles the others."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import make
import msgspec
import pytest
from audit import tally
from cases import ACCEPTED, CASES, Verdict
from mutations import mutants
from world import World, servers_complaint

from paddle_operator.api.crd import Schema, paddle_job_crd
from paddle_operator.api.documents import read_documents
from paddle_operator.api.meta import Manifest, find_condition
from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.api.validate import not_served
from testbed.node import FakeNode

pytestmark = pytest.mark.apiserver

SEED = 20261118
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE = "application/merge-patch+json"
# A job of few pods that ends takes about 25; one that is refused for good takes 2.
MOST_REQUESTS_A_JOB = 40


def document_of(text: str, number: int) -> Manifest:
    """The job of a case, under a name of its own."""
    document: Manifest = read_documents(text)[0]
    name = document["metadata"]["name"]
    renamed = f"odd-{number}" if name == "resnet" else name
    metadata = {**document["metadata"], "name": renamed}
    for field in ("uid", "resourceVersion", "generation", "namespace"):
        metadata.pop(field, None)
    return {**document, "metadata": metadata}


def is_served(document: Manifest) -> bool:
    written = {name: value for name, value in document.items() if name != "status"}
    return not not_served(msgspec.json.decode(msgspec.json.encode(written), type=PaddleJob))


async def test_what_only_the_operator_can_refuse_comes_back_as_a_condition_on_the_field(world: World) -> None:
    asked = {}
    for number, case in enumerate(case for case in CASES if case.verdict is Verdict.OPERATOR):
        document = document_of(case.text, number)
        if is_served(document):
            asked[(await world.submit(document)).metadata.name] = case
    assert len(asked) >= 10
    world.start_manager()
    for name, case in asked.items():
        job = await world.condition(name, "Created", "False", "InvalidSpec")
        created = find_condition(job.status.conditions, "Created")
        assert created is not None
        assert f"{case.field}: " in created.message
        assert case.remedy in created.message
    assert not await world.pods()


async def odd_documents(world: World) -> AsyncIterator[Manifest]:
    """What the server takes: of the corpus all, of the mutants the first few."""
    for number, case in enumerate(ACCEPTED):
        yield document_of(case.text, number)
    for number, document in enumerate(itertools.islice(mutants(SEED), 2_000)):
        roles = [role for role in document["spec"].values() if isinstance(role, dict) and "template" in role]
        counts = [role.get("replicas", 1) for role in roles]
        few = all(isinstance(count, int) and count <= 4 for count in counts)
        if few and not await servers_complaint(world.transport, json.dumps(document)):
            yield {**document, "metadata": {"name": f"mutant-{number}"}}


async def test_odd_jobs_neither_crash_nor_stall_nor_load_the_operator(world: World, node: FakeNode) -> None:
    world.start_manager()
    count = 0
    async for document in odd_documents(world):
        await world.submit(document)
        count += 1
        if count == 100:
            break
    await world.submit(make.manifest("good"))
    assert (await world.phase("good", "Completed", "Failed")).status.phase == "Completed"
    before = len(world.requests())
    # Long enough for a loop without a pause to show itself.
    await asyncio.sleep(5)
    counts, later = tally(world.requests()), tally(world.requests()[before:])
    print(f"\nrequests of {count} odd jobs: {dict(counts)}; in the 5 s after the good one: {dict(later)}")
    assert count == 100
    assert counts.total() <= count * MOST_REQUESTS_A_JOB
    assert later.total() <= count * 4


@asynccontextmanager
async def before_the_rules(world: World) -> AsyncIterator[None]:
    """The CRD as it might have been: with the fields, without a rule about them."""
    crd = paddle_job_crd()
    where = f"{CRDS}/{crd['metadata']['name']}"

    async def install(spec: Manifest, *, refuses: bool) -> None:
        body = msgspec.json.encode({"spec": spec})
        await world.transport.request("PATCH", where, body=body, content_type=MERGE)
        probe, wanted = json.dumps(make.manifest("old.name")), "metadata.name" if refuses else ""
        # A changed kind is served within a second or two, with gaps, and nothing tells when.
        quiet = 0
        while quiet < 20:
            said = await servers_complaint(world.transport, probe)
            quiet = quiet + 1 if (wanted in said if wanted else not said) else 0
            await asyncio.sleep(0.05)

    await install(without_rules(crd["spec"]), refuses=False)
    try:
        yield
    finally:
        await install(crd["spec"], refuses=True)


def without_rules(schema: Any) -> Schema | Any:
    rules = {"x-kubernetes-validations", "minItems", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"}
    if isinstance(schema, dict):
        return {name: without_rules(inner) for name, inner in schema.items() if name not in rules}
    return [without_rules(inner) for inner in schema] if isinstance(schema, list) else schema


async def test_a_job_that_was_stored_before_there_was_the_rule_is_told_so(world: World) -> None:
    old = {
        "old.name": make.manifest("old.name"),
        "a" * 60: make.manifest("a" * 60),
        "always": make.manifest("always", pod=make.template(restartPolicy="Always")),
        "host": make.manifest("host", pod=make.template(hostNetwork=True)),
        "twice": make.manifest("twice", pod=make.template(make.container(), make.container())),
        "none": make.manifest("none", pod={"spec": {"containers": []}}),
    }
    async with before_the_rules(world):
        for manifest in old.values():
            await world.submit(manifest)
    world.start_manager()
    for name in old:
        await world.condition(name, "Created", "False", "InvalidSpec")
