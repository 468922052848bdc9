"""One pod from its binding to its end: what a kubelet does for it, with processes in place of containers."""

import asyncio
import os
import shutil
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from paddle_operator.api.meta import Key, Manifest
from paddle_operator.api.names import LABEL_ATTEMPT, TERMINATION_MESSAGE_PATH, port_range
from paddle_operator.api.paddlejob import is_port

from .images import Images
from .logs import begin_run, furnish_launcher, log_file
from .names import Names
from .pod_status import ContainerReport, PodReport, running, terminated, waiting
from .process import CannotStart, ContainerProcess, Mount, Order
from .reports import termination_message
from .supplies import NotYet
from .variables import Surroundings, environment, expand
from .volumes import Shelf

FIRST_PAUSE, LONGEST_PAUSE, FORGIVEN_AFTER = 10.0, 300.0, 600.0
A_MOMENT = 0.05


@dataclass(frozen=True)
class Place:
    """What all pods of the node share."""

    images: Mapping[Key, Images]
    """By the job."""
    shelf: Shelf
    logs: Path
    scratch: Path
    isolates: bool
    now: Callable[[], datetime]
    changed: Callable[[], asyncio.Event]
    """An event that is set when a config map has come or gone."""
    hosts: str
    """The machine's own hosts file, to which each pod adds its name."""
    names: Names


@dataclass
class PodLife:
    place: Place
    around: Surroundings
    publish: Callable[[Manifest], Awaitable[None]]
    """Writes the pod's status."""
    report: PodReport = field(init=False)
    _running: dict[str, ContainerProcess] = field(default_factory=dict)
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _idle: set[str] = field(default_factory=set)
    """Containers of which nothing runs, nor is being started."""
    ending: bool = False
    _hosts_text: str = ""

    def __post_init__(self) -> None:
        spec = self.around.pod["spec"]
        self.report = PodReport(
            address=self.around.address,
            node_address=self.around.node_address,
            started=self.place.now(),
            restarts_failures=spec.get("restartPolicy") == "OnFailure",
            initial=[ContainerReport(one["name"], one["image"]) for one in spec.get("initContainers") or ()],
            main=[ContainerReport(one["name"], one["image"]) for one in spec["containers"]],
        )

    async def live(self) -> None:
        """Until every container has ended for good. When it is cancelled, all of them are killed."""
        await self._tell()
        spec = self.around.pod["spec"]
        for container, report in zip(spec.get("initContainers") or (), self.report.initial, strict=True):
            await self._run_together([(container, report)])
            if self.ending or report.exit_code:
                return
        await self._run_together(list(zip(spec["containers"], self.report.main, strict=True)))

    async def end(self, grace: float, reason: str = "") -> None:
        """SIGTERM, and SIGKILL when the grace period is over. Returns when nothing runs any more."""
        self.ending = True
        self.report.reason = self.report.reason or reason
        for process in self._running.values():
            process.terminate()
        for name in self._idle:
            self._tasks[name].cancel()
        pending = set(self._tasks.values())
        if pending:
            _, pending = await asyncio.wait(pending, timeout=grace)
        while pending:  # also for what was just being started
            await asyncio.gather(*(process.kill() for process in [*self._running.values()]))
            _, pending = await asyncio.wait(pending, timeout=A_MOMENT)
        await self._tell()

    # Containers.

    async def _run_together(self, containers: list[tuple[Manifest, ContainerReport]]) -> None:
        async with asyncio.TaskGroup() as tasks:
            for container, report in containers:
                self._tasks[report.name] = tasks.create_task(self._run(container, report))

    async def _run(self, container: Manifest, report: ContainerReport) -> None:
        """Again and again, if the restart policy says so: at once, then with longer and longer pauses."""
        clock = asyncio.get_running_loop().time
        pause = 0.0
        while True:
            begun = clock()
            code = await self._run_once(container, report)
            if self.ending or code == 0 or not self.report.restarts_failures:
                return
            if clock() - begun > FORGIVEN_AFTER:
                pause = 0.0
            report.last_state = report.state
            report.state = waiting("CrashLoopBackOff", f"exit code {code}; again in {pause:.0f} s")
            await self._tell()
            with self._nothing_runs(report):
                await asyncio.sleep(pause)
            pause = min(2 * pause or FIRST_PAUSE, LONGEST_PAUSE)
            report.restarts += 1

    async def _run_once(self, container: Manifest, report: ContainerReport) -> int:
        log = self._log(container)
        order = await self._prepared(container, report)
        self._report_file(container).unlink(missing_ok=True)  # that of the run before
        begun_at = begin_run(log, self._attempt, report.restarts)
        started = self.place.now()
        try:
            process = await ContainerProcess.start(order, log)
        except CannotStart as error:
            with log.open("a") as file:
                file.write(f"{order.command[0]}: cannot be run: {error}\n")
            report.state = terminated(error.code, started, self.place.now(), "StartError")
            await self._tell()
            return error.code
        self._running[report.name] = process
        report.state = running(started)
        if self.ending:  # since it was being started
            process.terminate()
        try:
            await self._tell()
            code = await process.wait()
        finally:
            del self._running[report.name]
            await process.kill()
        message = termination_message(self._report_file(container), log, begun_at, code)
        report.state = terminated(code, started, self.place.now(), message=message)
        await self._tell()
        return code

    async def _prepared(self, container: Manifest, report: ContainerReport) -> Order:
        """Waits for what the container refers to, as long as it takes."""
        while True:
            changed = self.place.changed()
            try:
                return self._order(container)
            except NotYet as missing:
                report.state = waiting(missing.reason, str(missing))
            except (OSError, ValueError, KeyError) as error:  # a folder that cannot be made, say
                report.state = waiting("CreateContainerError", str(error))
            await self._tell()
            with self._nothing_runs(report):
                await changed.wait()

    @contextmanager
    def _nothing_runs(self, report: ContainerReport) -> Iterator[None]:
        self._idle.add(report.name)
        try:
            yield
        finally:
            self._idle.discard(report.name)

    def _order(self, container: Manifest) -> Order:
        metadata = self.around.pod["metadata"]
        images = self.place.images[Key(metadata["namespace"], metadata["ownerReferences"][0]["name"])]
        wanted = images.invocation(container)
        variables = environment(container, self.around)
        return Order(
            command=tuple(expand(word, variables) for word in wanted.command),
            environment=_inherited() | _own_ports(variables) | variables | self._own_files(container),
            folder=str(wanted.folder),
            isolated=self.place.isolates,
            host_name=self._name,
            scratch=str(self.place.scratch),
            mounts=self._mounts(container) if self.place.isolates else (),
        )

    def _own_files(self, container: Manifest) -> dict[str, str]:
        """Where it says something of itself, and where Paddle's launcher writes what its processes print.

        By itself that writes into ./log, and pods here share their folders; nor would anybody find it. And
        what a try has printed is not overwritten by the next one before it was shown.
        """
        folder = self._launcher_folder(container)
        furnish_launcher(folder, self._log(container))
        return {
            TERMINATION_MESSAGE_PATH: str(self._report_file(container)),
            "PADDLE_LOG_DIR": str(folder),
            "PADDLE_LOG_OVERWRITE": "0",
        }

    def _launcher_folder(self, container: Manifest) -> Path:
        return (self._own_folder / "launcher" / str(container["name"])).absolute()

    def _log(self, container: Manifest) -> Path:
        return log_file(self.place.logs, self.around.key(self._name), container["name"])

    @property
    def _name(self) -> str:
        return str(self.around.pod["metadata"]["name"])

    @property
    def _attempt(self) -> int:
        written = str((self.around.pod["metadata"].get("labels") or {}).get(LABEL_ATTEMPT, ""))
        return int(written) if written.isdigit() else 0

    @property
    def _own_folder(self) -> Path:
        return self.place.shelf.pods / str(self.around.pod["metadata"]["uid"])

    def _report_file(self, container: Manifest) -> Path:
        """In place of the file of the container's termination message."""
        return self._launcher_folder(container) / "termination-message"

    def clear_away(self) -> None:
        """What dies with its pod. Nothing of it runs any more."""
        shutil.rmtree(self._own_folder, ignore_errors=True)

    def _mounts(self, container: Manifest) -> tuple[Mount, ...]:
        self.write_hosts()
        hosts = Mount("/etc/hosts", str(self._hosts))
        volumes = self.place.shelf.mounts(container, self.around.pod)
        folders = (self._launcher_folder(container), self._log(container).parent.absolute())
        # A volume at /tmp, say, would hide them.
        hidden = [one for one in folders if any(one.is_relative_to(mount.target) for mount in volumes)]
        return (*volumes, hosts, *(Mount(str(folder), str(folder)) for folder in hidden))

    def write_hosts(self) -> None:
        """Into the same file: containers that run see the new names too."""
        aliases = [
            f"{alias['ip']} {' '.join(alias.get('hostnames') or ())}"
            for alias in self.around.pod["spec"].get("hostAliases") or ()
        ]
        names = self.place.names.lines(self.around.pod["metadata"]["namespace"])
        own = f"{self.around.address} {self._name}"
        text = "\n".join([self.place.hosts, own, *aliases, *names, ""])
        if text != self._hosts_text:
            self._hosts_text = text
            self._hosts.parent.mkdir(parents=True, exist_ok=True)
            self._hosts.write_text(text)

    @property
    def _hosts(self) -> Path:
        return self._own_folder / "hosts"

    async def _tell(self) -> None:
        await self.publish(self.report.status())


def _own_ports(variables: Mapping[str, str]) -> dict[str, str]:
    """Paddle's launcher draws ports for all interfaces, which pods here share."""
    port = variables.get("PADDLE_PORT", "")
    return {"PORT_RANGE": port_range(int(port))} if is_port(port) else {}


def _inherited() -> dict[str, str]:
    """The user's own environment, in which `python` is the one that runs us; nothing of an outer job."""
    outer = {name: value for name, value in os.environ.items() if not name.startswith(("PADDLE", "POD_IP"))}
    path = os.pathsep.join([str(Path(sys.executable).parent), outer.get("PATH", os.defpath)])
    return outer | {"PATH": path, "PYTHONUNBUFFERED": "1"}
