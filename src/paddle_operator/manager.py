"""The manager as a process: it stands by, leads, answers probes, and stops when it is told to.

It keeps nothing that it cannot see again. Whenever it begins to lead it lists everything anew, so what it
knew when it led before, or while it stood by, can mislead nobody.
"""

import asyncio
import gc
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime

import structlog

from . import __version__
from .api.meta import Key
from .api.paddlejob import PaddleJob
from .app import Meter, Neighbours, PaddleJobManager
from .cluster import Cluster
from .kube.client import KubeCluster
from .kube.config import Credentials
from .kube.transport import Answer, Transport
from .paddlejob.observed import NO_SETTINGS, Settings
from .runtime.clock import SteadyClock, since_boot
from .runtime.controller import WORKERS
from .runtime.lease import Fenced, LeaderLease, LeaseTiming
from .serve.endpoints import Address, Page, Reply, serving
from .serve.jobs import JobMetrics
from .serve.metrics import CONTENT_TYPE, Metrics

log = structlog.get_logger()

# For turns under way when the manager is told to stop: a standby waits for the lease meanwhile.
LAST_TURNS_SECONDS = 1.0
# Hardly anything of ours is in a cycle, and what a list brings stays: to look for garbage after each 700
# objects would take a tenth of the start beside ten thousand pods.
COLLECT_AFTER = 50_000


@dataclass(frozen=True)
class Election:
    """Only one of several managers leads: who holds this lease."""

    lease: Key
    identity: str
    timing: LeaseTiming = field(default_factory=LeaseTiming)


@dataclass(frozen=True)
class Options:
    namespaces: tuple[str, ...] = ("",)
    """An empty one stands for all."""
    settings: Settings = NO_SETTINGS
    workers: int = WORKERS
    election: Election | None = None
    metrics_address: Address | None = None
    health_address: Address | None = None


class Manager:
    def __init__(
        self,
        cluster: Cluster,
        options: Options,
        clock: Callable[[], datetime],
        metrics: Metrics,
        steady: Callable[[], float] = since_boot,
    ) -> None:
        self._cluster = cluster
        self._options = options
        self._clock = clock
        self._metrics = metrics
        self._jobs = JobMetrics(metrics.registry)
        self._managers: list[PaddleJobManager] = []
        election = options.election
        self._lease = (
            LeaderLease(
                cluster, election.lease, election.identity, now=clock, timing=election.timing, steady=steady
            )
            if election is not None
            else None
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Until it is told to stop; what is under way then has a moment to end."""
        try:
            if self._lease is not None:
                # Before it may lead: one without rights would keep those from leading who have them.
                await self._look(stop)
            while not stop.is_set():
                if self._lease is not None:
                    async with _first_of(stop.wait(), self._lease.acquire()):
                        pass
                if not stop.is_set():
                    await self._lead(stop)
        finally:
            if self._lease is not None:
                await self._lease.release()

    def readiness(self) -> Reply:
        """Ready: all lists are there, or somebody else leads and we can see that."""
        if unlisted := [kind for manager in self._managers for kind in manager.unlisted]:
            return _not_ready(f"waits for the lists of {', '.join(unlisted)}")
        if unfollowed := [kind for manager in self._managers for kind in manager.unfollowed]:
            return _not_ready(f"cannot follow {', '.join(unfollowed)}")
        if self._managers:
            return Reply(b"leads\n" if self._lease is not None else b"ready\n")
        if self._lease is not None and self._lease.leader and not self._lease.error:
            return Reply(f"stands by, {self._lease.leader} leads\n".encode())
        return _not_ready(f"lease: {self._lease.error}" if self._lease and self._lease.error else "starts")

    async def _look(self, stop: asyncio.Event) -> None:
        self._managers = self._make_managers(self._cluster)
        looks = asyncio.gather(*(manager.look() for manager in self._managers))
        async with _first_of(stop.wait(), looks):
            self._managers = []

    async def _lead(self, stop: asyncio.Event) -> None:
        """Until the lease is lost, or somebody says stop."""
        async with self._working() as managers:
            # Without a lease nothing is ever lost.
            lost = self._lease.keep() if self._lease is not None else asyncio.Event().wait()
            async with _first_of(stop.wait(), lost, *(manager.run() for manager in managers)):
                if stop.is_set():
                    await self._let_turns_end()

    async def _let_turns_end(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_TURNS_SECONDS):
                await asyncio.gather(*(manager.drain() for manager in self._managers))

    @asynccontextmanager
    async def _working(self) -> AsyncIterator[list[PaddleJobManager]]:
        cluster = self._cluster if self._lease is None else Fenced(self._cluster, self._lease)
        self._managers = managers = self._make_managers(cluster, self._jobs.saw)
        self._metrics.leads(it_does=True, depth=lambda: sum(one.waiting_turns for one in managers))
        try:
            yield managers
        finally:
            self._managers = []
            self._metrics.leads(it_does=False)
            self._jobs.forget()

    def _make_managers(
        self, cluster: Cluster, saw_job: Callable[[Key, PaddleJob | None], None] = lambda _key, _job: None
    ) -> list[PaddleJobManager]:
        options, neighbours = self._options, Neighbours()
        meter = Meter(self._metrics.turned, self._metrics.waited, saw_job)
        return [
            PaddleJobManager(
                cluster,
                namespace,
                self._clock,
                options.settings,
                neighbours=neighbours,
                workers=options.workers,
                meter=meter,
            )
            for namespace in options.namespaces
        ]


def _not_ready(why: str) -> Reply:
    return Reply(f"{why}\n".encode(), 503)


@asynccontextmanager
async def _first_of(*coroutines: Awaitable[object]) -> AsyncIterator[None]:
    """Entered when one of them has ended; raises what it raised. The others go on inside, and end after."""
    tasks = [asyncio.ensure_future(one) for one in coroutines]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def run_manager(credentials: Credentials, options: Options) -> None:
    """Until SIGTERM or SIGINT."""
    gc.set_threshold(COLLECT_AFTER, *gc.get_threshold()[1:])
    clock, metrics, stop = SteadyClock(), Metrics(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)

    def answered(one: Answer) -> None:
        metrics.answered(one.method, one.path, one.status, one.seconds, is_watch=one.is_watch)

    async with Transport(credentials, clock.heed, answered) as transport:
        manager = Manager(KubeCluster(transport), options, clock, metrics)
        pages = (
            Page(options.health_address, "/healthz", lambda: Reply(b"ok\n")),
            Page(options.health_address, "/readyz", manager.readiness),
            Page(
                options.metrics_address, "/metrics", lambda: Reply(metrics.page(), content_type=CONTENT_TYPE)
            ),
        )
        async with serving(pages):
            followed = ",".join(options.namespaces) or "all"
            who = {"identity": options.election.identity} if options.election is not None else {}
            log.info("starts", version=__version__, server=credentials.server, namespace=followed, **who)
            await manager.run(stop)
    log.info("stopped")
