"""The one shape that every controller has: key, gate, gather, decide, execute; then again when it is time.

This is the only place that logs a failed turn, counts it and decides when its key comes again. An exception
in one key's turn is that key's affair: it is logged and tried again later, and delays no other key.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Generic, TypeVar

import structlog

from paddle_operator.api.meta import Key, KubeObject, Unreadable
from paddle_operator.api.names import UNREADABLE
from paddle_operator.api.resources import Target
from paddle_operator.cluster import ApiError
from paddle_operator.plan import Emit, Plan, Refusal

from .events import EventRecorder
from .executor import Executor, Outcome
from .gate import CacheGate
from .informer import Informer
from .queue import KeyQueue

P = TypeVar("P", bound=KubeObject)
O = TypeVar("O")  # noqa: E741 (O for Observed)
log = structlog.get_logger()

WORKERS = 8
"""Turns at the same time. With more, a busy manager would look at a job sooner, when less has happened."""
GATE_LOOK_SECONDS = 1.0
# So long may our own write take to come back; then the watch is taken for broken.
GATE_PATIENCE_SECONDS = 10.0
# A server that fails may be well again at the next try; after so many its user must hear of it.
FAILURES_BEFORE_SAID = 3


@dataclass(frozen=True)
class Recollection:
    """What one turn leaves for the next about the same object. In memory only: to lose it costs only time."""

    refusals: tuple[Refusal, ...] = ()
    failures: int = 0
    failing: frozenset[str] = frozenset()
    """Kinds of actions that failed, and of which none has been carried out since."""
    status_written_at: datetime | None = None
    gate_shut_since: float | None = None


@dataclass(frozen=True)
class Loop(Generic[P, O]):
    """What makes a controller: its own kind, how to see one object whole, and how to decide about it."""

    primary: Informer[P]
    others: Sequence[Informer[KubeObject]]
    gather: Callable[[P, Recollection], Awaitable[O]]
    decide: Callable[[O], Plan]


class Turn(StrEnum):
    """How a turn ended."""

    COMPLETE = "complete"
    WAITED = "waited"
    """For the cache to show what was written before."""
    REFUSED = "refused"
    OUTDATED = "outdated"
    FAILED = "failed"


class Controller(Generic[P, O]):
    """``on_turn`` is told of each turn how many seconds it took, and how it ended."""

    def __init__(
        self,
        loop: Loop[P, O],
        *,
        queue: KeyQueue,
        gate: CacheGate,
        executor: Executor,
        recorder: EventRecorder,
        now: Callable[[], datetime],
        workers: int = WORKERS,
        on_turn: Callable[[float, Turn], None] = lambda _seconds, _ended: None,
    ) -> None:
        self._loop = loop
        self._informers: tuple[Informer[KubeObject], ...] = (loop.primary, *loop.others)  # type: ignore[arg-type]
        self._queue = queue
        self._gate = gate
        self._executor = executor
        self._now = now
        self._recorder = recorder
        self._workers = workers
        self._on_turn = on_turn
        self._known: dict[Key, str] = {}
        self._memory: dict[str, Recollection] = {}
        self._told: dict[str, str] = {}

    async def run(self) -> None:
        """Until cancelled: follow the cluster, and work on keys once every cache is filled."""
        async with asyncio.TaskGroup() as tasks:
            for informer in self._informers:
                tasks.create_task(informer.run())
            for informer in self._informers:
                await informer.synced.wait()
            primary = self._loop.primary
            followed = primary.scope.namespace or "all"
            log.info("ready", namespace=followed, **{primary.resource.plural: len(primary.store)})
            for _ in range(self._workers):
                tasks.create_task(self._work())

    async def _work(self) -> None:
        while True:
            key = await self._queue.take()
            clock = asyncio.get_running_loop().time
            begun, ended = clock(), Turn.FAILED
            with structlog.contextvars.bound_contextvars(key=str(key)):
                try:
                    ended = await self.turn(key)
                except ApiError as error:
                    log.warning("cannot look", error=str(error), again_seconds=self._queue.retry(key))
                except Exception:
                    log.exception("turn failed", again_seconds=self._queue.retry(key))
                finally:
                    self._queue.done(key)
            self._on_turn(clock() - begun, ended)

    async def turn(self, key: Key) -> Turn:
        thing = self._loop.primary.store.get(key)
        unreadable = self._loop.primary.store.unreadable(key)
        found = thing or unreadable
        uid = found.metadata.uid if found is not None else ""
        self._forget_others(key, uid)
        if thing is None:
            if unreadable is not None:
                await self._tell_unreadable(unreadable)
            self._queue.forget(key)
            return Turn.COMPLETE
        memory = self._memory.get(uid, Recollection())
        if self._is_gate_shut(key, uid, memory):
            return Turn.WAITED
        plan = self._loop.decide(await self._loop.gather(thing, memory))
        outcome = await self._executor.execute(plan, uid)
        failures = 0 if outcome.error is None else memory.failures + 1
        troubles = outcome.troubles if failures >= FAILURES_BEFORE_SAID else ()
        self._memory[uid] = Recollection(
            refusals=outcome.refusals or troubles,
            failures=failures,
            failing=(memory.failing - outcome.done) | outcome.failing,
            status_written_at=self._now() if outcome.wrote_status else memory.status_written_at,
        )
        self._schedule(key, uid, plan, outcome)
        return _ended(outcome)

    async def _tell_unreadable(self, found: Unreadable) -> None:
        """Once a version. Its owner looks at the object, not at our log."""
        uid, version = found.metadata.uid, found.metadata.resource_version
        if self._told.get(uid) == version:
            return
        self._told[uid] = version
        about = Target.of(self._loop.primary.resource, found)
        message = f"the operator cannot read this object and does nothing about it: {found.error}"
        await self._recorder.post(Emit(about, warning=True, reason=UNREADABLE, message=message))

    def _schedule(self, key: Key, uid: str, plan: Plan, outcome: Outcome) -> None:
        if outcome.complete:
            if not self._memory[uid].failing:
                # A turn that did not ask for what had failed says nothing of it: the back-off goes on.
                self._queue.succeeded(key)
            if self._gate.behind(uid):
                # What we wrote comes back and brings a turn with it, unless the watch is broken.
                self._queue.add(key, GATE_LOOK_SECONDS)
            self._wake(key, plan.wake_at)
        elif not outcome.outdated:
            problem = outcome.error or outcome.refusals[0].message
            log.warning(
                "plan stopped",
                step=outcome.failed_step,
                problem=str(problem),
                again_seconds=self._queue.retry(key),
            )
            self._wake(key, plan.deadline_at)
        else:
            # The newer version is on its way and brings a turn with it; this is only in case it is not.
            self._queue.add(key, GATE_LOOK_SECONDS)

    def _wake(self, key: Key, at: datetime | None) -> None:
        if at is not None:
            self._queue.add(key, max(0.0, (at - self._now()).total_seconds()))

    def _is_gate_shut(self, key: Key, uid: str, memory: Recollection) -> bool:
        behind = self._gate.behind(uid)
        if not behind:
            return False
        clock = asyncio.get_running_loop().time()
        since = memory.gate_shut_since if memory.gate_shut_since is not None else clock
        if clock - since > GATE_PATIENCE_SECONDS:
            since = clock
            for informer in self._informers:
                if informer.resource in behind:
                    log.warning(
                        "watch does not show all that was written, listing again", kind=informer.resource.kind
                    )
                    informer.list_again()
        self._memory[uid] = replace(memory, gate_shut_since=since)
        self._queue.add(key, GATE_LOOK_SECONDS)
        return True

    def _forget_others(self, key: Key, uid: str) -> None:
        """The object is gone, or another has come under its name: nothing is carried over."""
        old = self._known.get(key, "")
        if old and old != uid:
            self._memory.pop(old, None)
            self._told.pop(old, None)
            self._gate.forget(old)
            self._recorder.forget(old)
            self._queue.succeeded(key)
            log.info("gone")
        if uid:
            self._known[key] = uid
        else:
            self._known.pop(key, None)


def _ended(outcome: Outcome) -> Turn:
    if outcome.complete:
        return Turn.COMPLETE
    if outcome.outdated:
        return Turn.OUTDATED
    return Turn.REFUSED if outcome.refusals else Turn.FAILED
