"""Which of several managers leads: the one that holds a Lease, and renews it in time.

    stands by ──the lease is free, or was not renewed for its duration──▶ leads
        ▲                                                                  │
        └────── not renewed within the renew deadline, or taken ───────────┘

A manager that was paused, by SIGSTOP or with its whole machine, does not know that it no longer leads. So
each write first looks at a clock that goes on meanwhile (`Fenced`): without a renewal within the deadline,
which is shorter than the lease, nothing is sent. A write that had already left is as harmless as one before a
crash: it names the UID or the version that it is for, or a name that can be taken only once.
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
)

from .clock import since_boot

T = TypeVar("T", bound=KubeObject)
log = structlog.get_logger()


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
                self.error = ""
            except (ApiError, TimeoutError) as error:
                self._note_error(error)
            if self._ours is not None:
                # From before it was sent: others count from when they saw it.
                self._renewed_at = begun
                log.info("leads", lease=str(self._key), identity=self._identity)
                return
            await asyncio.sleep(self._pause())

    async def keep(self) -> None:
        """Renews it; returns when it is lost."""
        while True:
            left = self._timing.renew_deadline - (self._steady() - self._renewed_at)
            await asyncio.sleep(max(0.0, min(self._timing.retry_period / (2 if self.error else 1), left)))
            begun = self._steady()
            try:
                # No request may use up the time of the next one.
                async with asyncio.timeout(self._timing.retry_period):
                    await self._renew()
                self._renewed_at, self.error = begun, ""
            except NotLeadingError:
                self._renewed_at = -math.inf
            except (ApiError, TimeoutError) as error:
                self._note_error(error)
            if not self.holds:
                log.warning("leads no longer", lease=str(self._key), leader=self.leader, error=self.error)
                self._ours = None
                return

    async def release(self) -> None:
        """Give it back, so that another need not wait; if that fails, it will."""
        ours, self._ours, self._renewed_at = self._ours, None, -math.inf
        if ours is None:
            return
        try:
            async with asyncio.timeout(1):
                await self._write(ours, {"holderIdentity": "", "leaseDurationSeconds": 1})
        except (ApiError, TimeoutError) as error:
            log.warning("lease not given back", error=_told(error))

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
        look = self._timing.retry_period / 2
        return min(look, max(0.01, self._expires_in(self._seen))) if self._seen is not None else look

    async def _renew(self) -> None:
        if self._ours is None:
            found = await self._cluster.get(LEASES, self._key)
            self.leader = found.spec.holder_identity or ""
            if self.leader != self._identity:
                raise NotLeadingError
            self._ours = found
        try:
            self._ours = await self._write(self._ours, {"renewTime": self._stamp()})
        except NotFound:
            # Somebody deleted it.
            self._ours = await self._create()
            if self._ours is None:
                raise Conflict(f"lease {self._key} was made anew by another manager") from None
        except ApiError:
            # It may have been written all the same, or by somebody else: look at it before the next try.
            self._ours = None
            raise

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

    def _note_error(self, error: Exception) -> None:
        if not self.error:
            log.warning("lease cannot be read or written", lease=str(self._key), error=_told(error))
        self.error = _told(error)


def _told(error: Exception) -> str:
    return str(error) or "no answer in time"


class Fenced:
    """A cluster that is written to only while the lease holds."""

    def __init__(self, cluster: Cluster, holds: Callable[[], bool]) -> None:
        self._cluster = cluster
        self._holds = holds

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
        if not self._holds():
            raise NotLeadingError
