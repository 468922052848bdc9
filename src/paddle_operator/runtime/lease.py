"""Which of several managers leads: the one that holds a Lease, and renews it in time.

    stands by ──the lease is free, or was not renewed for its duration──▶ leads
        ▲                                                                  │
        └────── not renewed within the renew deadline, or taken ───────────┘

A manager that was paused, by SIGSTOP or with its whole machine, does not know that it no longer leads. So
each write first looks at a clock that goes on meanwhile (`Fenced`): without a renewal within the deadline,
which is shorter than the lease, nothing is sent. A write that had already left does no more harm than one
just before a crash: it names the UID or the version that it is for; and a create that comes late collides
with a name, or makes a pod that the new leader sees, and sweeps away.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

import structlog

from paddle_operator.api.core import Lease
from paddle_operator.api.meta import Key, KubeObject, Manifest
from paddle_operator.api.resources import LEASES, Resource, Target
from paddle_operator.cluster import (
    AlreadyExists,
    ApiError,
    Change,
    Cluster,
    Conflict,
    Listing,
    NotFound,
    Scope,
    Throttled,
)

from .clock import since_boot

T = TypeVar("T", bound=KubeObject)
log = structlog.get_logger()

SHORTEST_PAUSE_SECONDS = 0.01
# For the last words of a process that stops.
RELEASE_SECONDS = 1.0


@dataclass(frozen=True)
class LeaseTiming:
    """In seconds. A crash of the leader costs at most the duration and one look of a standby."""

    duration: float = 8.0
    renew_deadline: float = 5.0
    retry_period: float = 2.0
    """Between two renewals. Standbys look twice as often."""


class NotLeadingError(ApiError):
    def __init__(self) -> None:
        super().__init__("not sent: the lease was not renewed in time, so another manager may lead")


class LeaderLease:
    def __init__(
        self,
        cluster: Cluster,
        key: Key,
        identity: str,
        *,
        now: Callable[[], datetime],
        timing: LeaseTiming | None = None,
        steady: Callable[[], float] = since_boot,
    ) -> None:
        self._cluster = cluster
        self._key = key
        self._identity = identity
        self._now = now
        self._timing = timing or LeaseTiming()
        self._steady = steady
        self._ours: Lease | None = None
        self._renewed_at = -math.inf
        self._seen: Lease | None = None
        self._seen_at = 0.0
        self.leader = ""
        """Who led when we last looked."""
        self.error = ""
        """Why we could not look, if we could not."""
        self._asked_for_pause = 0.0
        self._has_asked = False
        """For the lease; whether we got it, we may not have heard."""

    @property
    def holds(self) -> bool:
        return self._steady() - self._renewed_at < self._timing.renew_deadline

    async def acquire(self) -> None:
        """Until it is ours."""
        while True:
            begun = self._steady()
            try:
                async with asyncio.timeout(self._timing.renew_deadline):
                    self._ours = await self._try_to_take()
                self._note_success()
            except (ApiError, TimeoutError) as error:
                self._note_error(error)
            if self._ours is not None:
                # From before it was sent: others count from when they saw it.
                self._renewed_at, self.leader = begun, self._identity
                log.info("leads", lease=str(self._key), identity=self._identity)
                return
            await asyncio.sleep(self._pause())

    async def keep(self) -> None:
        """Renews it; returns when it is lost."""
        timing = self._timing
        while self.holds:
            due = self._renewed_at + timing.retry_period - self._steady()
            at_least = (self._asked_for_pause or timing.retry_period / 4) if self.error else 0.0
            await asyncio.sleep(max(0.0, min(max(due, at_least), self._left)))
            begun = self._steady()
            try:
                # Time for two tries, so that one answer that never comes does not cost the lead.
                async with asyncio.timeout(min(timing.renew_deadline / 2, max(0.1, self._left))):
                    await self._renew()
                self._renewed_at = begun
                self._note_success()
            except NotLeadingError:
                self._renewed_at = -math.inf
            except (ApiError, TimeoutError) as error:
                self._note_error(error)
        log.warning("leads no longer", lease=str(self._key), leader=self.leader, error=self.error)
        self._ours = self._seen = None

    async def release(self) -> None:
        """Give it back, if it is ours, so that another need not wait; if that fails, it will.

        Looked up, because we may have been stopped while a request was on its way.
        """
        self._ours, self._renewed_at = None, -math.inf
        if not self._has_asked:
            return
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                found = await self._cluster.get(LEASES, self._key)
                if found.spec.holder_identity == self._identity:
                    await self._write(found, {"holderIdentity": "", "leaseDurationSeconds": 1})
        except (ApiError, TimeoutError) as error:
            log.warning("lease not given back", error=_told(error))

    @property
    def _left(self) -> float:
        return self._renewed_at + self._timing.renew_deadline - self._steady()

    async def _try_to_take(self) -> Lease | None:
        try:
            found = await self._cluster.get(LEASES, self._key)
        except NotFound:
            return await self._create()
        if not self._is_free(found):
            return None
        changes = self._claim() | {"leaseTransitions": (found.spec.lease_transitions or 0) + 1}
        try:
            return await self._write(found, changes)
        except Conflict:
            return None

    def _is_free(self, found: Lease) -> bool:
        """Free, ours, or not renewed for its duration: by our clock, since we first saw it like this."""
        if self._seen is None or self._seen.metadata.resource_version != found.metadata.resource_version:
            self._seen, self._seen_at = found, self._steady()
        holder = found.spec.holder_identity or ""
        if holder != self.leader and holder not in {"", self._identity}:
            log.info("stands by", lease=str(self._key), leader=holder)
        self.leader = holder
        return holder in {"", self._identity} or self._expires_in(found) <= 0

    def _expires_in(self, found: Lease) -> float:
        """Its holder says how long it lasts: it may be of another version, with other settings."""
        duration = found.spec.lease_duration_seconds or self._timing.duration
        return self._seen_at + duration - self._steady()

    def _pause(self) -> float:
        """Shorter only to be there when the lease of another ends, never after something went wrong."""
        look = self._timing.retry_period / 2
        if self.error or self._seen is None:
            return max(look, self._asked_for_pause)
        return min(look, max(SHORTEST_PAUSE_SECONDS, self._expires_in(self._seen)))

    async def _renew(self) -> None:
        # Not ours any more until the answer is there: it may be written and the answer lost.
        ours, self._ours = self._ours, None
        if ours is None:
            ours = await self._cluster.get(LEASES, self._key)
            self.leader = ours.spec.holder_identity or ""
            if self.leader != self._identity:
                raise NotLeadingError
        try:
            self._ours = await self._write(ours, {"renewTime": self._stamp()})
        except Conflict:
            # Taken, or edited: which, the next look tells at once.
            await self._renew()
        except NotFound:
            # Somebody deleted it.
            self._ours = await self._create()
            if self._ours is None:
                raise Conflict(f"lease {self._key} was made anew by another manager") from None

    async def _create(self) -> Lease | None:
        manifest = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"namespace": self._key.namespace, "name": self._key.name},
            "spec": self._claim() | {"leaseTransitions": 0},
        }
        try:
            return await self._cluster.create(LEASES, manifest)
        except AlreadyExists:
            return None

    def _claim(self) -> Manifest:
        self._has_asked = True
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": math.ceil(self._timing.duration),
            "acquireTime": self._stamp(),
            "renewTime": self._stamp(),
        }

    async def _write(self, seen: Lease, changes: Manifest) -> Lease:
        body = {"metadata": {"resourceVersion": seen.metadata.resource_version}, "spec": changes}
        written = await self._cluster.patch(Target.of(LEASES, seen), body)
        assert isinstance(written, Lease)
        return written

    def _stamp(self) -> str:
        return self._now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def _note_success(self) -> None:
        if self.error:
            log.info("lease can be read and written again", lease=str(self._key))
        self.error = ""

    def _note_error(self, error: Exception) -> None:
        told = _told(error)
        if told != self.error:
            log.warning("lease cannot be read or written", lease=str(self._key), error=told)
        self.error = told
        self._asked_for_pause = error.retry_after_seconds if isinstance(error, Throttled) else 0.0


def _told(error: Exception) -> str:
    return str(error) or "no answer in time"


class Fenced:
    """A cluster that is written to only while the lease holds."""

    def __init__(self, cluster: Cluster, lease: LeaderLease) -> None:
        self._cluster = cluster
        self._lease = lease

    async def get(self, resource: Resource[T], key: Key) -> T:
        return await self._cluster.get(resource, key)

    async def list(self, resource: Resource[T], scope: Scope) -> Listing[T]:
        return await self._cluster.list(resource, scope)

    def watch(self, resource: Resource[T], scope: Scope, since: str) -> AsyncGenerator[Change[T], None]:
        return self._cluster.watch(resource, scope, since)

    async def create(self, resource: Resource[T], manifest: Manifest) -> T:
        self._check()
        return await self._cluster.create(resource, manifest)

    async def patch(self, target: Target, body: Manifest, *, subresource: str = "") -> KubeObject:
        self._check()
        return await self._cluster.patch(target, body, subresource=subresource)

    async def delete(self, target: Target, *, as_seen: bool = False, force: bool = False) -> None:
        self._check()
        await self._cluster.delete(target, as_seen=as_seen, force=force)

    def _check(self) -> None:
        if not self._lease.holds:
            raise NotLeadingError
