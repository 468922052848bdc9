"""What `paddle-operator run` does, step by step."""

import asyncio
import functools
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from paddle_operator.api.crd import paddle_job_schema
from paddle_operator.api.documents import BadDocument
from paddle_operator.api.meta import Key, Manifest
from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.api.resources import PADDLE_JOBS
from paddle_operator.api.validate import not_served
from paddle_operator.local.images import BadImage, Images
from paddle_operator.local.machine import Block, Machine, NoRoom
from paddle_operator.local.names import Names
from paddle_operator.local.node import Bell, LocalNode
from paddle_operator.local.pod_life import Place
from paddle_operator.local.process import can_isolate
from paddle_operator.local.supplies import Supplies
from paddle_operator.local.support import (
    Host,
    claims,
    paddle_is_installed,
    refusals,
    unused_images,
    warnings,
    without_accelerators,
)
from paddle_operator.local.volumes import Shelf
from paddle_operator.log import LogFormat, LogLevel, configure
from paddle_operator.memory.cluster import MemoryCluster
from paddle_operator.runtime.clock import SteadyClock

from .changes import Setting
from .duration import BadDuration, seconds
from .gather import Gatherer
from .metrics import BadMetric, Metric
from .report import report
from .request import (
    Refused,
    Request,
    complaint,
    dropped_variables_in,
    load,
    read_sources,
    refuse_where,
)
from .screen import Output, Screen, screen_for
from .session import Result, Session
from .workspace import Workspace, volumes_folder, workspace


@dataclass(frozen=True)
class Options:
    """As they stand on the command line."""

    files: list[str]
    namespace: str = "default"
    timeout: str = ""
    settings: list[str] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    keep: Path | None = None
    volumes: Path | None = None
    logs: bool = False
    metric: str | None = None
    on_stderr: bool = False
    """Show it there, because stdout is for something else."""


@dataclass(frozen=True)
class Prepared:
    """Checked, and ready to run."""

    request: Request
    images: dict[Key, Images]
    metric: Metric
    machine: Machine
    timeout_seconds: float | None
    volumes: Path
    warnings: list[str]

    @property
    def jobs(self) -> list[PaddleJob]:
        found = [job for _, job in self.request.jobs]
        return found if self.machine.has_gpu else [without_accelerators(job) for job in found]


def run_jobs(options: Options, warn: Callable[[str], None]) -> Result:
    """From start to end; Refused if there is nothing that can be run."""
    prepared = prepare(options)
    for line in prepared.warnings:
        warn(line)
    console = Output(stderr=options.on_stderr)
    with workspace(options.keep) as place:
        screen = screen_for(console, logs=options.logs)
        try:
            result = execute(prepared, screen, place)
        finally:
            with suppress(OSError):
                screen.close()
        with suppress(OSError):  # nobody is there to read it
            report(result, console, place.logs)
    return result


def prepare(options: Options) -> Prepared:
    """Refused, with all that is wrong, before anything is made."""
    if sys.platform != "linux":
        raise Refused([f"run needs Linux, not {sys.platform}; use a virtual machine or a cluster"])
    try:
        metric = Metric.of(options.metric)
        timeout_seconds = seconds(options.timeout) if options.timeout else None
        settings = [Setting.of(written) for written in options.settings]
        entries = Images.of(options.images, Path.cwd()).known
    except BadDocument as bad:
        raise Refused(map(str, bad.problems)) from None
    except (BadMetric, BadImage, BadDuration) as bad:
        raise Refused([str(bad)]) from None
    request = load(read_sources(options.files), options.namespace, _edit(settings))
    machine = Machine.here(isolates=_isolates())
    images = {job.metadata.key: Images(entries, source.folder) for source, job in request.jobs}
    hosts = {key: _host(machine, images[key], request, key.namespace) for key in images}
    _refuse_unused_images(options, [job for _, job in request.jobs])
    refuse_where(request, lambda job: [*not_served(job), *refusals(job, hosts[job.metadata.key])])
    told = [
        complaint(source, job, problem) for source, job in request.jobs for problem in warnings(job, machine)
    ]
    told += [*dropped_variables_in(request), *request.passed_over]
    volumes = _make_folders(options, needs_volumes=any(claims(job) for _, job in request.jobs))
    told += _empty_claims(request, volumes)
    return Prepared(request, images, metric, machine, timeout_seconds, volumes, told)


def _empty_claims(request: Request, volumes: Path) -> Iterator[str]:
    """A new claim is an empty folder, and a script that looks for its data there does not know why."""
    keys = {Key(job.metadata.namespace, claim) for _, job in request.jobs for claim in claims(job)}
    for key in sorted(keys):
        folder = volumes / key.namespace / key.name
        if not folder.is_dir() or not any(folder.iterdir()):
            yield f"claim {key.name} is the empty folder {folder}: put there what the job shall find in it"


def execute(prepared: Prepared, screen: Screen, place: Workspace) -> Result:
    with place.operator_log.open("w") as file:
        configure(LogLevel.INFO, LogFormat.CONSOLE, file)
        try:
            with Block.take() as block:
                session = _session(prepared, place, block, screen)
                return asyncio.run(session.run(prepared.jobs, list(prepared.request.config_maps.values())))
        except NoRoom as error:
            raise Refused([str(error)]) from None


def _session(prepared: Prepared, place: Workspace, block: Block, screen: Screen) -> Session:
    clock = SteadyClock()
    memory = MemoryCluster(clock, {PADDLE_JOBS: paddle_job_schema()})
    supplies = Supplies(memory, prepared.request.secrets)
    bell = Bell()
    shared = Place(
        images=prepared.images,
        shelf=Shelf(place.pods, prepared.volumes, supplies),
        logs=place.logs,
        scratch=place.scratch,
        isolates=prepared.machine.isolates,
        now=clock,
        changed=bell.next_ring,
        hosts=Path("/etc/hosts").read_text(),
        names=Names(),
    )
    node = LocalNode(memory, supplies, shared, block, prepared.machine.capacity, bell)
    gatherer = Gatherer(memory, place.logs, prepared.metric, clock)
    return Session(memory, node, block, gatherer, screen, place, clock, prepared.timeout_seconds)


def _refuse_unused_images(options: Options, jobs: list[PaddleJob]) -> None:
    named = [entry.partition("=")[0] for entry in options.images]
    if unused := unused_images(named, jobs):
        raise Refused(
            f"--image {name}: no container has this image; there are {', '.join(sorted(found))}"
            for name, found in unused.items()
        )


def _isolates() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(can_isolate(Path(folder)))


def _entries(documents: Mapping[Key, Manifest], namespace: str) -> dict[str, set[str]]:
    parts = ("data", "stringData", "binaryData")
    return {
        key.name: {entry for part in parts for entry in document.get(part) or {}}
        for key, document in documents.items()
        if key.namespace == namespace
    }


def _make_folders(options: Options, *, needs_volumes: bool) -> Path:
    """Those that the user names, and that of the volumes if there are any; returns the latter."""
    volumes = (options.volumes or volumes_folder()).absolute()
    wanted = {"--keep": options.keep, "--volumes": volumes if needs_volumes or options.volumes else None}
    for option, folder in wanted.items():
        try:
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            advice = f"name a folder that can be made with {option}"
            raise Refused([f"{option} {folder}: {error.strerror or error}; {advice}"]) from None
    if options.keep is not None and any(options.keep.iterdir()):
        raise Refused([f"--keep {options.keep}: is there already and not empty; name a new folder"])
    return volumes


def _edit(settings: list[Setting]) -> Callable[[Manifest], Manifest]:
    return lambda document: functools.reduce(lambda changed, one: one.apply(changed), settings, document)


def _host(machine: Machine, images: Images, request: Request, namespace: str) -> Host:
    return Host(
        machine,
        images,
        has_paddle=paddle_is_installed(),
        config_maps=_entries(request.config_maps, namespace),
        secrets=_entries(request.secrets, namespace),
    )
