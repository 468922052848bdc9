"""Many jobs live at once on a real API server, each behind a proxy of its own that does harm to one request.

    Case (which job, which harm, at which request) -> Crowd.live() -> Life (how it ended) -> complaints()

A manager that is killed is a process of its own; all others are in this one, which is much cheaper, and are
the same code behind the same connection.
"""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import structlog
from conftest import make_namespace
from fault_proxy import Asked, Close, Fault, FaultProxy, Freeze, Rule, nth
from forked_manager import ForkedManager
from sampling import shuffled
from shaken_jobs import JOBS, NAME, ShakenJob
from simulator.oracle import differences, without_volatile
from world import OPERATOR, World

from paddle_operator.api.meta import Manifest
from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS, SERVICES
from paddle_operator.cluster import NotFound
from paddle_operator.kube.client import KubeCluster, path
from paddle_operator.kube.config import from_file
from paddle_operator.kube.transport import Transport
from paddle_operator.manager import Manager, Options
from paddle_operator.runtime.clock import SteadyClock
from paddle_operator.serve.metrics import Metrics
from testbed.controlplane import ControlPlane
from testbed.node import FakeNode
from testbed.node_pods import Behaviour, Pod

# A life is at rest when nothing was asked for so long. Others may take their time to do what is due: the
# server's garbage collector looks for new kinds only twice a minute.
QUIET_SECONDS = 1.0
PATIENCE_SECONDS = 90.0
# What a machine of two cores can bear. One that waits for a watch to thaw has nothing to do.
BUSY_AT_ONCE = 24
FROZEN_AT_ONCE = 96
LONG_FREEZE_SECONDS = 5.0
WHOLE = os.environ.get("SIMULATE") == "all"
# Else so many of each sweep.
SAMPLE = 4
# Every manager begins with four lists and four watches.
KINDS = 4


def is_write(asked: Asked) -> bool:
    return asked.is_write


def is_read(asked: Asked) -> bool:
    return not asked.is_write


def is_watch(asked: Asked) -> bool:
    return asked.is_watch


@dataclass(frozen=True)
class Harm:
    """What is done to one request: to the n-th write, unless other ones are meant."""

    fault: Fault
    to: Callable[[Asked], bool] = is_write
    due: int = 0
    """How many such requests every manager makes; 0: that depends on the job."""
    kills: bool = False

    @property
    def is_long(self) -> bool:
        return self.fault.freeze is not None and self.fault.freeze.seconds >= LONG_FREEZE_SECONDS


ERRORS = {
    "409": Fault(answer=409),
    "410": Fault(answer=410),
    "429": Fault(answer=429, retry_after="1"),
    "500": Fault(answer=500),
    "504": Fault(answer=504),
}
CALM = "calm"
# By the first one all others are judged.
FIRST, SECOND = 1, 2
THOROUGHLY = {"cleaned", "servers", "restarted", "suspended"}
HARMS = {
    CALM: Harm(Fault()),
    "killed-before": Harm(Fault(close=Close.BEFORE), kills=True),
    "killed-after": Harm(Fault(close=Close.AFTER), kills=True),
    "unsent": Harm(Fault(close=Close.BEFORE)),
    "unanswered": Harm(Fault(close=Close.AFTER)),
    **{f"write-{name}": Harm(fault) for name, fault in ERRORS.items()},
    **{f"read-{name}": Harm(fault, is_read, 2 * KINDS) for name, fault in ERRORS.items()},
    "watch-gone": Harm(Fault(answer=410, in_stream=True), is_watch, KINDS),
    "watch-cut": Harm(Fault(close=Close.AFTER), is_watch, KINDS),
    **{f"frozen-{seconds}s": Harm(Fault(freeze=Freeze(seconds))) for seconds in (1, 10, 60)},
}


@dataclass(frozen=True)
class Case:
    job: str
    harm: str
    number: int

    def __str__(self) -> str:
        return f"{self.job}-{self.harm}-{self.number}"


def cases() -> list[Case]:
    """All of them, or a sample of each sweep. Those that take long come first."""
    harms = sorted(HARMS, key=lambda name: not HARMS[name].is_long)
    return [case for harm in harms for case in _drawn(harm, [*_sweep(harm)])]


def _sweep(harm: str) -> Iterator[Case]:
    """Kills at every write of every job; all else at every such request of some."""
    for name, job in JOBS.items():
        if harm == CALM:
            yield Case(name, CALM, SECOND)
        elif HARMS[harm].kills or name in THOROUGHLY:
            for number in range(1, (HARMS[harm].due or job.most_writes) + 1):
                yield Case(name, harm, number)


def _drawn(harm: str, sweep: list[Case]) -> list[Case]:
    return sweep if WHOLE or harm == CALM else shuffled(sweep, "shaken", harm)[:SAMPLE]


@dataclass(frozen=True)
class Life:
    namespace: str
    end: Manifest
    is_right: bool
    """Its phase and its counts."""
    writes: list[str]
    requests: int
    struck: bool
    log: list[dict[str, Any]]


def complaints(case: Case, life: Life, calm: Life) -> list[str]:
    job = JOBS[case.job]
    wrong = [*differences(life.end, calm.end)]
    wrong += [f"left {sorted(life.end)}"] * ({*life.end} != job.left)
    wrong += ["phase or counts are wrong"] * (not life.is_right)
    wrong += [f"logged {line}" for line in life.log if line["level"] in {"error", "critical"}]
    wrong += ["the log is not seen"] * (not life.log)
    # Else some of its writes are never the one to which harm is done.
    is_unknown = WHOLE and len(calm.writes) > job.most_writes
    wrong += [f"{len(calm.writes)} writes, {job.most_writes} are known of"] * is_unknown
    due = HARMS[case.harm].due or job.least_writes
    must_strike = case.harm != CALM and case.number <= due
    wrong += [f"not struck: only {len(life.writes)} writes"] * (must_strike and not life.struck)
    most = 2 * len(calm.writes) + calm.requests + 20
    wrong += [f"{life.requests} requests, at most {most} were due"] * (life.requests > most)
    return wrong


def story(life: Life) -> str:
    return "\n".join(["its writes:", *life.writes, "its log:", *map(str, life.log)])


@dataclass
class Crowd:
    plane: ControlPlane
    admin: Transport
    node: FakeNode
    folder: Path
    lives: dict[Case, asyncio.Task[Life]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._busy = asyncio.Semaphore(BUSY_AT_ONCE)
        self._frozen = asyncio.Semaphore(FROZEN_AT_ONCE)
        self._behaviours: dict[str, Callable[[Pod], Behaviour | None]] = {}
        self.node.script(self._behave)

    def begin(self, cases: Iterable[Case]) -> None:
        """All at once, as far as there is room."""
        for case in cases:
            self._begun(case)

    async def calm(self, job: str) -> Life:
        """The undisturbed life, by which all others of the job are judged."""
        return await self._begun(Case(job, CALM, FIRST))

    async def life(self, case: Case) -> Life:
        return await self._begun(case)

    async def end(self) -> None:
        for task in self.lives.values():
            task.cancel()
        await asyncio.gather(*self.lives.values(), return_exceptions=True)

    def _behave(self, pod: Pod) -> Behaviour | None:
        behave = self._behaviours.get(pod.metadata.namespace)
        return behave(pod) if behave is not None else None

    def _begun(self, case: Case) -> asyncio.Task[Life]:
        if case not in self.lives:
            self.lives[case] = asyncio.create_task(self._live_when_there_is_room(case))
        return self.lives[case]

    async def _live_when_there_is_room(self, case: Case) -> Life:
        calm = None if case == Case(case.job, CALM, FIRST) else await self.calm(case.job)
        async with self._frozen if HARMS[case.harm].is_long else self._busy:
            return await self._live(case, calm)

    async def _live(self, case: Case, calm: Life | None) -> Life:
        job, harm = JOBS[case.job], HARMS[case.harm]
        world = World(self.plane, await make_namespace(self.admin, str(case)), self.admin)
        await self._accounts(world.namespace)
        self._behaviours[world.namespace] = job.behave()
        await world.submit(job.manifest)
        async with FaultProxy(self.plane.kubeconfig_for(OPERATOR)) as proxy:
            begin = self._forked if harm.kills else self._in_here
            async with begin(proxy, world.namespace, case) as log:
                await job.story(world, self.node, job.manifest)
                end = await _come_to_rest(world, proxy, job, calm)
                is_right = job.is_right(await world.get(PADDLE_JOBS, NAME))
        return Life(
            namespace=world.namespace,
            end=end,
            is_right=is_right,
            writes=proxy.writes,
            requests=proxy.requests,
            struck=proxy.met.total() == 1,
            log=log,
        )

    async def _accounts(self, namespace: str) -> None:
        """Pods are refused until there is one, and nothing tells when."""
        account = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
        while True:
            try:
                await self.admin.request("GET", account)
            except NotFound:
                await asyncio.sleep(0.05)
            else:
                return

    @asynccontextmanager
    async def _forked(
        self, proxy: FaultProxy, namespace: str, case: Case
    ) -> AsyncIterator[list[dict[str, Any]]]:
        manager = ForkedManager(proxy.kubeconfig, namespace, self.folder / f"{namespace}.log")
        proxy.rule = _rule(case, manager.kill_and_start_again)
        log: list[dict[str, Any]] = []
        manager.start()
        try:
            yield log
        finally:
            await asyncio.to_thread(manager.stop)
            log += manager.lines()
        assert manager.exit_codes in ([0], [-9, 0]), manager.exit_codes

    @asynccontextmanager
    async def _in_here(
        self, proxy: FaultProxy, namespace: str, case: Case
    ) -> AsyncIterator[list[dict[str, Any]]]:
        proxy.rule = _rule(case)
        log: list[dict[str, Any]] = []
        _log.set(log)
        clock, stop = SteadyClock(), asyncio.Event()
        async with Transport(from_file(proxy.kubeconfig), clock.heed) as transport:
            manager = Manager(KubeCluster(transport), Options((namespace,)), clock, Metrics())
            running = asyncio.create_task(manager.run(stop))
            try:
                yield log
            finally:
                stop.set()
                await running


def _rule(case: Case, kill: Callable[[], None] | None = None) -> Rule:
    harm = HARMS[case.harm]
    return nth(case.number, replace(harm.fault, on_close=kill), harm.to)


async def _come_to_rest(world: World, proxy: FaultProxy, job: ShakenJob, calm: Life | None) -> Manifest:
    """The end, once all watches speak and nothing is asked any more; the one that is due, if it comes."""
    clock = asyncio.get_running_loop().time
    await asyncio.sleep(proxy.frozen_seconds())
    deadline = clock() + PATIENCE_SECONDS
    while True:
        before = proxy.requests
        await asyncio.sleep(QUIET_SECONDS)
        end = await end_of(world)
        is_due = {*end} == job.left and (calm is None or end == calm.end)
        if (is_due and proxy.requests == before) or clock() > deadline:
            return end


# Of which life a line of the log tells.
_log: ContextVar[list[dict[str, Any]]] = ContextVar("log")


def _keep(_logger: object, _method: str, line: Any) -> Any:
    _log.get([]).append(dict(line))
    raise structlog.DropEvent


@asynccontextmanager
async def logs_are_kept() -> AsyncIterator[None]:
    """Each line for the life that it tells of."""
    before = structlog.get_config()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info,
            _keep,
        ]
    )
    try:
        yield
    finally:
        structlog.configure(**before)


# What a server and a node add that is not the same twice.
OF_THE_SERVER = {"managedFields", "startedAt", "generation", "observedGeneration"}
ADDRESS = re.compile(r"\b198\.1[89]\.\d+\.\d+\b")
TOKEN = re.compile(r"kube-api-access-\w{5}")


async def end_of(world: World) -> Manifest:
    """Everything that is in the namespace but events, with names in the place of UIDs and addresses."""
    found: Manifest = {}
    for resource in (PADDLE_JOBS, PODS, SERVICES, CONFIG_MAPS):
        body = await world.transport.request("GET", path(resource, world.namespace))
        for document in json.loads(body)["items"]:
            if document["metadata"]["name"] != "kube-root-ca.crt":
                found[f"{resource.kind} {document['metadata']['name']}"] = document
    aliases = {document["metadata"]["uid"]: name for name, document in found.items()}
    aliases |= {
        document["status"]["podIP"]: name
        for name, document in found.items()
        if document.get("status", {}).get("podIP")
    }
    aliases[world.namespace] = "namespace"
    return {
        name: without_volatile(_without(OF_THE_SERVER, _renamed(document, aliases)))
        for name, document in sorted(found.items())
    }


def _renamed(document: Manifest, aliases: dict[str, str]) -> Manifest:
    text = TOKEN.sub("<token>", json.dumps(document))
    # The longest first: one address may begin like another.
    for found in sorted(aliases, key=len, reverse=True):
        text = text.replace(found, f"<{aliases[found]}>")
    # Of pods that are gone nobody knows which was where; that no address is there twice is still seen.
    others: dict[str, str] = {}
    text = ADDRESS.sub(lambda seen: others.setdefault(seen[0], f"<address {len(others)}>"), text)
    renamed: Manifest = json.loads(text)
    return renamed


def _without(names: set[str], value: Any) -> Any:
    if isinstance(value, list):
        return [_without(names, item) for item in value]
    if isinstance(value, dict):
        return {name: _without(names, item) for name, item in value.items() if name not in names}
    return value
