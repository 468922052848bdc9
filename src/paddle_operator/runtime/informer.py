"""Keeps a Store equal to what the server has, by listing once and then following the changes.

    Sync ──listed──▶ Follow ──closed by the server──▶ Follow, from the last version seen
      ▲                │ ├── Gone, or silent too long ──▶ Sync
      │                │ └── broken ──▶ Rest ──▶ Follow
      └── refused or broken ──▶ Rest ──▶ Sync

Every state says what comes next; run() only turns the wheel. A watch that was merely cut goes on from the
last version, because a full list is what costs the server most.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Generic, TypeVar

import structlog

from paddle_operator.api.meta import Key, KubeObject, Unreadable
from paddle_operator.api.resources import Resource
from paddle_operator.cluster import ApiError, Change, Cluster, Gone, NotFound, Scope, Verb

from .store import Store

T = TypeVar("T", bound=KubeObject)
log = structlog.get_logger()

# The server speaks at least once a minute on a healthy watch (bookmarks); after this it is taken for dead.
SILENCE_SECONDS = 150.0
# A watch that ends sooner than this has not worked; without a pause we would knock in a hot loop.
SHORT_WATCH_SECONDS = 1.0
FIRST_REST_SECONDS = 0.25
LONGEST_REST_SECONDS = 30.0


@dataclass(frozen=True)
class Sync:
    pass


@dataclass(frozen=True)
class Follow:
    since: str


@dataclass(frozen=True)
class Rest:
    seconds: float
    then: "Sync | Follow"


State = Sync | Follow | Rest


class Informer(Generic[T]):
    def __init__(
        self,
        cluster: Cluster,
        resource: Resource[T],
        scope: Scope,
        store: Store[T],
        *,
        on_change: Callable[[Key], None],
    ) -> None:
        self.resource = resource
        self.store = store
        self.synced = asyncio.Event()
        self._cluster = cluster
        self._scope = scope
        self._on_change = on_change
        self._failures = 0
        self._patience: asyncio.Timeout | None = None
        self._log = log.bind(kind=resource.kind)

    async def run(self) -> None:
        state: State = Sync()
        while True:
            state = await self.step(state)

    async def step(self, state: State) -> State:
        match state:
            case Sync():
                return await self._sync()
            case Follow(since):
                return await self._follow(since)
            case Rest(seconds, then):
                await asyncio.sleep(seconds)
                return then

    def list_again(self) -> None:
        """Give up on the watch at hand: it does not show what we know to have happened."""
        if self._patience is not None and self._patience.when() is not None:
            self._patience.reschedule(asyncio.get_running_loop().time())

    async def _sync(self) -> State:
        try:
            listing = await self._cluster.list(self.resource, self._scope)
        except ApiError as error:
            return self._rest(error, Sync())
        self._failures = 0
        touched = self.store.replace(listing.items, int(listing.resource_version))
        self._log.debug("listed", objects=len(listing.items), changed=len(touched))
        for found in listing.items:
            self._report_if_unreadable(found)
        self.synced.set()
        for key in touched:
            self._on_change(key)
        return Follow(listing.resource_version)

    async def _follow(self, since: str) -> State:
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            async with (
                asyncio.timeout(SILENCE_SECONDS) as self._patience,
                aclosing(self._cluster.watch(self.resource, self._scope, since)) as changes,
            ):
                async for change in changes:
                    since = change.resource_version
                    self._take_in(change)
                    self._failures = 0
                    self._patience.reschedule(clock() + SILENCE_SECONDS)
        except TimeoutError:
            self._log.info("watch is silent, listing again", seconds=round(clock() - began))
            return Sync()
        except Gone:
            return Sync()
        except ApiError as error:
            return self._rest(error, Follow(since))
        finally:
            self._patience = None
        if clock() - began < SHORT_WATCH_SECONDS:
            return self._rest(None, Follow(since))
        return Follow(since)

    def _take_in(self, change: Change[T]) -> None:
        found = change.object
        touched: set[Key] = set()
        if found is not None and change.verb is Verb.DELETED:
            touched = self.store.drop(found.metadata.key)
        elif found is not None:
            touched = self.store.put(found)
            self._report_if_unreadable(found)
        # Only now: whoever asks how far we are must find the change in the store.
        self.store.advance(change.resource_version)
        for key in touched:
            self._on_change(key)

    def _report_if_unreadable(self, found: T | Unreadable) -> None:
        if isinstance(found, Unreadable):
            self._log.error(
                "object cannot be read, passed over", key=str(found.metadata.key), error=found.error
            )

    def _rest(self, error: ApiError | None, then: Sync | Follow) -> Rest:
        seconds = min(FIRST_REST_SECONDS * 2.0 ** min(self._failures, 16), LONGEST_REST_SECONDS)
        self._failures += 1
        if isinstance(error, NotFound):
            hint = f"is the CustomResourceDefinition of {self.resource} installed?"
            self._log.warning("cannot watch, trying again", error=str(error), hint=hint, seconds=seconds)
        elif error is not None:
            self._log.warning("cannot watch, trying again", error=str(error), seconds=seconds)
        return Rest(seconds, then)
