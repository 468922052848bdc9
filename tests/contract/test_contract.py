"""What we rely on in an API server. Each test runs against the one in memory and against a real one."""

import asyncio
from contextlib import aclosing
from typing import Any

import make
import msgspec
import pytest
from contract_bench import Bench, MemoryBench, get, patch, version

from paddle_operator.api.core import Pod
from paddle_operator.api.meta import KubeObject, Manifest
from paddle_operator.api.resources import CONFIG_MAPS, LEASES, PADDLE_JOBS, PODS, Target
from paddle_operator.cluster import AlreadyExists, Change, Conflict, Gone, Invalid, NotFound, Scope, Verb


async def make_job(bench: Bench, name: str = "resnet", **spec: Any) -> Any:
    manifest = make.manifest(name, **spec)
    manifest["metadata"]["namespace"] = bench.namespace
    return await bench.cluster.create(PADDLE_JOBS, manifest)


async def make_map(bench: Bench, name: str = "map", **metadata: Any) -> Any:
    manifest = {"metadata": {"name": name, "namespace": bench.namespace, **metadata}, "data": {"a": "1"}}
    return await bench.cluster.create(CONFIG_MAPS, manifest)


async def make_pod(bench: Bench, name: str = "pod", **fields: Any) -> Pod:
    spec = {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 30}
    metadata = {"name": name, "namespace": bench.namespace}
    return await bench.cluster.create(PODS, {"metadata": metadata, "spec": spec, **fields})


class TestCreate:
    async def test_gives_identity(self, bench: Bench) -> None:
        job = await make_job(bench)
        assert len(job.metadata.uid) == 36
        assert version(job) > 0
        assert job.metadata.generation == 1
        assert job.metadata.creation_timestamp.microsecond == 0

    async def test_refuses_a_name_that_is_taken(self, bench: Bench) -> None:
        await make_job(bench)
        with pytest.raises(AlreadyExists, match="resnet"):
            await make_job(bench)

    async def test_gives_a_namesake_another_uid(self, bench: Bench) -> None:
        first = await make_map(bench)
        await bench.cluster.delete(Target.of(CONFIG_MAPS, first))
        assert (await make_map(bench)).metadata.uid != first.metadata.uid

    async def test_drops_a_status(self, bench: Bench) -> None:
        manifest = make.manifest()
        manifest["metadata"]["namespace"] = bench.namespace
        job = await bench.cluster.create(PADDLE_JOBS, {**manifest, "status": {"phase": "Completed"}})
        assert job.status.phase == ""

    async def test_begins_a_pod_as_pending(self, bench: Bench) -> None:
        assert (await make_pod(bench, status={"phase": "Running"})).status.phase == "Pending"

    async def test_drops_what_the_schema_does_not_know(self, bench: Bench) -> None:
        job = await make_job(bench, pod=make.template(make.container(imag="x")))
        stored = msgspec.json.decode(job.spec.worker.template)
        assert "imag" not in stored["spec"]["containers"][0]

    async def test_keeps_labels_of_a_template(self, bench: Bench) -> None:
        job = await make_job(bench, pod=make.template(metadata={"labels": {"team": "vision"}}))
        assert msgspec.json.decode(job.spec.worker.template)["metadata"] == {"labels": {"team": "vision"}}

    async def test_adds_defaults(self, bench: Bench) -> None:
        job = await make_job(bench, worker={"template": make.template()})
        assert (await bench.stored(PADDLE_JOBS, job.metadata.name))["spec"]["worker"]["replicas"] == 1

    @pytest.mark.parametrize(
        ("spec", "field"),
        [
            ({"worker": {"replicas": "two", "template": make.template()}}, "spec.worker.replicas"),
            ({"worker": {"replicas": 0, "template": make.template()}}, "spec.worker.replicas"),
            ({"cleanPodPolicy": "Sometimes"}, "spec.cleanPodPolicy"),
            ({"worker": {"replicas": 1}}, "spec.worker.template"),
        ],
        ids=str,
    )
    async def test_refuses_what_the_schema_refuses(self, bench: Bench, spec: Manifest, field: str) -> None:
        with pytest.raises(Invalid, match=field):
            await make_job(bench, **spec)

    async def test_keeps_nobodys_hand_on_what_is_stored(self, bench: Bench) -> None:
        labels = {"a": "1"}
        await make_map(bench, labels=labels)
        labels["a"] = "2"
        assert (await get(bench, CONFIG_MAPS, "map")).metadata.labels == {"a": "1"}


class TestRead:
    async def test_of_nothing_is_not_found(self, bench: Bench) -> None:
        with pytest.raises(NotFound, match="nobody"):
            await get(bench, PODS, "nobody")

    @pytest.mark.parametrize(
        ("selector", "names"), [("", {"one", "two", "three"}), ("a", {"one", "two"}), ("a=1", {"one"})]
    )
    async def test_a_list_is_cut_by_labels(self, bench: Bench, selector: str, names: set[str]) -> None:
        for name, labels in {"one": {"a": "1"}, "two": {"a": "2"}, "three": {}}.items():
            await make_map(bench, name, labels=labels)
        listing = await bench.cluster.list(CONFIG_MAPS, Scope(bench.namespace, selector))
        assert {one.metadata.name for one in listing.items} - {"kube-root-ca.crt"} == names

    async def test_a_list_is_as_new_as_its_items(self, bench: Bench) -> None:
        made = await make_map(bench)
        listing = await bench.cluster.list(CONFIG_MAPS, Scope(bench.namespace))
        assert int(listing.resource_version) >= version(made)

    async def test_a_list_keeps_to_its_namespace(self, bench: Bench) -> None:
        await make_map(bench)
        assert (await bench.cluster.list(CONFIG_MAPS, Scope("nowhere"))).items == ()


class TestPatch:
    async def test_adds_removes_and_replaces(self, bench: Bench) -> None:
        made = await make_map(
            bench, labels={"a": "1", "b": "2"}, finalizers=["example.com/a", "example.com/b"]
        )
        body = {"metadata": {"labels": {"a": None, "c": "3"}, "finalizers": ["example.com/b"]}}
        after = await patch(bench, CONFIG_MAPS, made, body)
        assert after.metadata.labels == {"b": "2", "c": "3"}
        assert after.metadata.finalizers == ("example.com/b",)
        assert version(after) > version(made)
        await patch(bench, CONFIG_MAPS, made, {"metadata": {"finalizers": None}})

    async def test_that_changes_nothing_makes_no_new_version(self, bench: Bench) -> None:
        made = await make_map(bench, labels={"a": "1"})
        after = await patch(bench, CONFIG_MAPS, made, {"metadata": {"labels": {"a": "1"}}})
        assert version(after) == version(made)

    async def test_for_another_uid_is_invalid(self, bench: Bench) -> None:
        made = await make_map(bench)
        other = "00000000-0000-4000-8000-ffffffffffff"
        with pytest.raises(Invalid, match="immutable"):
            await patch(bench, CONFIG_MAPS, made, {"metadata": {"uid": other, "labels": {"a": "1"}}})
        right = {"metadata": {"uid": made.metadata.uid, "labels": {"a": "1"}}}
        assert (await patch(bench, CONFIG_MAPS, made, right)).metadata.labels == {"a": "1"}

    @pytest.mark.parametrize("subresource", ["", "status"])
    async def test_for_an_older_version_is_a_conflict(self, bench: Bench, subresource: str) -> None:
        made = await make_job(bench)
        await patch(bench, PADDLE_JOBS, made, {"metadata": {"labels": {"a": "1"}}})
        stale = {
            "metadata": {"resourceVersion": made.metadata.resource_version},
            "status": {"phase": "Running"},
        }
        with pytest.raises(Conflict):
            await patch(bench, PADDLE_JOBS, made, stale, subresource=subresource)

    async def test_for_another_uid_and_version_is_a_conflict(self, bench: Bench) -> None:
        """So a status write to a job that was made anew under its name says: what you saw is outdated."""
        made = await make_job(bench)
        await patch(bench, PADDLE_JOBS, made, {"metadata": {"labels": {"a": "1"}}})
        stale = made.metadata.resource_version
        identity = {"uid": "00000000-0000-4000-8000-ffffffffffff", "resourceVersion": stale}
        body = {"metadata": identity, "status": {"phase": "Running"}}
        with pytest.raises(Conflict):
            await patch(bench, PADDLE_JOBS, made, body, subresource="status")

    async def test_of_nothing_is_not_found(self, bench: Bench) -> None:
        made = await make_map(bench)
        await bench.cluster.delete(Target.of(CONFIG_MAPS, made))
        with pytest.raises(NotFound):
            await patch(bench, CONFIG_MAPS, made, {"metadata": {"labels": {"a": "1"}}})

    async def test_of_the_object_leaves_its_status(self, bench: Bench) -> None:
        made = await make_job(bench)
        after = await patch(bench, PADDLE_JOBS, made, {"status": {"phase": "Running"}})
        assert after.status.phase == ""

    async def test_of_the_status_leaves_the_object(self, bench: Bench) -> None:
        made = await make_job(bench)
        body = {"metadata": {"labels": {"a": "1"}}, "spec": {"elastic": 1}, "status": {"phase": "Running"}}
        after = await patch(bench, PADDLE_JOBS, made, body, subresource="status")
        assert (after.status.phase, after.spec.elastic, after.metadata.labels) == ("Running", None, {})

    async def test_of_a_status_replaces_lists_and_removes_fields(self, bench: Bench) -> None:
        made = await make_job(bench)
        first = {"phase": "Running", "conditions": [{"type": "Created", "status": "True"}]}
        await patch(bench, PADDLE_JOBS, made, {"status": first}, subresource="status")
        second = {"phase": None, "conditions": [{"type": "Failed", "status": "True"}]}
        after = await patch(bench, PADDLE_JOBS, made, {"status": second}, subresource="status")
        assert (after.status.phase, [one.type for one in after.status.conditions]) == ("", ["Failed"])

    async def test_of_a_status_is_checked(self, bench: Bench) -> None:
        made = await make_job(bench)
        with pytest.raises(Invalid, match=r"status\.attempt"):
            await patch(bench, PADDLE_JOBS, made, {"status": {"attempt": "first"}}, subresource="status")

    async def test_counts_a_generation_for_the_spec_alone(self, bench: Bench) -> None:
        made = await make_job(bench)
        await patch(bench, PADDLE_JOBS, made, {"metadata": {"labels": {"a": "1"}}})
        after = await patch(bench, PADDLE_JOBS, made, {"status": {"phase": "x"}}, subresource="status")
        assert after.metadata.generation == 1
        after = await patch(bench, PADDLE_JOBS, made, {"spec": {"cleanPodPolicy": "Never"}})
        assert after.metadata.generation == 2

    async def test_of_a_pods_status_is_the_kubelets(self, bench: Bench) -> None:
        made = await make_pod(bench)
        body = {"status": {"phase": "Running", "podIP": "198.18.0.9"}}
        after = await patch(bench, PODS, made, body, subresource="status")
        assert (after.status.phase, after.status.pod_ip) == ("Running", "198.18.0.9")


class TestDelete:
    async def test_for_another_uid_is_a_conflict(self, bench: Bench) -> None:
        made = await make_map(bench)
        other = Target(CONFIG_MAPS, made.metadata.key, "00000000-0000-4000-8000-ffffffffffff")
        with pytest.raises(Conflict):
            await bench.cluster.delete(other)
        assert (await get(bench, CONFIG_MAPS, "map")).metadata.uid == made.metadata.uid

    async def test_for_an_older_version_is_a_conflict(self, bench: Bench) -> None:
        made = await make_map(bench)
        after = await patch(bench, CONFIG_MAPS, made, {"metadata": {"labels": {"a": "1"}}})
        with pytest.raises(Conflict):
            await bench.cluster.delete(Target.of(CONFIG_MAPS, made), as_seen=True)
        await bench.cluster.delete(Target.of(CONFIG_MAPS, after), as_seen=True)

    async def test_of_nothing_is_not_found(self, bench: Bench) -> None:
        made = await make_map(bench)
        await bench.cluster.delete(Target.of(CONFIG_MAPS, made))
        with pytest.raises(NotFound):
            await bench.cluster.delete(Target.of(CONFIG_MAPS, made))

    async def test_of_a_pod_without_a_node_is_at_once(self, bench: Bench) -> None:
        await bench.cluster.delete(Target.of(PODS, await make_pod(bench)))
        with pytest.raises(NotFound):
            await get(bench, PODS, "pod")

    @pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
    async def test_of_a_pod_that_ended_is_at_once(self, bench: Bench, phase: str) -> None:
        made = await make_pod(bench)
        await bench.bind("pod")
        await patch(bench, PODS, made, {"status": {"phase": phase}}, subresource="status")
        await bench.cluster.delete(Target.of(PODS, made))
        with pytest.raises(NotFound):
            await get(bench, PODS, "pod")

    async def test_of_a_pod_on_a_node_waits_for_its_kubelet(self, bench: Bench) -> None:
        made = await make_pod(bench)
        await bench.bind("pod")
        for _ in range(2):
            await bench.cluster.delete(Target.of(PODS, made))
        assert (await get(bench, PODS, "pod")).metadata.terminating
        await bench.finish_deletion("pod")
        with pytest.raises(NotFound):
            await get(bench, PODS, "pod")

    async def test_waits_for_finalizers(self, bench: Bench) -> None:
        made = await make_map(bench, finalizers=["example.com/a"])
        await bench.cluster.delete(Target.of(CONFIG_MAPS, made))
        assert (await get(bench, CONFIG_MAPS, "map")).metadata.terminating
        await patch(bench, CONFIG_MAPS, made, {"metadata": {"finalizers": None}})
        with pytest.raises(NotFound):
            await get(bench, CONFIG_MAPS, "map")


class TestOwners:
    async def test_take_what_they_own_with_them(self, bench: Bench) -> None:
        owner = await make_map(bench, "owner")
        await make_map(bench, "owned", ownerReferences=[reference(owner)])
        await make_map(bench, "free")
        await bench.cluster.delete(Target.of(CONFIG_MAPS, owner))
        await bench.gone(CONFIG_MAPS, "owned")
        assert (await get(bench, CONFIG_MAPS, "free")).metadata.name == "free"

    async def test_that_are_dead_already_keep_nothing_alive(self, bench: Bench) -> None:
        owner = await make_map(bench, "owner")
        await bench.cluster.delete(Target.of(CONFIG_MAPS, owner))
        await make_map(bench, "late", ownerReferences=[reference(owner)])
        await bench.gone(CONFIG_MAPS, "late")


def reference(owner: KubeObject) -> Manifest:
    meta = owner.metadata
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": meta.name, "uid": meta.uid, "controller": True}


class TestWatch:
    async def follow(self, bench: Bench, since: str, count: int, selector: str = "") -> list[Change[Any]]:
        """The next changes of config maps, without those that a real server makes for itself."""
        changes: list[Change[Any]] = []
        scope = Scope(bench.namespace, selector)
        async with asyncio.timeout(30), aclosing(bench.cluster.watch(CONFIG_MAPS, scope, since)) as stream:
            async for change in stream:
                own = change.object is not None and change.object.metadata.name != "kube-root-ca.crt"
                if own:
                    changes.append(change)
                if len(changes) == count:
                    break
        return changes

    async def test_tells_every_change_in_order(self, bench: Bench) -> None:
        since = (await bench.cluster.list(CONFIG_MAPS, Scope(bench.namespace))).resource_version
        made = await make_map(bench)
        changed = await patch(bench, CONFIG_MAPS, made, {"metadata": {"labels": {"a": "1"}}})
        await bench.cluster.delete(Target.of(CONFIG_MAPS, made))
        changes = await self.follow(bench, since, 3)
        assert [change.verb for change in changes] == [Verb.ADDED, Verb.MODIFIED, Verb.DELETED]
        versions = [int(change.resource_version) for change in changes]
        assert versions == sorted(set(versions))
        assert versions[:2] == [version(made), version(changed)]
        assert changes[2].object is not None
        assert changes[2].object.metadata.labels == {"a": "1"}

    async def test_begins_after_the_version_that_is_named(self, bench: Bench) -> None:
        first = await make_map(bench, "first")
        await make_map(bench, "second")
        (change,) = await self.follow(bench, first.metadata.resource_version, 1)
        assert change.object is not None
        assert change.object.metadata.name == "second"

    async def test_tells_of_what_enters_and_leaves_its_labels(self, bench: Bench) -> None:
        made = await make_map(bench)
        since = made.metadata.resource_version
        for value in ("1", "2", None):
            await patch(bench, CONFIG_MAPS, made, {"metadata": {"labels": {"a": value}}})
        changes = await self.follow(bench, since, 3, selector="a")
        assert [change.verb for change in changes] == [Verb.ADDED, Verb.MODIFIED, Verb.DELETED]

    async def test_waits_for_what_comes(self, bench: Bench) -> None:
        since = (await bench.cluster.list(CONFIG_MAPS, Scope(bench.namespace))).resource_version
        following = asyncio.create_task(self.follow(bench, since, 1, selector="late"))
        await asyncio.sleep(0.05)
        await make_map(bench, labels={"late": "1"})
        assert [change.verb for change in await following] == [Verb.ADDED]

    async def test_from_too_far_back_is_gone(self, bench: Bench) -> None:
        for name in ("first", "second"):
            await make_job(bench, name)
        await bench.forget_history()
        watch = bench.cluster.watch(PADDLE_JOBS, Scope(bench.namespace), "1")
        with pytest.raises(Gone):
            await asyncio.wait_for(anext(watch), timeout=30)


class TestMemoryRefuses:
    """What is not in this list, it says."""

    async def test_selectors_that_we_do_not_use(self) -> None:
        bench = MemoryBench()
        await make_map(bench)
        with pytest.raises(NotImplementedError, match="selector"):
            await bench.cluster.list(CONFIG_MAPS, Scope("team", "a in (b, c)"))

    async def test_sub_resources_that_we_do_not_use(self) -> None:
        bench = MemoryBench()
        made = await make_pod(bench)
        with pytest.raises(NotImplementedError, match="pods/eviction"):
            await patch(bench, PODS, made, {}, subresource="eviction")


class TestLease:
    async def test_of_two_that_write_to_the_same_version_one_gets_it(self, bench: Bench) -> None:
        metadata = {"name": "lease", "namespace": bench.namespace}
        made = await bench.cluster.create(LEASES, {"metadata": metadata, "spec": {"holderIdentity": "a"}})
        seen = {"metadata": {"resourceVersion": made.metadata.resource_version}}
        taken = {"holderIdentity": "b", "renewTime": "2026-11-18T12:00:00.000001Z", "leaseDurationSeconds": 8}
        await bench.cluster.patch(Target.of(LEASES, made), {**seen, "spec": taken})
        with pytest.raises(Conflict):
            await bench.cluster.patch(Target.of(LEASES, made), {**seen, "spec": {"holderIdentity": "c"}})
        spec = (await bench.cluster.get(LEASES, made.metadata.key)).spec
        assert (spec.holder_identity, spec.lease_duration_seconds) == ("b", 8)
        assert spec.renew_time is not None
        assert spec.renew_time.microsecond == 1
