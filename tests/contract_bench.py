"""Where contracts are tried: the API server in memory, and a real one, with the parts that others play."""

from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

import msgspec
import pytest
from world import World

from paddle_operator.api.crd import paddle_job_schema
from paddle_operator.api.meta import Key, KubeObject, Manifest
from paddle_operator.api.resources import PADDLE_JOBS, PODS, AnyResource, Resource, Target
from paddle_operator.cluster import Cluster, NotFound
from paddle_operator.kube.client import path
from paddle_operator.memory.cluster import MemoryCluster

T = TypeVar("T", bound=KubeObject)


class Bench(Protocol):
    """A cluster, and the parts that others play in it."""

    namespace: str
    cluster: Cluster

    async def bind(self, name: str) -> None: ...

    async def finish_deletion(self, name: str) -> None: ...

    async def forget_history(self) -> None: ...

    async def gone(self, resource: AnyResource, name: str) -> None: ...

    async def stored(self, resource: AnyResource, name: str) -> Manifest: ...


class MemoryBench:
    namespace = "team"

    def __init__(self) -> None:
        self.memory = MemoryCluster(lambda: datetime.now(UTC), {PADDLE_JOBS: paddle_job_schema()})
        self.cluster: Cluster = self.memory

    async def bind(self, name: str) -> None:
        self.memory.bind(Key(self.namespace, name), "node-1")

    async def finish_deletion(self, name: str) -> None:
        self.memory.finish_deletion(Key(self.namespace, name))

    async def forget_history(self) -> None:
        self.memory.history.compact()

    async def gone(self, resource: AnyResource, name: str) -> None:
        self.memory.collect_garbage()
        with pytest.raises(NotFound):
            await self.cluster.get(resource, Key(self.namespace, name))

    async def stored(self, resource: AnyResource, name: str) -> Manifest:
        return self.memory._find(resource, Key(self.namespace, name))


class ServerBench:
    def __init__(self, world: World) -> None:
        self.world = world
        self.namespace = world.namespace
        self.cluster: Cluster = world.cluster

    async def bind(self, name: str) -> None:
        target = {"apiVersion": "v1", "kind": "Node", "name": "node-1"}
        binding = {"metadata": {"name": name}, "target": target}
        await self.world.post(path(PODS, self.namespace, name, "binding"), binding)

    async def finish_deletion(self, name: str) -> None:
        where = path(PODS, self.namespace, name)
        await self.world.transport.request("DELETE", where, query={"gracePeriodSeconds": "0"})

    async def forget_history(self) -> None:
        """The real one knows a kind from when its definition came, and not the first version of all."""

    async def gone(self, resource: AnyResource, name: str) -> None:
        await self.world.gone(resource, name)

    async def stored(self, resource: AnyResource, name: str) -> Manifest:
        body = await self.world.transport.request("GET", path(resource, self.namespace, name))
        document: Manifest = msgspec.json.decode(body)
        return document


async def get(bench: Bench, resource: Resource[T], name: str) -> T:
    return await bench.cluster.get(resource, Key(bench.namespace, name))


async def patch(bench: Bench, resource: AnyResource, thing: KubeObject, body: Manifest, **how: Any) -> Any:
    return await bench.cluster.patch(Target.of(resource, thing), body, **how)


def version(thing: KubeObject) -> int:
    return int(thing.metadata.resource_version)
