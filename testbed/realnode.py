"""A real node in its box: containerd, kubelet, kube-proxy and CoreDNS, started, stopped and waited for."""

import http.client
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from testbed import images, processes, starting
from testbed.box import NODE_ADDRESS, Box
from testbed.components import Layout
from testbed.errors import ControlPlaneError
from testbed.instance import Record
from testbed.node_services import (
    CONTAINERD,
    CONTAINERD_SOCKET,
    HEALTH_ADDRESSES,
    HEALTH_PATHS,
    HEALTH_PORTS,
    KUBELET,
    NODE_NAME,
    SERVICES,
    Hardware,
    NodeLayout,
    command_of,
    load_hardware,
    write_configurations,
)
from testbed.probe import ComponentStatus, Prober

NODE_PATH = f"/api/v1/nodes/{NODE_NAME}"
MOST_STARTS = 20


class RealNode:
    """What is not in its folder is in the kernel: any process can speak of the same node."""

    def __init__(self, layout: Layout, record: Record) -> None:
        self._layout = layout
        self._node = NodeLayout(layout)
        self._box = Box(layout.folder)
        self._prober = Prober(layout, record)
        self._programs = {
            CONTAINERD: Path("/usr/bin/containerd"),
            **{name: Path(path) for name, path in record.programs.items()},
        }

    def start(self, hardware: Hardware) -> None:
        write_configurations(self._node, hardware)
        self.start_service(CONTAINERD)
        self.import_image(images.ensure(images.TINY))
        for service in SERVICES:
            if service != CONTAINERD:
                self.start_service(service)
        starting.wait(f"node {NODE_NAME}", self._is_ready, KUBELET, self._layout)
        self._pretend_gpus(hardware.gpus)
        self._node.ready.touch()

    def start_service(self, service: str) -> None:
        """Healthy on return.

        A kubelet ends, and is started again, while containerd has a socket but is not yet ready to answer.
        """
        command = self._box.inside(*command_of(service, self._programs[service], self._node))
        starting.start(
            service, command, self._layout, lambda: self._is_healthy(service), most_starts=MOST_STARTS
        )

    def stop_service(self, service: str) -> None:
        """By SIGKILL, as in a crash. Pods go on: their keepers are containerd's shims, not containerd."""
        found = self._pids(service)
        if not found:
            raise ControlPlaneError(f"there is no {service} to stop", remedy="python -m testbed up --node")
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while self._is_healthy(service):
            time.sleep(starting.POLL_SECONDS)

    @contextmanager
    def without_power(self) -> Iterator[None]:
        """Every process of the node is killed at once, containers too; afterwards its services start again.

        What is on its disk stays. The control plane goes on, and is told nothing.
        """
        self._kill_everything()
        try:
            yield
        finally:
            for service in SERVICES:
                self.start_service(service)
            # A kubelet that starts anew forgets what it does not know.
            self._pretend_gpus(load_hardware(self._node).gpus)

    def status(self) -> list[ComponentStatus]:
        return [self._status_of(service) for service in SERVICES]

    def import_image(self, archive: Path) -> None:
        done = subprocess.run(
            self._box.inside(
                "ctr", f"--address={CONTAINERD_SOCKET}", "--namespace=k8s.io", "images", "import", archive
            ),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise ControlPlaneError(f"cannot import {archive}: {done.stderr}", remedy="see the message")

    def _kill_everything(self) -> None:
        """In one call of the kernel, which spares the caller and the first process of the box."""
        subprocess.run(self._box.inside("sh", "-c", "kill -9 -1"), check=True)
        while any(process.component in SERVICES for process in processes.find(self._layout.folder)):
            time.sleep(starting.POLL_SECONDS)
            processes.reap()

    def _status_of(self, service: str) -> ComponentStatus:
        pid = next(iter(self._pids(service)), None)
        return ComponentStatus(
            service, pid, HEALTH_ADDRESSES[service], pid is not None and self._is_healthy(service)
        )

    def _pids(self, service: str) -> list[int]:
        """Of the program alone: nsenter, which waits for it outside, and containerd's shims bear its name."""
        return [
            process.pid
            for process in processes.find(self._layout.folder)
            if process.component == service and _is_program(process.pid, self._programs[service])
        ]

    def _is_healthy(self, service: str) -> bool:
        if service == CONTAINERD:
            return self._answers_on_socket()
        connection = http.client.HTTPConnection(NODE_ADDRESS, HEALTH_PORTS[service], timeout=2)
        try:
            connection.request("GET", HEALTH_PATHS[service])
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _answers_on_socket(self) -> bool:
        path = self._box.root / CONTAINERD_SOCKET.removeprefix("/")
        with socket.socket(socket.AF_UNIX) as connection:
            try:
                connection.connect(str(path))
            except OSError:
                return False
        return True

    def _is_ready(self) -> bool:
        try:
            node = self._prober.get(NODE_PATH)
        except ControlPlaneError:
            return False  # the kubelet has not made it yet
        conditions = node.get("status", {}).get("conditions", [])
        return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

    def _pretend_gpus(self, count: int) -> None:
        """The kubelet leaves alone what it does not know, so pods that ask for GPUs are placed and run."""
        if not count:
            return
        amounts = {"nvidia.com/gpu": str(count)}
        self._prober.merge_patch(
            f"{NODE_PATH}/status", {"status": {"capacity": amounts, "allocatable": amounts}}
        )


def _is_program(pid: int, program: Path) -> bool:
    try:
        return Path(f"/proc/{pid}/exe").readlink() == program.resolve()
    except OSError:
        return False
