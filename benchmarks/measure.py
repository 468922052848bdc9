"""One measurement: a workload in a mode by an operator, in a namespace of its own."""

import asyncio
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.audit import requests_in
from benchmarks.bench import Bench
from benchmarks.node import READY
from benchmarks.operators import Operator, Place
from benchmarks.processes import cpu_seconds, machine_cpu_seconds, peak_resident_mib, resident_mib
from benchmarks.timeline import Thing, Timeline
from benchmarks.workloads import Workload
from testbed.node_client import ApiClient, Follower

STUCK_SECONDS = 45.0
"""So long may nothing happen; the slowest retry that anybody waits for takes 15 s."""
SETTLE_SECONDS = 0.5
"""After which nothing more is under way: neither lists before the jobs come, nor events after their end."""
SENDERS = 16
LOOK_SECONDS = 0.02


class MeasurementError(Exception):
    """The operator, or what is around it, did not do what it should: there are no figures."""


@dataclass(frozen=True)
class Case:
    workload: Workload
    mode: str
    operator: Operator


async def measure(bench: Bench, case: Case, name: str) -> dict[str, Any]:
    namespace = f"bench-{name}"
    await bench.make_namespace(namespace)
    try:
        async with _node(bench, case, namespace) as node, bench.client() as client:
            what = _measure_start if case.workload.is_start else _measure_jobs
            return await what(bench, case, client, _Around(namespace, node))
    finally:
        await bench.empty_namespace(namespace, case.operator.jobs_path(namespace))


@dataclass(frozen=True)
class _Around:
    namespace: str
    node: list[int]
    """The process that plays the pods, if there is one."""


async def _measure_jobs(bench: Bench, case: Case, client: ApiClient, around: _Around) -> dict[str, Any]:
    timeline = _timeline(case)
    async with (
        _started(bench, case, around.namespace) as process,
        _watching(client, case.operator, around.namespace, timeline),
    ):
        await asyncio.sleep(SETTLE_SECONDS)
        meter = _Meter(bench, process.pid, around.node)
        await _send_jobs(client, case, around.namespace, timeline)
        await _until(lambda: timeline.is_over, process, lambda: timeline.progress)
        await asyncio.sleep(SETTLE_SECONDS)
        pods = {"extra_pods": timeline.extra_pods(), "most_pods": timeline.most_pods}
        return {"times": timeline.times(), **pods, **meter.read()}


async def _measure_start(bench: Bench, case: Case, client: ApiClient, around: _Around) -> dict[str, Any]:
    """From the start of the process until the first pod of a job that has waited for it."""
    timeline = _timeline(case)
    async with _watching(client, case.operator, around.namespace, timeline):
        await _send_jobs(client, case, around.namespace, timeline)
        await asyncio.sleep(SETTLE_SECONDS)
        began = time.monotonic()
        async with _process(
            case.operator.command(_place(bench, around.namespace), case.workload, case.mode)
        ) as process:
            meter = _Meter(bench, process.pid, around.node)
            await _until(lambda: timeline.has_begun, process, lambda: timeline.progress)
            first = min(timeline.created.values()) - began
            await _until(lambda: timeline.is_over, process, lambda: timeline.progress)
            await asyncio.sleep(SETTLE_SECONDS)
            return {"times": {"first_write": round(first, 4)}, **meter.read()}


def _timeline(case: Case) -> Timeline:
    workload = case.workload
    return Timeline(
        workload.pods_per_job,
        workload.jobs,
        cleans=workload.cleans,
        only_creates=case.operator.only_creates or not workload.has_node,
    )


class _Meter:
    """What everybody used since it was made."""

    def __init__(self, bench: Bench, operator: int, node: list[int]) -> None:
        self._bench = bench
        self._operator = operator
        self._processes = {"operator": [operator], "node": node, **bench.components()}
        self._logged = bench.plane.audit_log.stat().st_size
        self._began = time.monotonic()
        self._cpu = self._used()

    def read(self) -> dict[str, Any]:
        cpu = {name: used - self._cpu[name] for name, used in self._used().items()}
        others = cpu.pop("machine") - sum(cpu.values())
        requests: Counter[str] = requests_in(self._bench.plane.audit_log, self._logged, self._bench.user)
        return {
            "cpu": {name: round(used, 2) for name, used in {**cpu, "others": max(0.0, others)}.items()},
            "seconds": round(time.monotonic() - self._began, 2),
            "resident_mib": round(resident_mib([self._operator]), 1),
            "peak_resident_mib": round(peak_resident_mib([self._operator]), 1),
            "requests": requests.total(),
            "requests_by_verb": dict(sorted(requests.items())),
        }

    def _used(self) -> dict[str, float]:
        used = {name: cpu_seconds(processes) for name, processes in self._processes.items()}
        return used | {"suite": time.process_time(), "machine": machine_cpu_seconds()}


async def _send_jobs(client: ApiClient, case: Case, namespace: str, timeline: Timeline) -> None:
    workload, path = case.workload, case.operator.jobs_path(namespace)
    began, numbers = time.monotonic(), iter(range(workload.jobs))

    async def send_some() -> None:
        for number in numbers:
            if workload.jobs_per_second:
                await asyncio.sleep(began + number / workload.jobs_per_second - time.monotonic())
            name = f"job-{number}"
            body = msgspec.json.encode(case.operator.job(workload, case.mode, namespace, name))
            timeline.sent[name] = time.monotonic()
            status, answer = await client.send("POST", path, body)
            if status != 201:
                raise MeasurementError(f"the server refused a job: {answer.decode()}")

    await asyncio.gather(*(send_some() for _ in range(SENDERS)))


@asynccontextmanager
async def _watching(
    client: ApiClient, operator: Operator, namespace: str, timeline: Timeline
) -> AsyncIterator[None]:
    core = f"/api/v1/namespaces/{namespace}"
    told = {
        operator.jobs_path(namespace): timeline.saw_job,
        f"{core}/pods": timeline.saw_pod,
        f"{core}/services": timeline.saw_service,
    }
    followers = [_follower(client, path, tell) for path, tell in told.items()]
    for follower in followers:
        await follower.list()
    tasks = [asyncio.create_task(follower.follow()) for follower in followers]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _follower(client: ApiClient, path: str, tell: Callable[[str, Thing, float], None]) -> Follower[Thing]:
    def replace(things: list[Thing]) -> None:
        for thing in things:
            tell("ADDED", thing, time.monotonic())

    return Follower(
        client,
        path,
        Thing,
        replace=replace,
        apply=lambda change, thing: tell(change, thing, time.monotonic()),
    )


@asynccontextmanager
async def _started(bench: Bench, case: Case, namespace: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Ready inside: all that it follows, it has listed and begun to watch."""
    log = bench.plane.audit_log
    logged = log.stat().st_size
    command = case.operator.command(_place(bench, namespace), case.workload, case.mode)

    def is_ready() -> bool:
        seen = requests_in(log, logged, bench.user)
        return all(seen[f"watch {kind}"] for kind in case.operator.follows)

    async with _process(command) as process:
        await _until(is_ready, process, lambda: "it does not watch what it should")
        yield process


@asynccontextmanager
async def _node(bench: Bench, case: Case, namespace: str) -> AsyncIterator[list[int]]:
    if not case.workload.has_node:
        yield []
        return
    kubeconfig = bench.plane.kubeconfig_for("fake-node")
    retries = [str(seconds) for seconds in case.operator.retry_seconds]
    options = [f"--kubeconfig={kubeconfig}", f"--namespace={namespace}", "--retry-seconds", *retries]
    async with _process([sys.executable, "-m", "benchmarks.node", *options], subprocess.PIPE) as process:
        assert process.stdout is not None, "asked for above"
        said = await process.stdout.readline()
        if said.decode().strip() != READY:
            raise MeasurementError("the fake node did not start")
        yield [process.pid]


@asynccontextmanager
async def _process(
    command: list[str], stdout: int = subprocess.DEVNULL
) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(*command, stdout=stdout, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def _place(bench: Bench, namespace: str) -> Place:
    return Place(bench.kubeconfig, Path(bench.folder), namespace)


async def _until(
    holds: Callable[[], bool], process: asyncio.subprocess.Process, told: Callable[[], str]
) -> None:
    """``told`` says how far it has come."""
    last, changed_at = "", time.monotonic()
    while not holds():
        if process.returncode is not None:
            raise MeasurementError(f"the operator ended with code {process.returncode}; {told()}")
        if told() != last:
            last, changed_at = told(), time.monotonic()
        if time.monotonic() - changed_at > STUCK_SECONDS:
            raise MeasurementError(f"nothing has happened for {STUCK_SECONDS:.0f} s: {last}")
        await asyncio.sleep(LOOK_SECONDS)
