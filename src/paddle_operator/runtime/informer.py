"""Keeps a Store equal to what the server has, by listing once and then following the changes.

    Sync ──listed──▶ Follow ──closed by the server──▶ Follow, from the last version seen
      ▲                │ ├── Gone, or silent too long ──▶ Sync
      │                │ ├── broken ──▶ Rest ──▶ Follow
      │                │ └── any end of a watch that has not worked ──▶ Rest ──▶ Sync or Follow
      └── refused or broken ──▶ Rest ──▶ Sync

Every state says what comes next; run() only turns the wheel. A watch that was merely cut goes on from the
last version, because a full list is what costs the server most. Rests grow until a watch works again: a list
that succeeds is no reason to hurry when the watch after it is always refused.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Generic, TypeVar

import structlog

from paddle_operator.api.meta import Key, KubeObject, Unreadable
from paddle_operator.api.resources import Resource
from paddle_operator.cluster import (
    ApiError,
    Change,
    Cluster,
    Forbidden,
    Gone,
    NotFound,
    Scope,
    Throttled,
    Unauthorized,
    Unreachable,
    Verb,
)

from .store import Store

T = TypeVar("T", bound=KubeObject)
log = structlog.get_logger()

# The server speaks at least once a minute on a healthy watch (bookmarks); after this it is taken for dead.
SILENCE_SECONDS = 150.0
# A watch that ends sooner than this has not worked; without a pause we would knock in a hot loop.
SHORT_WATCH_SECONDS = 1.0
FIRST_REST_SECONDS = 0.25
LONGEST_REST_SECONDS = 30.0
REMIND_SECONDS = 60.0


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
        self.scope = scope
        self.trouble = ""
        """What is in the way of following now, if anything is. Only its words: an error keeps alive what was
        at hand when it came, and that may be a long list that was read in part."""
        self._is_forbidden = False
        self._told_error_at = 0.0
        self._cluster = cluster
        self._on_change = on_change
        self._failures = 0
        self._patience: asyncio.Timeout | None = None
        self._log = log.bind(kind=resource.kind, namespace=scope.namespace or "all")

    @property
    def is_refused(self) -> bool:
        """The server does not let us see any: there may be some, but for us there are none."""
        return not self.synced.is_set() and self._is_forbidden

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
        if self._patience is not None and not self._patience.expired():
            self._patience.reschedule(asyncio.get_running_loop().time())

    async def _sync(self) -> State:
        try:
            listing = await self._cluster.list(self.resource, self.scope)
        except ApiError as error:
            return self._rest(error, Sync())
        touched = self.store.replace(listing.items, int(listing.resource_version))
        self._log.debug("listed", objects=len(listing.items), changed=len(touched))
        for found in listing.items:
            if found.metadata.key in touched:
                self._report_if_unreadable(found)
        self.synced.set()
        self._tell(touched)
        return Follow(listing.resource_version)

    async def _follow(self, since: str) -> State:
        clock = asyncio.get_running_loop().time
        began = clock()
        broken: ApiError | None = None
        then: Sync | Follow = Sync()
        works = asyncio.get_running_loop().call_later(SHORT_WATCH_SECONDS, self._forget_trouble)
        try:
            async with (
                asyncio.timeout(SILENCE_SECONDS) as patience,
                aclosing(self._cluster.watch(self.resource, self.scope, since)) as changes,
            ):
                self._patience = patience
                async for change in changes:
                    self._take_in(change)
                    since = change.resource_version
                    self._failures = 0
                    patience.reschedule(clock() + SILENCE_SECONDS)
            then = Follow(since)
        except TimeoutError as error:
            if patience.expired():
                self._log.info("watch is silent, listing again", seconds=round(clock() - began))
            else:
                broken, then = Unreachable(f"watch: {str(error) or 'timed out'}"), Follow(since)
        except Gone:
            self._log.info("watch is too far back, listing again", since=since)
        except ApiError as error:
            broken, then = error, Follow(since)
        finally:
            self._patience = None
            works.cancel()
        has_worked = clock() - began >= SHORT_WATCH_SECONDS
        if has_worked:
            self._failures = 0
        return then if has_worked and broken is None else self._rest(broken, then)

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
        self._tell(touched)

    def _tell(self, touched: set[Key]) -> None:
        """In an order that is the same in every process: what has been simulated once can be lived again."""
        for key in sorted(touched):
            self._on_change(key)

    def _report_if_unreadable(self, found: T | Unreadable) -> None:
        if isinstance(found, Unreadable):
            self._log.error(
                "object cannot be read, passed over", key=str(found.metadata.key), error=found.error
            )

    def _rest(self, error: ApiError | None, then: Sync | Follow) -> Rest:
        seconds = min(FIRST_REST_SECONDS * 2.0 ** min(self._failures, 16), LONGEST_REST_SECONDS)
        if isinstance(error, Throttled):
            seconds = max(seconds, error.retry_after_seconds)
        self._failures += 1
        if error is not None:
            self._tell_trouble(error, seconds)
        return Rest(seconds, then)

    def _tell_trouble(self, error: ApiError, again_seconds: float) -> None:
        """Once, and again when it is another one, or lasts."""
        text, now = str(error) or type(error).__name__, asyncio.get_running_loop().time()
        if text != self.trouble or now - self._told_error_at >= REMIND_SECONDS:
            self._told_error_at = now
            self._log.warning("cannot follow", error=text, again_seconds=again_seconds, **self._hint(error))
        self.trouble = text
        self._is_forbidden = isinstance(error, (Forbidden, NotFound))

    def _forget_trouble(self) -> None:
        if self.trouble:
            self._log.info("follows again")
        self.trouble = ""

    def _hint(self, error: ApiError) -> dict[str, str]:
        match error:
            case NotFound():
                return {"hint": f"is the CustomResourceDefinition of {self.resource} installed?"}
            case Unauthorized():
                return {"hint": "the server does not know this token or certificate; is it expired?"}
            case Forbidden():
                return {"hint": f"the account needs the verbs list and watch on {self.resource}"}
        return {}
