import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from testbed import binaries, processes, starting
from testbed.box import COMPONENT as BOX
from testbed.box import Box, require_means
from testbed.components import (
    API_SERVER,
    CONTROLLER_MANAGER,
    ETCD,
    HEALTH_PATHS,
    SCHEDULER,
    Layout,
    flags_of,
)
from testbed.errors import ControlPlaneError
from testbed.instance import (
    ADMIN,
    USERS,
    Record,
    instance_folder,
    kept_ports,
    load_record,
    locked_folder,
    prepare,
    reserved_ports,
)
from testbed.node_services import Hardware, NodeLayout, load_hardware
from testbed.probe import ComponentStatus, Prober
from testbed.realnode import RealNode

DEFAULT_SERVICE_ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"


class ControlPlane:
    """etcd, kube-apiserver and kube-controller-manager (and kube-scheduler if asked for) on loopback.

    With a real node, of which a machine can have only one at a time, it listens on the link to that node.

    Any number can run side by side, each under a name. All state is on disk and in the processes: a second
    object with the same name, also in another process, speaks of the same control plane. As a context manager
    it is up inside and gone afterwards. Attributes about addresses and credentials need it to be up.
    """

    def __init__(
        self, name: str = "default", *, scheduler: bool = False, node: Hardware | None = None
    ) -> None:
        self.name = name
        self.folder = instance_folder(name)
        self._hardware = node or Hardware()
        self._layout = Layout(self.folder, node is not None)
        self._components = (
            ETCD,
            API_SERVER,
            CONTROLLER_MANAGER,
            *([SCHEDULER] if scheduler or node is not None else []),
        )

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.down()

    def up(self) -> bool:
        """Ready on return: pods can be created in the default namespace. False if it already was up.

        A leftover that is not healthy is removed first. On failure no process is left, but the logs are.
        """
        if self._is_already_up():
            return False
        if self._layout.node:
            require_means()
        node_programs = binaries.NODE_PROGRAMS if self._layout.node else ()
        programs = binaries.ensure([*self._components, "kubectl", *node_programs])
        with locked_folder(self.folder):
            if self._is_already_up():
                return False
            self._clean()
            try:
                self._start(programs)
            except BaseException:
                processes.kill_all(self.folder)
                if self._layout.node:
                    Box(self.folder).remove_traces()
                raise
        return True

    def down(self) -> list[str]:
        """No process and no file of this instance is left; returns what was found, if anything."""
        existed = self.folder.exists()
        # Also without a folder there may be processes: somebody may have deleted it by hand.
        with locked_folder(self.folder):
            found = self._clean()
            self.folder.rmdir()
        with suppress(OSError):
            # Not empty as long as there are other instances.
            self.folder.parent.rmdir()
        # A service of a node is two processes: itself, and one that waits for it outside of the box.
        once = list(dict.fromkeys(found))
        return [*once, str(self.folder)] if existed else once

    def status(self) -> list[ComponentStatus]:
        """One entry per component that should run, those of a real node last; empty: there is no instance."""
        record = load_record(self._layout)
        if record is None:
            return []
        pids = {process.component: process.pid for process in processes.find(self.folder)}
        prober = Prober(self._layout, record)
        statuses = [
            ComponentStatus(
                component,
                pids.get(component),
                f"https://{record.address(component)}:{record.ports[component]}",
                component in pids and prober.is_ok(component, HEALTH_PATHS[component]),
            )
            for component in record.components
        ]
        return [*statuses, *(RealNode(self._layout, record).status() if record.has_node else ())]

    @contextmanager
    def without(self, component: str) -> Iterator[None]:
        """A component is away in here: killed, as in a crash. Afterwards all is well again, whatever happens.

        What it has on disk stays. Nobody else is killed.
        """
        record = self._record()
        if component not in record.components:
            raise ControlPlaneError(
                f"the testbed {self.name!r} has no {component}",
                remedy=f"take one of {', '.join(record.components)}",
            )
        with kept_ports(record, component):
            self._kill(component)
            try:
                yield
            finally:
                self._start_component(component, Path(record.programs[component]), record)
                # One that has lost its etcd needs some seconds to find it again.
                prober = Prober(self._layout, record)
                starting.wait(
                    f"{API_SERVER} with {component}",
                    lambda: prober.is_ok(API_SERVER, DEFAULT_SERVICE_ACCOUNT),
                    API_SERVER,
                    self._layout,
                )

    @property
    def url(self) -> str:
        return self._record().url

    @property
    def token(self) -> str:
        """The administrator's, as in `kubeconfig`."""
        return self.token_for(ADMIN)

    @property
    def kubeconfig(self) -> Path:
        return self.kubeconfig_for(ADMIN)

    @property
    def node(self) -> RealNode:
        record = self._record()
        if not record.has_node:
            raise ControlPlaneError(
                f"the testbed {self.name!r} has no real node",
                remedy=f"{self._command('down')}, then `up --node`; or take another --name",
            )
        return RealNode(self._layout, record)

    @property
    def kubectl(self) -> Path:
        return Path(self._record().programs["kubectl"])

    @property
    def ca_file(self) -> Path:
        return self._layout.ca

    @property
    def audit_log(self) -> Path:
        """JSON lines, one per finished request (long ones also when they start), level Metadata."""
        return self._layout.audit_log

    def token_for(self, user: str) -> str:
        _require_known(user)
        return self._record().tokens[user]

    def kubeconfig_for(self, user: str) -> Path:
        """Operators and `author` have no rights until a test grants some; `admin` has all."""
        _require_known(user)
        self._record()
        return self._layout.kubeconfig(user)

    def _record(self) -> Record:
        record = load_record(self._layout)
        if record is None:
            raise ControlPlaneError(f"the testbed {self.name!r} is not up", remedy=self._command("up"))
        return record

    def _command(self, verb: str) -> str:
        return f"python -m testbed {verb} --name {self.name}"

    def _is_already_up(self) -> bool:
        statuses = self.status()
        if not statuses or not all(status.healthy for status in statuses):
            return False
        record = self._record()
        if not Prober(self._layout, record).is_ok(API_SERVER, DEFAULT_SERVICE_ACCOUNT):
            return False
        if record.has_node and not NodeLayout(self._layout).ready.exists():
            return False
        if difference := self._difference(record):
            raise ControlPlaneError(
                f"the testbed {self.name!r} is up, but {difference}",
                remedy=f"{self._command('down')}, then `up` again; or take another --name",
            )
        return True

    def _difference(self, record: Record) -> str:
        """Between what is up and what is asked for: what is not asked for may be there."""
        if record.has_node != self._layout.node:
            return "with a real node" if record.has_node else "without a real node"
        if missing := {*self._components} - {*record.components}:
            return f"without {', '.join(sorted(missing))}"
        if self._hardware != Hardware() and self._hardware != load_hardware(NodeLayout(self._layout)):
            return "its node has other GPUs or labels"
        return ""

    def _clean(self) -> list[str]:
        """Ends all processes and empties the folder, but leaves it: it carries the lock."""
        killed: list[str] = []
        # Made before anything of a node, so it tells of one also if `up` was killed half-way.
        had_node = NodeLayout(self._layout).folder.exists()
        # Once more if need be: `up` may have been killed at the very moment when it started a process.
        while processes.find(self.folder) or any(self.folder.iterdir()):
            killed += [process.component for process in processes.kill_all(self.folder)]
            if had_node:
                killed += Box(self.folder).remove_traces()
            for path in self.folder.iterdir():
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()
        return killed

    def _start(self, programs: dict[str, Path]) -> None:
        with reserved_ports([*self._components, "etcd-peer"]) as ports:
            record = prepare(self._layout, self._components, ports, programs)
            if self._layout.node:
                NodeLayout(self._layout).folder.mkdir()
                Box(self.folder).start(self._layout.log(BOX))
            for component in self._components:
                self._start_component(component, programs[component], record)
        if self._layout.node:
            RealNode(self._layout, record).start(self._hardware)

    def _kill(self, component: str) -> None:
        while found := [one for one in processes.find(self.folder) if one.component == component]:
            for process in found:
                with suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
            time.sleep(starting.POLL_SECONDS)
            processes.reap()

    def _start_component(self, component: str, program: Path, record: Record) -> None:
        prober = Prober(self._layout, record)
        wanted = [(component, HEALTH_PATHS[component])]
        if component == CONTROLLER_MANAGER:
            # It makes the account, without which pods are refused.
            wanted.append((API_SERVER, DEFAULT_SERVICE_ACCOUNT))
        command = [str(program), *flags_of(component, self._layout, record.ports)]
        starting.start(
            component, command, self._layout, lambda: all(prober.is_ok(one, path) for one, path in wanted)
        )


def _require_known(user: str) -> None:
    if user not in USERS:
        raise ControlPlaneError(
            f"the testbed has no user {user!r}", remedy=f"use one of {', '.join(USERS)}, or add it to USERS"
        )
