"""How one manager process sees the cluster in memory: late, through stale reads, until it crashes.

What is never stale is a GET: the operator's are quorum reads, which a real server answers from its newest
state. (So are its lists; but a server behind a cache that restarts may answer older ones, and a manager that
survives that survives more.)
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto
from math import inf
from typing import Any, TypeVar

import msgspec
from simulated_history import TrueHistory, now
from witness import CURRENT_REQUEST, CURRENT_TURN, Knowledge, Request, Turn, Witness

from paddle_operator.api.meta import Key, KubeObject, Manifest
from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.api.resources import EVENTS, AnyResource, Resource, Target
from paddle_operator.cluster import ApiError, Change, Listing, Scope, Verb
from paddle_operator.memory.cluster import MemoryCluster
from paddle_operator.memory.history import matches
from paddle_operator.runtime.clock import SteadyClock

T = TypeVar("T", bound=KubeObject)
R = TypeVar("R")
# A healthy watch speaks at least once a minute; one that is held back says nothing at all.
BOOKMARK_SECONDS = 60.0
# So long the watch after a stale list is silent, otherwise the cache would be fresh within milliseconds.
SILENCE_AFTER_STALE_LIST_SECONDS = 5.0
A_MOMENT = 0.001


class Crash(BaseException):
    """The process is gone: not an Exception, so that no code of ours can survive it."""


class Moment(Enum):
    BEFORE = auto()
    WITHOUT_REPLY = auto()
    AFTER = auto()


@dataclass(frozen=True)
class CrashAt:
    write: int
    moment: Moment


@dataclass(frozen=True)
class LateChange:
    """The n-th change that watches of a kind show, and all behind it, wait for that many further changes."""

    resource: AnyResource
    number: int
    changes: float
    """Infinite: this watch never speaks again, and only a list helps."""


@dataclass(frozen=True)
class StaleList:
    """The n-th list of a kind is answered from that many changes ago."""

    resource: AnyResource
    number: int
    changes: float


@dataclass(frozen=True)
class RefusedWrite:
    """The n-th write is answered with an error, and changes nothing."""

    write: int
    error: ApiError


@dataclass(frozen=True)
class ClockJump:
    """Somebody sets the clock of the manager's machine, once, for good."""

    at_seconds: float
    by_seconds: float

    def shift(self) -> timedelta:
        return timedelta(seconds=self.by_seconds if _now() >= self.at_seconds else 0)


@dataclass(frozen=True)
class Faults:
    crash: CrashAt | None = None
    refused: RefusedWrite | None = None
    late: LateChange | None = None
    stale: StaleList | None = None
    clock: ClockJump | None = None
    latency: Callable[[], float] = lambda: A_MOMENT
    """Of a request, and again of its answer, in seconds."""
    watch_delay: Callable[[], float] = lambda: A_MOMENT
    lasting: bool = False
    """They do not stop, so nothing is promised of what the job costs."""


class Connection:
    """The Cluster of one manager process."""

    def __init__(self, memory: MemoryCluster, history: TrueHistory, faults: Faults, witness: Witness) -> None:
        self.crashed = False
        self.process: asyncio.Task[None] | None = None
        self._memory = memory
        self._history = history
        self._faults = faults
        self._witness = witness
        self._knows = Knowledge()
        self._silent: set[AnyResource] = set()
        self.clock = SteadyClock(self._wall, _now)
        if faults.clock is not None:
            witness.fault_strikes(f"the clock of this machine is set, at {faults.clock.at_seconds}")

    def _wall(self) -> datetime:
        return now() + (self._faults.clock.shift() if self._faults.clock is not None else timedelta())

    def turn_begins(self, job: PaddleJob) -> None:
        self._witness.turn_begins(Turn(job, self._knows.is_behind_own_writes(job.uid)))

    async def get(self, resource: Resource[T], key: Key) -> T:
        await self._arrive(self._request("get", resource, key, turn=CURRENT_TURN.get()))
        found = await self._memory.get(resource, key)
        await self._travel()
        return found

    async def list(self, resource: Resource[T], scope: Scope) -> Listing[T]:
        await self._arrive(self._request("list", resource, Key(scope.namespace, "")))
        listing = await self._listing(resource, scope)
        await self._travel()
        self._knows.shown[resource] = int(listing.resource_version)
        self._knows.alive |= {item.metadata.uid for item in listing.items}
        return listing

    async def watch(self, resource: Resource[T], scope: Scope, since: str) -> AsyncGenerator[Change[T], None]:
        await self._arrive(self._request("watch", resource, Key(scope.namespace, "")))
        if resource in self._silent:
            self._silent.remove(resource)
            await asyncio.sleep(SILENCE_AFTER_STALE_LIST_SECONDS)
        async with aclosing(_with_bookmarks(self._memory.watch(resource, scope, since), since)) as changes:
            async for change in changes:
                if change.object is not None:
                    await self._hold_back(resource)
                    self._knows.alive.add(change.object.metadata.uid)
                self._knows.shown[resource] = int(change.resource_version)
                yield change

    async def create(self, resource: Resource[T], manifest: Manifest) -> T:
        key = Key(manifest["metadata"]["namespace"], manifest["metadata"]["name"])
        request = self._request("create", resource, key, body=manifest, turn=CURRENT_TURN.get())
        made = await self._write(request, lambda: self._memory.create(resource, manifest))
        self._wrote(request, made)
        return made

    async def patch(self, target: Target, body: Manifest, *, subresource: str = "") -> KubeObject:
        request = self._request(
            "patch",
            target.resource,
            target.key,
            uid=body.get("metadata", {}).get("uid", ""),
            body=body,
            subresource=subresource,
            turn=CURRENT_TURN.get(),
        )
        result = await self._write(request, lambda: self._memory.patch(target, body, subresource=subresource))
        self._wrote(request, result)
        return result

    async def delete(self, target: Target, *, as_seen: bool = False, force: bool = False) -> None:
        turn = CURRENT_TURN.get()
        request = self._request(
            "delete", target.resource, target.key, uid=target.uid, turn=turn, body={"force": force}
        )
        await self._write(request, lambda: self._memory.delete(target, as_seen=as_seen, force=force))
        self._knows.deleted.add(target.uid)

    def _request(self, verb: str, resource: AnyResource, key: Key, **details: Any) -> Request:
        return Request(_now(), verb, resource, key, self._knows, **details)

    async def _arrive(self, request: Request) -> None:
        await self._travel()
        self._witness.request_arrives(request)

    async def _travel(self) -> None:
        await asyncio.sleep(self._faults.latency())
        if self.crashed:
            raise Crash
        # Every answer is dated, in whole seconds.
        self.clock.heed(now().replace(microsecond=0))

    async def _write(self, request: Request, apply: Callable[[], Awaitable[R]]) -> R:
        await self._arrive(request)
        number, version = len(self._witness.writes), self._history.version
        self._crash_if_due(number, Moment.BEFORE, request)
        if refuse := self._refused_if_due(number, request):
            apply = refuse
        answer = await self._applied(request, apply)
        if answer.exception() is None:
            self._witness.request_is_done(request, changed=self._history.version > version)
        self._crash_if_due(number, Moment.WITHOUT_REPLY, request)
        await self._travel()
        self._crash_if_due(number, Moment.AFTER, request)
        return answer.result()

    def _refused_if_due(self, number: int, request: Request) -> Callable[[], Awaitable[Any]] | None:
        refused = self._faults.refused
        if refused is None or refused.write != number:
            return None
        self._witness.fault_strikes(f"{type(refused.error).__name__}: {request}")
        error = refused.error

        async def refuse() -> None:
            raise error

        return refuse

    async def _applied(self, request: Request, apply: Callable[[], Awaitable[R]]) -> "asyncio.Future[R]":
        """The answer that is on its way back: a result, or the server's refusal."""
        answer: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        token = CURRENT_REQUEST.set(request)
        try:
            answer.set_result(await apply())
        except ApiError as error:
            answer.set_exception(error)
        finally:
            CURRENT_REQUEST.reset(token)
        return answer

    def _crash_if_due(self, number: int, moment: Moment, request: Request) -> None:
        if CrashAt(number, moment) != self._faults.crash:
            return
        self._witness.fault_strikes(f"crash {moment.name.lower()}: {request}")
        self.crashed = True
        assert self.process is not None
        asyncio.get_running_loop().call_soon(self.process.cancel)
        if moment is not Moment.AFTER:
            raise Crash
        # It has the answer, and a last moment to think about it.

    def _wrote(self, request: Request, result: KubeObject) -> None:
        self._knows.alive.add(result.metadata.uid)
        if request.turn is not None and request.resource != EVENTS:
            last = (request.turn.job.uid, request.resource)
            version = int(result.metadata.resource_version)
            self._knows.written[last] = max(self._knows.written[last], version)

    async def _hold_back(self, resource: AnyResource) -> None:
        await asyncio.sleep(self._faults.watch_delay())
        self._witness.told[resource] += 1
        late = self._faults.late
        if late is None or (late.resource, late.number) != (resource, self._witness.told[resource]):
            return
        self._witness.fault_strikes(
            f"{resource}: the watch is late from change {late.number} on, by {late.changes}"
        )
        if late.changes == inf:
            await asyncio.Event().wait()
        await self._history.reach(self._history.version + int(late.changes))

    async def _listing(self, resource: Resource[T], scope: Scope) -> Listing[T]:
        stale = self._faults.stale
        lists = sum((one.verb, one.resource) == ("list", resource) for one in self._witness.requests)
        if stale is None or (stale.resource, stale.number) != (resource, lists):
            return await self._memory.list(resource, scope)
        self._witness.fault_strikes(f"{resource}: list {lists} is stale, by {stale.changes}")
        self._silent.add(resource)
        version = int(max(0, self._history.version - stale.changes))
        documents = [
            document
            for (kind, _), document in self._history.as_of(version).items()
            if kind == resource and matches(document, scope)
        ]
        return Listing(tuple(_decoded(resource, one) for one in documents), str(version))


async def _with_bookmarks(
    changes: AsyncGenerator[Change[T], None], since: str
) -> AsyncGenerator[Change[T], None]:
    """Say now and then that nothing has happened, as a server does."""
    upcoming = asyncio.ensure_future(anext(changes))
    try:
        while True:
            done, _ = await asyncio.wait({upcoming}, timeout=BOOKMARK_SECONDS)
            if done:
                change = upcoming.result()
                since = change.resource_version
                upcoming = asyncio.ensure_future(anext(changes))
                yield change
            else:
                yield Change(Verb.BOOKMARK, since)
    finally:
        upcoming.cancel()
        await asyncio.wait({upcoming})
        await changes.aclose()


def _decoded(resource: Resource[T], document: Manifest) -> T:
    return msgspec.json.decode(msgspec.json.encode(document), type=resource.type)


def _now() -> float:
    return asyncio.get_running_loop().time()
