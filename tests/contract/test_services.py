"""What we rely on in services: that they are kept, shown and deleted, and which names they may have."""

import asyncio
from contextlib import aclosing
from typing import Any

import make
import pytest
from contract_bench import Bench, get, patch, version

from paddle_operator.api.core import Service
from paddle_operator.api.resources import SERVICES, Target
from paddle_operator.cluster import AlreadyExists, Conflict, Invalid, NotFound, Scope, Verb
from paddle_operator.paddlejob.services import build_service

OTHER_UID = "00000000-0000-4000-8000-ffffffffffff"


async def make_service(bench: Bench, name: str = "resnet-ps-0", **metadata: Any) -> Service:
    """As the operator makes it, without an owner: none of that name lives here."""
    manifest = build_service(make.paddlejob(), name)
    manifest["metadata"] = {"name": name, "namespace": bench.namespace, **metadata}
    return await bench.cluster.create(SERVICES, manifest)


async def test_what_is_asked_for_is_kept(bench: Bench) -> None:
    made = await make_service(bench, labels={"a": "1"})
    assert len(made.metadata.uid) == 36
    assert version(made) > 0
    assert made.metadata.labels == {"a": "1"}
    kept = (await bench.stored(SERVICES, "resnet-ps-0"))["spec"]
    asked = build_service(make.paddlejob(), "resnet-ps-0")["spec"]
    assert asked.items() <= kept.items()


async def test_a_name_that_is_taken_is_refused(bench: Bench) -> None:
    await make_service(bench)
    with pytest.raises(AlreadyExists, match="resnet-ps-0"):
        await make_service(bench)


@pytest.mark.parametrize("name", ["9lives-ps-0", "Resnet-ps-0", "a.b-ps-0", "-a", "a-", "a" * 64])
async def test_a_name_that_dns_cannot_have_is_refused(bench: Bench, name: str) -> None:
    """Stricter than pods, which may begin with a digit."""
    with pytest.raises(Invalid, match=r"metadata\.name"):
        await make_service(bench, name)


async def test_a_list_is_cut_by_labels(bench: Bench) -> None:
    for name, labels in {"one": {"a": "1"}, "two": {"b": "1"}}.items():
        await make_service(bench, name, labels=labels)
    listing = await bench.cluster.list(SERVICES, Scope(bench.namespace, "a"))
    assert [one.metadata.name for one in listing.items] == ["one"]


async def test_a_watch_tells_every_change(bench: Bench) -> None:
    since = (await bench.cluster.list(SERVICES, Scope(bench.namespace, "a"))).resource_version
    made = await make_service(bench, labels={"a": "1"})
    await make_service(bench, "other")
    await patch(bench, SERVICES, made, {"metadata": {"uid": made.metadata.uid, "labels": {"a": "2"}}})
    await bench.cluster.delete(Target.of(SERVICES, made))
    verbs = []
    watch = bench.cluster.watch(SERVICES, Scope(bench.namespace, "a"), since)
    async with asyncio.timeout(30), aclosing(watch) as changes:
        async for change in changes:
            if change.object is not None:
                assert change.object.metadata.name == "resnet-ps-0"
                verbs.append(change.verb)
            if change.verb is Verb.DELETED:
                break
    assert verbs == [Verb.ADDED, Verb.MODIFIED, Verb.DELETED]


async def test_a_delete_is_for_one_uid_and_at_once(bench: Bench) -> None:
    made = await make_service(bench)
    with pytest.raises(Conflict):
        await bench.cluster.delete(Target(SERVICES, made.metadata.key, OTHER_UID))
    assert (await get(bench, SERVICES, "resnet-ps-0")).metadata.uid == made.metadata.uid
    await bench.cluster.delete(Target.of(SERVICES, made))
    with pytest.raises(NotFound):
        await get(bench, SERVICES, "resnet-ps-0")


async def test_a_patch_for_another_uid_is_invalid(bench: Bench) -> None:
    made = await make_service(bench)
    with pytest.raises(Invalid, match="immutable"):
        await patch(bench, SERVICES, made, {"metadata": {"uid": OTHER_UID, "labels": {"a": "1"}}})


async def test_a_service_goes_with_its_owner(bench: Bench) -> None:
    owner = (await make_service(bench, "owner")).metadata
    reference = {"apiVersion": "v1", "kind": "Service", "name": owner.name, "uid": owner.uid}
    await make_service(bench, "owned", ownerReferences=[{**reference, "controller": True}])
    await bench.cluster.delete(Target(SERVICES, owner.key, owner.uid))
    await bench.gone(SERVICES, "owned")
