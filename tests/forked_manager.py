"""The manager as a process that can be killed, and that starts at once: a fork of one that has imported it.

What runs in it is the command that users run. To start Python for each life would take longer than the life.
"""

import multiprocessing
import os
import signal
import threading
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import msgspec

from paddle_operator.log import LogFormat
from paddle_operator.manager_command import manager

_FORKS = multiprocessing.get_context("forkserver")
# Of a machine that does much else.
_STOP_SECONDS = 60.0
NO_ADDRESS = "0"


class ForkedManager:
    """One process at a time, and how those before it ended is known."""

    def __init__(self, kubeconfig: Path, namespace: str, log: Path) -> None:
        self._arguments = str(kubeconfig), namespace, str(log)
        self._log = log
        self._process: ForkServerProcess | None = None
        self.exit_codes: list[int | None] = []

    def start(self) -> None:
        self._process = _FORKS.Process(target=_manage, args=self._arguments)
        self._process.start()

    def kill_and_start_again(self) -> None:
        """As kill -9 does. It is dead before its successor begins, and before this returns."""
        self._end(signal.SIGKILL)
        self.start()

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def lines(self) -> list[dict[str, Any]]:
        """Of the log of all of them; what does not belong there is an error."""
        return [_parsed(line) for line in self._log.read_bytes().splitlines()]

    def _end(self, number: int) -> None:
        process = self._process
        if process is None or process.pid is None:
            return
        if process.is_alive():
            os.kill(process.pid, number)
        process.join(_STOP_SECONDS)
        if process.is_alive():
            process.kill()
            process.join()
        self.exit_codes.append(process.exitcode)
        process.close()
        self._process = None


def prepare() -> None:
    """Takes a second, while others may do something."""
    _FORKS.set_forkserver_preload(["paddle_operator.manager_command", "paddle_operator.manager"])
    forkserver.ensure_running()


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except msgspec.DecodeError:
        return {"level": "error", "event": line.decode(errors="replace")}


def _end_with_the_tests() -> None:
    """Whoever was to stop us may have been killed."""
    tests = multiprocessing.parent_process()
    if tests is not None:
        tests.join()
        os._exit(1)


def _manage(kubeconfig: str, namespace: str, log: str) -> None:
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(file, 2)
    threading.Thread(target=_end_with_the_tests, daemon=True).start()
    manager(
        kubeconfig=kubeconfig,
        namespace=namespace,
        metrics_bind_address=NO_ADDRESS,
        health_probe_bind_address=NO_ADDRESS,
        log_format=LogFormat.JSON,
    )
