"""A real node in its box: containerd, kubelet, kube-proxy and CoreDNS, started, stopped and waited for."""

import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from testbed import processes
from testbed.box import NODE_ADDRESS, Box
from testbed.components import Layout
from testbed.errors import ControlPlaneError, tail
from testbed.node_services import (
    CONTAINERD,
    CONTAINERD_SOCKET,
    HEALTH_PATHS,
    HEALTH_PORTS,
    KUBELET,
    NODE_NAME,
    SERVICES,
    NodeLayout,
    command_of,
    write_configurations,
)
from testbed.progress import Progress

START_TIMEOUT_SECONDS = 120.0
POLL_SECONDS = 0.05


class RealNode:
    """What is not in its folder is in the kernel: any process can speak of the same node."""

    def __init__(self, layout: Layout, url: str, token: str, programs: Mapping[str, Path]) -> None:
        self._layout = layout
        self._node = NodeLayout(layout)
        self._box = Box(layout.folder)
        self._url = url
        self._token = token
        self._programs = {CONTAINERD: Path("/usr/bin/containerd"), **programs}

    def start(self) -> None:
        write_configurations(self._node)
        for service in SERVICES:
            self.start_service(service)
        self._wait(f"node {NODE_NAME}", self._is_ready, KUBELET)

    def start_service(self, service: str) -> None:
        """Healthy on return."""
        command = self._box.inside(*command_of(service, self._programs[service], self._node))
        child = processes.start(service, command, self._layout.folder, self._layout.log(service))
        self._wait(service, lambda: self._is_healthy(service), service, child)

    def stop_service(self, service: str) -> None:
        """By SIGKILL, as in a crash. Pods go on: their keepers are containerd's shims, not containerd."""
        for process in processes.find(self._layout.folder):
            if process.component == service and _is_program(process.pid, self._programs[service]):
                with suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)

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

    def _wait(self, title: str, holds: Callable[[], bool], service: str, child: int | None = None) -> None:
        progress = Progress(title, "starting")
        while not holds():
            if child is not None and not processes.is_running(child):
                self._give_up(progress, f"{title} ended", service)
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
        address, _, port = self._url.removeprefix("https://").rpartition(":")
        context = ssl.create_default_context(cafile=self._layout.ca)
        connection = http.client.HTTPSConnection(address, int(port), timeout=2, context=context)
        try:
            connection.request(
                "GET", f"/api/v1/nodes/{NODE_NAME}", headers={"Authorization": f"Bearer {self._token}"}
            )
            answer = json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException, ValueError):
            return False
        finally:
            connection.close()
        conditions = answer.get("status", {}).get("conditions", [])
        return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _is_program(pid: int, program: Path) -> bool:
    """And not nsenter, which waits for it outside."""
    try:
        return os.readlink(f"/proc/{pid}/exe") == str(program.resolve())
    except OSError:
        return False
