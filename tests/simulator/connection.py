"""How one manager process sees the cluster in memory: late, through stale reads, until it crashes.

What is never stale is a GET: the operator's are quorum reads, which a real server answers from its newest
state. (So are its lists; but a server behind a cache that restarts may answer older ones, and a manager that
survives that survives more.)
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from datetime import datetime, timedelta
from math import inf
from typing import Any, TypeVar

import msgspec

from paddle_operator.api.meta import Key, KubeObject, Manifest
from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.api.resources import EVENTS, AnyResource, Resource, Target
from paddle_operator.cluster import ApiError, Change, Listing, Scope, Unreachable, Verb
from paddle_operator.kube.errors import Status, error_from
from paddle_operator.memory.cluster import MemoryCluster
from paddle_operator.memory.history import matches
from paddle_operator.runtime.clock import SteadyClock
from simulator.faults import (
    Breakage,
    BrokenWatch,
    ClockJump,
    CrashAt,
    Faults,
    LateChange,
    Moment,
    RefusedFor,
    RefusedWrite,
    SecondLeader,
    StaleList,
)
from simulator.history import TrueHistory, now
from simulator.schedule import Schedule
from simulator.witness import CURRENT_REQUEST, CURRENT_TURN, Knowledge, Request, Turn, Witness

T = TypeVar("T", bound=KubeObject)
R = TypeVar("R")
# A healthy watch speaks at least once a minute; one that is held back says nothing at all.
BOOKMARK_SECONDS = 60.0
# So long the watch after a stale list is silent, otherwise the cache would be fresh within milliseconds.
SILENCE_AFTER_STALE_LIST_SECONDS = 5.0
# So long a watch that is quiet shows bookmarks only.
QUIET_SECONDS = 90.0
TOO_OLD = Status(code=410, reason="Expired", message="too old resource version")


class Crash(BaseException):
    """The process is gone: not an Exception, so that no code of ours can survive it."""


class Connection:
    """The Cluster of one manager process."""

    def __init__(
        self,
        memory: MemoryCluster,
        history: TrueHistory,
        faults: Faults,
        schedule: Schedule,
        witness: Witness,
        name: str = "manager 1",
        beside: SecondLeader | None = None,
    ) -> None:
        self.crashed = False
        self.process: asyncio.Task[None] | None = None
        self._memory = memory
        self._history = history
        self._faults = faults
        self._schedule = schedule
        self._name = name
        self._beside = beside
        """What makes it a second leader, if it is one."""
        self._witness = witness
        self._knows = Knowledge(name)
        self._silent: set[AnyResource] = set()
        self._broken: dict[AnyResource, Breakage] = {}
        self._forgotten: set[AnyResource] = set()
        """Kinds of which the server knows no version any more that we were told: only a list helps."""
        """What the next watch of a kind will find."""
        self.clock = SteadyClock(self._wall, _now)

    @property
    def _slower_by(self) -> float:
        return self._beside.slower_by_seconds if self._beside is not None else 0.0

    def _wall(self) -> datetime:
        return now() + sum((jump.shift() for jump in self._faults.of(ClockJump)), timedelta())

    def turn_begins(self, job: PaddleJob) -> None:
        """What acts on decisions has an effect from here on."""
        for jump in self._faults.of(ClockJump):
            if jump.is_due:
                self._witness.fault_lasts(jump, f"the clock of this machine is set, at {jump.at_seconds}")
        if self._beside is not None:
            self._witness.fault_lasts(self._beside, f"{self._name} leads too, {self._slower_by} s slower")
        behind = self._knows.is_behind_own_writes(job.uid)
        self._witness.turn_begins(Turn(job, behind, _now(), dict(self._knows.shown)))

    def turn_decides_on(self, job: PaddleJob) -> None:
        """It may have asked for the job meanwhile."""
        self._witness.turn_decides_on(job)

    async def get(self, resource: Resource[T], key: Key) -> T:
        await self._arrive(self._request("get", resource, key, turn=CURRENT_TURN.get()))
        found = await self._memory.get(resource, key)
        await self._travel("hears")
        return found

    async def list(self, resource: Resource[T], scope: Scope) -> Listing[T]:
        await self._arrive(self._request("list", resource, Key(scope.namespace, "")))
        listing = await self._listing(resource, scope)
        await self._travel("hears")
        self._knows.shown[resource] = int(listing.resource_version)
        for item in listing.items:
            self._knows.alive.setdefault(item.metadata.uid, _now())
        return listing

    async def watch(self, resource: Resource[T], scope: Scope, since: str) -> AsyncGenerator[Change[T], None]:
        await self._arrive(self._request("watch", resource, Key(scope.namespace, "")))
        if resource in self._silent:
            self._silent.remove(resource)
            await asyncio.sleep(SILENCE_AFTER_STALE_LIST_SECONDS)
        since = self._taken_up_from(resource, since)
        async with aclosing(_with_bookmarks(self._memory, resource, scope, since)) as changes:
            async for change in changes:
                if change.object is not None:
                    async for quiet in self._before_a_change(resource, since):
                        yield quiet
                    if self._broken.get(resource) is Breakage.ENDED:
                        del self._broken[resource]
                        return
                    self._shown(change.verb, change.object.metadata.uid)
                since = change.resource_version
                self._knows.shown[resource] = int(since)
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
        await self._travel("asks")
        self._witness.request_arrives(request)

    async def _travel(self, does: str) -> None:
        await self._pause(does)
        if self.crashed:
            raise Crash
        # Every answer is dated, in whole seconds.
        self.clock.heed(now().replace(microsecond=0))

    async def _pause(self, does: str) -> None:
        await self._schedule.pause(f"{self._name} {does}")
        if self._slower_by:
            await asyncio.sleep(self._slower_by)

    async def _write(self, request: Request, apply: Callable[[], Awaitable[R]]) -> R:
        await self._arrive(request)
        number, version = len(self._witness.writes), self._history.version
        self._crash_if_due(number, Moment.BEFORE, request)
        answer = await self._applied(request, self._disturbed(number, request, apply))
        error = answer.exception()
        if isinstance(error, ApiError):
            self._witness.request_is_refused(request, error)
        else:
            self._witness.request_is_done(request, changed=self._history.version > version)
        self._crash_if_due(number, Moment.WITHOUT_REPLY, request)
        await self._travel("hears")
        self._crash_if_due(number, Moment.AFTER, request)
        return answer.result()

    def _disturbed(
        self, number: int, request: Request, apply: Callable[[], Awaitable[R]]
    ) -> Callable[[], Awaitable[R]]:
        """The write as it is carried out, unless it is one that shall fail."""
        once = next((one for one in self._faults.of(RefusedWrite) if one.write == number), None)
        planned = once or self._refused_for_now(request)
        if planned is None:
            return apply
        error, has_effect = planned.error, once is not None and once.has_effect
        done = "done, but the answer is lost, " if has_effect else ""
        self._witness.fault_strikes(planned, f"{done}{type(error).__name__}: {request}")

        async def refuse() -> R:
            if has_effect:
                await apply()
            # It may be raised in many lives, which shall not hang on it.
            raise error.with_traceback(None)

        return refuse

    def _refused_for_now(self, request: Request) -> RefusedFor | None:
        asked = (request.verb, request.resource)
        refused = [one for one in self._faults.of(RefusedFor) if (one.verb, one.resource) == asked]
        return next((one for one in refused if _now() < one.until_seconds), None)

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
        planned = CrashAt(number, moment)
        if planned not in self._faults.all:
            return
        self._witness.fault_strikes(planned, f"crash {moment.name.lower()}: {request}")
        self.crashed = True
        assert self.process is not None
        asyncio.get_running_loop().call_soon(self.process.cancel)
        if moment is not Moment.AFTER:
            raise Crash
        # It has the answer, and a last moment to think about it.

    def _wrote(self, request: Request, result: KubeObject) -> None:
        self._knows.alive.setdefault(result.metadata.uid, _now())
        if request.turn is not None and request.resource != EVENTS:
            last = (request.turn.job.uid, request.resource)
            version = int(result.metadata.resource_version)
            self._knows.written[last] = max(self._knows.written[last], version)

    async def _before_a_change(self, resource: AnyResource, since: str) -> AsyncGenerator[Change[Any], None]:
        """It is on its way; whether and when it comes is another matter."""
        await self._pause(f"watches {resource.plural}")
        self._witness.watch_shows(resource)
        here = (resource, self._witness.told[resource])
        for late in self._faults.of(LateChange):
            if (late.resource, late.number) == here:
                await self._hold_back(late)
        for broken in self._faults.of(BrokenWatch):
            if (broken.resource, broken.number) != here:
                continue
            self._witness.fault_strikes(
                broken, f"{resource}: {broken.how.name.lower()} before change {here[1]}"
            )
            if broken.how is Breakage.QUIET:
                for _ in range(int(QUIET_SECONDS / BOOKMARK_SECONDS)):
                    await asyncio.sleep(BOOKMARK_SECONDS)
                    yield Change(Verb.BOOKMARK, since)
                await asyncio.sleep(QUIET_SECONDS % BOOKMARK_SECONDS)
            else:
                self._break(resource, broken.how)

    def _shown(self, verb: Verb, uid: str) -> None:
        if verb is Verb.DELETED:
            # Or out of sight, because somebody took its labels off.
            self._knows.alive.pop(uid, None)
        else:
            self._knows.alive.setdefault(uid, _now())

    async def _hold_back(self, late: LateChange) -> None:
        told = f"{late.resource}: the watch is late from change {late.number} on, by {late.changes}"
        self._witness.fault_strikes(late, told)
        if late.changes == inf:
            await asyncio.Event().wait()
        await self._history.reach(self._history.version + int(late.changes))

    def _break(self, resource: AnyResource, how: Breakage) -> None:
        if how in {Breakage.ERROR, Breakage.FORGOTTEN}:
            self._forgotten.add(resource)
        if how is Breakage.ERROR:
            raise error_from(TOO_OLD)
        self._broken[resource] = how
        if how is not Breakage.ENDED:
            raise Unreachable("the connection was closed")

    def _taken_up_from(self, resource: AnyResource, since: str) -> str:
        if resource in self._forgotten:
            raise error_from(TOO_OLD)
        if self._broken.pop(resource, None) is Breakage.AGAIN:
            told = [one.version for one in self._history.entries if one.resource == resource]
            return str(max((version for version in told if version <= int(since)), default=1) - 1)
        return since

    async def _listing(self, resource: Resource[T], scope: Scope) -> Listing[T]:
        self._forgotten.discard(resource)
        asked = [one for one in self._witness.requests if (one.verb, one.resource) == ("list", resource)]
        processes = [id(one.process) for one in asked]
        is_first, here = processes.count(id(self._knows)) == 1, (resource, len({*processes}))
        planned = [one for one in self._faults.of(StaleList) if (one.resource, one.process) == here]
        stale = planned[0] if planned and is_first else None
        if stale is None:
            return await self._memory.list(resource, scope)
        self._witness.fault_strikes(stale, f"{resource}: the first list is stale, by {stale.changes}")
        self._silent.add(resource)
        version = int(max(0, self._history.version - stale.changes))
        documents = [
            document
            for (kind, _), document in self._history.as_of(version).items()
            if kind == resource and matches(document, scope)
        ]
        return Listing(tuple(_decoded(resource, one) for one in documents), str(version))


async def _with_bookmarks(
    memory: MemoryCluster, resource: Resource[T], scope: Scope, since: str
) -> AsyncGenerator[Change[T], None]:
    """Say now and then that nothing has happened, as a server does; then go on from there."""
    while True:
        async with aclosing(memory.watch(resource, scope, since)) as changes:
            with suppress(TimeoutError):
                while True:
                    async with asyncio.timeout(BOOKMARK_SECONDS):
                        change = await anext(changes)
                    since = change.resource_version
                    yield change
        yield Change(Verb.BOOKMARK, since)


def _decoded(resource: Resource[T], document: Manifest) -> T:
    return msgspec.json.decode(msgspec.json.encode(document), type=resource.type)


def _now() -> float:
    return asyncio.get_running_loop().time()
