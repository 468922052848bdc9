"""What we rely on when things go: how long a pod may take, what force does, and what goes with a job."""

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any

import make
import pytest
from contract_bench import Bench, MemoryBench, get, patch

from paddle_operator.api.core import Pod
from paddle_operator.api.meta import Manifest
from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS, SERVICES, AnyResource, Target
from paddle_operator.cluster import Conflict, NotFound, Scope, Verb
from paddle_operator.paddlejob.labels import owner_reference
from paddle_operator.paddlejob.services import build_service

OTHER_UID = "00000000-0000-4000-8000-ffffffffffff"
# Kubernetes writes whole seconds, and the request takes its time.
SLACK = timedelta(seconds=3)


async def make_pod(bench: Bench, grace: int = 30, **metadata: Any) -> Pod:
    spec = {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": grace}
    named = {"name": "pod", "namespace": bench.namespace, **metadata}
    return await bench.cluster.create(PODS, {"metadata": named, "spec": spec})


async def running_pod(bench: Bench, grace: int = 30, **metadata: Any) -> Pod:
    made = await make_pod(bench, grace, **metadata)
    await bench.bind("pod")
    changed: Pod = await patch(bench, PODS, made, {"status": {"phase": "Running"}}, subresource="status")
    return changed


async def make_job(bench: Bench) -> PaddleJob:
    manifest = make.manifest()
    manifest["metadata"]["namespace"] = bench.namespace
    return await bench.cluster.create(PADDLE_JOBS, manifest)


async def is_there(bench: Bench, resource: AnyResource, name: str) -> bool:
    try:
        await get(bench, resource, name)
    except NotFound:
        return False
    return True


class TestAPodOnANode:
    @pytest.mark.parametrize("grace", [5, 30, 600])
    async def test_should_be_gone_when_its_grace_period_is_over(self, bench: Bench, grace: int) -> None:
        """The time that is written is not that of the delete: it is when the pod should be gone."""
        made = await running_pod(bench, grace)
        asked = datetime.now(UTC)
        await bench.cluster.delete(Target.of(PODS, made))
        due = (await get(bench, PODS, "pod")).metadata.deletion_timestamp
        assert due is not None
        assert abs(due - asked - timedelta(seconds=grace)) < SLACK

    async def test_gets_no_more_time_by_a_second_delete(self, bench: Bench) -> None:
        made = await running_pod(bench)
        await bench.cluster.delete(Target.of(PODS, made))
        first = (await get(bench, PODS, "pod")).metadata
        await asyncio.sleep(1.1)  # times are whole seconds
        await bench.cluster.delete(Target.of(PODS, made))
        second = (await get(bench, PODS, "pod")).metadata
        assert (second.deletion_timestamp, second.resource_version) == (
            first.deletion_timestamp,
            first.resource_version,
        )

    async def test_that_wants_no_time_goes_at_once(self, bench: Bench) -> None:
        await bench.cluster.delete(Target.of(PODS, await running_pod(bench, grace=0)))
        assert not await is_there(bench, PODS, "pod")

    async def test_that_has_ended_meanwhile_waits_for_its_kubelet_all_the_same(self, bench: Bench) -> None:
        """Also when it is deleted again, although one that had ended before would go at once."""
        made = await running_pod(bench)
        await bench.cluster.delete(Target.of(PODS, made))
        await patch(bench, PODS, made, {"status": {"phase": "Failed"}}, subresource="status")
        await bench.cluster.delete(Target.of(PODS, made))
        assert (await get(bench, PODS, "pod")).metadata.terminating
        await bench.finish_deletion("pod")
        assert not await is_there(bench, PODS, "pod")


class TestByForce:
    @pytest.mark.parametrize("before", ["running", "being deleted", "without a node"])
    async def test_a_pod_goes_at_once(self, bench: Bench, before: str) -> None:
        made = await make_pod(bench) if before == "without a node" else await running_pod(bench)
        if before == "being deleted":
            await bench.cluster.delete(Target.of(PODS, made))
            assert (await get(bench, PODS, "pod")).metadata.terminating
        await bench.cluster.delete(Target.of(PODS, made), force=True)
        assert not await is_there(bench, PODS, "pod")

    async def test_a_pod_is_told_to_be_deleted(self, bench: Bench) -> None:
        made = await running_pod(bench)
        await bench.cluster.delete(Target.of(PODS, made))
        since = (await bench.cluster.list(PODS, Scope(bench.namespace))).resource_version
        await bench.cluster.delete(Target.of(PODS, made), force=True)
        watch = bench.cluster.watch(PODS, Scope(bench.namespace), since)
        async with asyncio.timeout(30), aclosing(watch) as changes:
            async for change in changes:
                if change.verb is Verb.DELETED:
                    assert change.object is not None
                    assert change.object.metadata.uid == made.metadata.uid
                    break

    async def test_a_namesake_is_spared(self, bench: Bench) -> None:
        made = await running_pod(bench)
        with pytest.raises(Conflict):
            await bench.cluster.delete(Target(PODS, made.metadata.key, OTHER_UID), force=True)
        assert not (await get(bench, PODS, "pod")).metadata.terminating

    async def test_a_pod_that_is_gone_is_not_found(self, bench: Bench) -> None:
        made = await running_pod(bench)
        await bench.cluster.delete(Target.of(PODS, made), force=True)
        with pytest.raises(NotFound):
            await bench.cluster.delete(Target.of(PODS, made), force=True)

    async def test_a_pod_that_somebody_holds_waits_for_him_and_for_nobody_else(self, bench: Bench) -> None:
        made = await running_pod(bench, finalizers=["example.com/a"])
        await bench.cluster.delete(Target.of(PODS, made))
        await bench.cluster.delete(Target.of(PODS, made), force=True)
        due = (await get(bench, PODS, "pod")).metadata.deletion_timestamp
        assert due is not None
        assert due - datetime.now(UTC) < SLACK
        await patch(bench, PODS, made, {"metadata": {"finalizers": None}})
        assert not await is_there(bench, PODS, "pod")


async def test_a_config_map_goes_at_once_and_its_name_is_free(bench: Bench) -> None:
    """The next try's has the same name."""
    manifest = {"metadata": {"name": "resnet", "namespace": bench.namespace}, "data": {"TRY": "0"}}
    old = await bench.cluster.create(CONFIG_MAPS, manifest)
    await bench.cluster.delete(Target.of(CONFIG_MAPS, old))
    new = await bench.cluster.create(CONFIG_MAPS, {**manifest, "data": {"TRY": "1"}})
    assert new.metadata.uid != old.metadata.uid
    # And a delete that was meant for the old one, and comes late, does not hit it.
    with pytest.raises(Conflict):
        await bench.cluster.delete(Target.of(CONFIG_MAPS, old))
    assert (await bench.stored(CONFIG_MAPS, "resnet"))["data"] == {"TRY": "1"}


class TestAJob:
    @pytest.mark.parametrize(
        ("body", "how"),
        [
            ({"spec": {"runPolicy": {"ttlSecondsAfterFinished": 3600}}}, {}),
            ({"metadata": {"labels": {"keep": "me"}}}, {}),
            ({"status": {"phase": "Completed"}}, {"subresource": "status"}),
        ],
        ids=["its policy", "its labels", "its status"],
    )
    async def test_that_has_changed_is_not_deleted_as_it_was_seen(
        self, bench: Bench, body: Manifest, how: dict[str, str]
    ) -> None:
        """Its user may just have given it more time."""
        seen = await make_job(bench)
        now = await patch(bench, PADDLE_JOBS, seen, body, **how)
        with pytest.raises(Conflict):
            await bench.cluster.delete(Target.of(PADDLE_JOBS, seen), as_seen=True)
        assert await is_there(bench, PADDLE_JOBS, "resnet")
        await bench.cluster.delete(Target.of(PADDLE_JOBS, now), as_seen=True)
        assert not await is_there(bench, PADDLE_JOBS, "resnet")

    async def test_takes_its_children_with_it(self, bench: Bench) -> None:
        job = await make_job(bench)
        owned = {"name": "resnet", "namespace": bench.namespace, "ownerReferences": [owner_reference(job)]}
        await bench.cluster.create(CONFIG_MAPS, {"metadata": owned, "data": {}})
        service = build_service(make.paddlejob(), "resnet")
        await bench.cluster.create(SERVICES, {**service, "metadata": owned})
        await make_pod(bench, ownerReferences=[owner_reference(job)])
        await bench.cluster.delete(Target.of(PADDLE_JOBS, job), as_seen=True)
        for resource, name in ((PODS, "pod"), (SERVICES, "resnet"), (CONFIG_MAPS, "resnet")):
            await bench.gone(resource, name)

    async def test_is_written_for_a_new_try_only_by_who_knows_the_last_one(self, bench: Bench) -> None:
        """Two operators that both see a failure count it once."""
        seen = await make_job(bench)
        identity = {"uid": seen.uid, "resourceVersion": seen.metadata.resource_version}
        body = {"metadata": identity, "status": {"attempt": 1, "failures": 1}}
        await patch(bench, PADDLE_JOBS, seen, body, subresource="status")
        with pytest.raises(Conflict):
            await patch(bench, PADDLE_JOBS, seen, body, subresource="status")
        assert (await get(bench, PADDLE_JOBS, "resnet")).status.failures == 1

    async def test_forgets_the_counts_of_a_role_that_is_set_to_nothing(self, bench: Bench) -> None:
        job = await make_job(bench)
        full = {"worker": {"failed": 2, "succeededRanks": "0"}, "restarts": 1}
        await patch(bench, PADDLE_JOBS, job, {"status": full}, subresource="status")
        after = await patch(bench, PADDLE_JOBS, job, {"status": {"worker": None}}, subresource="status")
        assert (after.status.worker, after.status.restarts) == (None, 1)

    async def test_has_a_new_generation_when_it_is_suspended(self, bench: Bench) -> None:
        job = await make_job(bench)
        after = await patch(bench, PADDLE_JOBS, job, {"spec": {"runPolicy": {"suspend": True}}})
        assert (after.metadata.generation, after.run_policy.suspend) == (2, True)
        after = await patch(bench, PADDLE_JOBS, job, {"spec": {"runPolicy": None}})
        assert (after.metadata.generation, after.run_policy.suspend) == (3, False)


class TestMemoryRefuses:
    """What is not in this list, it says."""

    async def test_force_for_what_has_no_kubelet(self) -> None:
        bench = MemoryBench()
        job = await make_job(bench)
        with pytest.raises(NotImplementedError, match="by force"):
            await bench.cluster.delete(Target.of(PADDLE_JOBS, job), force=True)

    async def test_to_scale_a_job(self) -> None:
        bench = MemoryBench()
        job = await make_job(bench)
        with pytest.raises(NotImplementedError, match="paddlejobs/scale"):
            await patch(bench, PADDLE_JOBS, job, {"spec": {"replicas": 3}}, subresource="scale")
