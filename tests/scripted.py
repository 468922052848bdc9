"""A cluster that answers what the test says and remembers what it was asked. For the tests of the runtime."""

import asyncio
import itertools
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, cast

import msgspec

from paddle_operator.api.core import ConfigMap, Pod
from paddle_operator.api.meta import Key, KubeObject, Manifest, ObjectMeta, OwnerReference, Unreadable
from paddle_operator.api.resources import AnyResource, Resource, Target
from paddle_operator.cluster import Change, Listing, NotFound, Scope, Verb

T = TypeVar("T", bound=KubeObject)
NAMESPACE = "team"
DAY_ZERO = datetime(2026, 11, 18, tzinfo=UTC)
FOR_EVER = 1e9
"""Of a watch's script: nothing more comes, and the server does not hang up."""

WatchStep = Change[Any] | Exception | float


def key(name: str) -> Key:
    return Key(NAMESPACE, name)


def metadata(name: str, version: int, uid: str = "", owner: str = "", **fields: Any) -> ObjectMeta:
    owners = (OwnerReference(name=owner, uid=f"uid-{owner}", controller=True),) if owner else ()
    return ObjectMeta(
        name=name,
        namespace=NAMESPACE,
        uid=uid or f"uid-{name}",
        resource_version=str(version),
        owner_references=owners,
        **fields,
    )


def config_map(name: str, version: int = 1, uid: str = "", **fields: Any) -> ConfigMap:
    return ConfigMap(metadata=metadata(name, version, uid, **fields))


def pod(name: str, version: int = 1, uid: str = "", owner: str = "", **fields: Any) -> Pod:
    return Pod(metadata=metadata(name, version, uid, owner, **fields))


def unreadable(name: str, version: int = 1, uid: str = "") -> Unreadable:
    return Unreadable(metadata=metadata(name, version, uid), error="Expected `int`, got `str`")


def itself(thing: KubeObject) -> Key:
    return thing.metadata.key


def its_owner(thing: KubeObject) -> Key | None:
    owner = thing.metadata.controller
    return Key(thing.metadata.namespace, owner.name) if owner is not None else None


def added(thing: KubeObject) -> Change[Any]:
    return Change(Verb.ADDED, thing.metadata.resource_version, thing)


def modified(thing: KubeObject) -> Change[Any]:
    return Change(Verb.MODIFIED, thing.metadata.resource_version, thing)


def deleted(thing: KubeObject) -> Change[Any]:
    return Change(Verb.DELETED, thing.metadata.resource_version, thing)


def bookmark(version: int) -> Change[Any]:
    return Change(Verb.BOOKMARK, str(version))


def listing(version: int, *things: KubeObject) -> Listing[Any]:
    return Listing(things, str(version))


def loop_time() -> float:
    return asyncio.get_running_loop().time()


def wall_clock() -> datetime:
    """The calendar that goes with the virtual time of the loop."""
    return DAY_ZERO + timedelta(seconds=loop_time())


@asynccontextmanager
async def running(*works: Coroutine[Any, Any, Any]) -> AsyncIterator[list[asyncio.Task[Any]]]:
    """Runs in the background for the length of the block; a failure in it fails the test."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
    failures = [end for end in ends if isinstance(end, Exception)]
    assert not failures, failures


@dataclass(frozen=True)
class Call:
    verb: str
    kind: str
    name: str = ""
    body: Manifest = field(default_factory=dict)
    target: Target | None = None
    force: bool = False
    at: float = 0.0


@dataclass
class Script:
    """What one kind answers to list and watch; the last list is given again and again."""

    lists: list[Listing[Any] | Exception] = field(default_factory=lambda: [listing(1)])
    watches: list[list[WatchStep]] = field(default_factory=list)


class ScriptedCluster:
    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.scripts: dict[str, Script] = defaultdict(Script)
        self.existing: dict[Key, KubeObject] = {}
        self.latency_seconds = 0.0
        self.most_in_flight = 0
        self.versions = itertools.count(1001)
        self._in_flight = 0
        self._errors: dict[tuple[str, str], list[Exception]] = defaultdict(list)

    def fail(self, verb: str, name: str, *errors: Exception) -> None:
        """The next calls of this verb for this name fail so, one after the other; then they succeed."""
        self._errors[verb, name].extend(errors)

    def asked(self, *verbs: str) -> list[Call]:
        return [call for call in self.calls if call.verb in verbs]

    def names(self, *verbs: str) -> list[str]:
        return [call.name for call in self.asked(*verbs)]

    async def get(self, resource: Resource[T], key: Key) -> T:
        await self._serve(Call("get", resource.plural, key.name, at=loop_time()))
        if key not in self.existing:
            raise NotFound(str(key))
        return cast("T", self.existing[key])

    async def list(self, resource: Resource[T], scope: Scope) -> Listing[T]:  # noqa: ARG002
        self.calls.append(Call("list", resource.plural, at=loop_time()))
        answers = self.scripts[resource.plural].lists
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def watch(
        self,
        resource: Resource[T],
        scope: Scope,  # noqa: ARG002
        since: str,
    ) -> AsyncGenerator[Change[T], None]:
        self.calls.append(Call("watch", resource.plural, since, at=loop_time()))
        watches = self.scripts[resource.plural].watches
        for step in watches.pop(0) if watches else [FOR_EVER]:
            if isinstance(step, Exception):
                raise step
            if isinstance(step, Change):
                yield step
            else:
                await asyncio.sleep(step)

    async def create(self, resource: Resource[T], manifest: Manifest) -> T:
        name = manifest["metadata"]["name"]
        await self._serve(Call("create", resource.plural, name, manifest, at=loop_time()))
        version = {"uid": f"uid-{name}", "resourceVersion": str(next(self.versions))}
        return msgspec.convert(
            {**manifest, "metadata": {**manifest["metadata"], **version}}, type=resource.type
        )

    async def patch(self, target: Target, body: Manifest, *, subresource: str = "") -> KubeObject:
        verb = f"patch {subresource}".strip()
        await self._serve(
            Call(verb, target.resource.plural, target.key.name, body, target, at=loop_time()),
        )
        return KubeObject(metadata=metadata(target.key.name, next(self.versions)))

    async def delete(
        self,
        target: Target,
        *,
        as_seen: bool = False,  # noqa: ARG002
        force: bool = False,
    ) -> None:
        await self._serve(
            Call("delete", target.resource.plural, target.key.name, {}, target, force, at=loop_time()),
        )

    async def _serve(self, call: Call) -> None:
        self.calls.append(call)
        self._in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self._in_flight)
        try:
            await asyncio.sleep(self.latency_seconds)
        finally:
            self._in_flight -= 1
        if errors := self._errors[call.verb, call.name]:
            raise errors.pop(0)


def target(resource: AnyResource, thing: KubeObject) -> Target:
    return Target.of(resource, thing)
