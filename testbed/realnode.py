"""A real node in its box: containerd, kubelet, kube-proxy and CoreDNS, started, stopped and waited for."""

import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from testbed import images, processes
from testbed.box import NODE_ADDRESS, Box
from testbed.components import API_SERVER, Layout
from testbed.errors import ControlPlaneError, tail
from testbed.instance import ADMIN, Record
from testbed.node_services import (
    CONTAINERD,
    CONTAINERD_SOCKET,
    HEALTH_PATHS,
    HEALTH_PORTS,
    KUBELET,
    NODE_NAME,
    SERVICES,
    Hardware,
    NodeLayout,
    command_of,
    write_configurations,
)
from testbed.progress import Progress

START_TIMEOUT_SECONDS = 120.0
POLL_SECONDS = 0.05
MOST_STARTS = 20

Manifest = dict[str, Any]


class RealNode:
    """What is not in its folder is in the kernel: any process can speak of the same node."""

    def __init__(self, layout: Layout, record: Record) -> None:
        self._layout = layout
        self._node = NodeLayout(layout)
        self._box = Box(layout.folder)
        self._record = record
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
        self._wait(f"node {NODE_NAME}", self._is_ready, KUBELET)
        if hardware.gpus:
            self._pretend_gpus(hardware.gpus)
        self._node.ready.touch()

    def start_service(self, service: str) -> None:
        """Healthy on return. One that ends at once is started again, as systemd would do it.

        A kubelet does so while containerd has a socket, but is not yet ready to answer.
        """
        command = self._box.inside(*command_of(service, self._programs[service], self._node))
        starts = 0
        child = -1

        def is_healthy() -> bool:
            nonlocal starts, child
            if not processes.is_running(child) and starts < MOST_STARTS:
                starts += 1
                child = processes.start(service, command, self._layout.folder, self._layout.log(service))
            return self._is_healthy(service)

        self._wait(service, is_healthy, service)

    def stop_service(self, service: str) -> None:
        """By SIGKILL, as in a crash. Pods go on: their keepers are containerd's shims, not containerd."""
        found = [
            process.pid
            for process in processes.find(self._layout.folder)
            if process.component == service and _is_program(process.pid, self._programs[service])
        ]
        if not found:
            raise ControlPlaneError(f"there is no {service} to stop", remedy="python -m testbed up --node")
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while self._is_healthy(service):
            time.sleep(POLL_SECONDS)

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

    def _wait(self, title: str, holds: Callable[[], bool], service: str) -> None:
        progress = Progress(title, "starting")
        while not holds():
            if progress.elapsed_seconds > START_TIMEOUT_SECONDS:
                self._give_up(progress, f"{title} was not ready after {START_TIMEOUT_SECONDS:.0f} s", service)
            progress.tick()
            time.sleep(POLL_SECONDS)
        progress.done("ready")

    def _give_up(self, progress: Progress, problem: str, service: str) -> NoReturn:
        progress.stop()
        log = self._layout.log(service)
        raise ControlPlaneError(f"{problem}; the end of {log}:\n{tail(log)}", remedy="see the log")

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
            answer = self._ask("GET", f"/api/v1/nodes/{NODE_NAME}")
        except (OSError, http.client.HTTPException, ValueError):
            return False
        conditions = answer.get("status", {}).get("conditions", [])
        return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

    def _pretend_gpus(self, count: int) -> None:
        """The kubelet leaves alone what it does not know, so pods that ask for GPUs are placed and run."""
        amounts = {"nvidia.com/gpu": str(count)}
        body = {"status": {"capacity": amounts, "allocatable": amounts}}
        self._ask("PATCH", f"/api/v1/nodes/{NODE_NAME}/status", body)

    def _ask(self, method: str, path: str, body: Manifest | None = None) -> Manifest:
        context = ssl.create_default_context(cafile=self._layout.ca)
        port = self._record.ports[API_SERVER]
        connection = http.client.HTTPSConnection(self._record.api_address, port, timeout=5, context=context)
        headers = {
            "Authorization": f"Bearer {self._record.tokens[ADMIN]}",
            "Content-Type": "application/merge-patch+json",
        }
        try:
            connection.request(method, path, json.dumps(body) if body else None, headers)
            answer: Manifest = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return answer


def _is_program(pid: int, program: Path) -> bool:
    """And not nsenter, which waits for it outside."""
    try:
        return Path(f"/proc/{pid}/exe").readlink() == program.resolve()
    except OSError:
        return False
