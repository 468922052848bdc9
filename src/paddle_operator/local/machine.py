"""This machine as a node: how big it is, and the addresses and ports that one run takes of it."""

import os
import socket
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from paddle_operator.api.names import PORTS_PER_POD

# Paddle's launcher listens on all interfaces, so two jobs cannot share a port although their addresses
# differ: each run takes a block of ports, each job of it a few. Below what Linux hands out by itself.
FIRST_PORT = 20000
PORTS_PER_RUN = 200
PORTS_PER_JOB = PORTS_PER_POD
RUNS = 60
PODS_PER_NET = 254


class NoRoom(Exception):  # noqa: N818 (reads as what it is)
    """Every block of ports is taken."""


@dataclass
class Block:
    """What one run has for itself until it ends. A socket holds the number: no crash leaves one behind."""

    number: int
    _held: socket.socket
    _jobs: int = 0
    _pods: int = 0
    _free: list[str] = field(default_factory=list)

    @classmethod
    def take(cls) -> Self:
        for number in range(RUNS):
            if held := _listen(_port(number)):
                return cls(number, held)
        raise NoRoom(
            f"all {RUNS} blocks of ports from {FIRST_PORT} on are taken: are so many runs under way? "
            "Stop one (`pgrep -af 'paddle-operator run'` lists them)"
        )

    def port(self) -> int:
        """One for a job's launcher; the ones behind it are that job's too."""
        while self._jobs < PORTS_PER_RUN // PORTS_PER_JOB - 1:
            self._jobs += 1
            first = _port(self.number) + self._jobs * PORTS_PER_JOB
            if _all_free(range(first, first + PORTS_PER_JOB)):
                return first
        raise NoRoom(f"one run has ports for {PORTS_PER_RUN // PORTS_PER_JOB - 1} jobs; split the file")

    def address(self) -> str:
        """127.0.1.1, 127.0.1.2, ...; the second run at the same time has 127.1.1.1, and so on."""
        if self._free:
            return self._free.pop()
        net, host = divmod(self._pods, PODS_PER_NET)
        self._pods += 1
        return f"127.{self.number}.{net + 1}.{host + 1}"

    def give_back(self, address: str) -> None:
        self._free.append(address)

    def release(self) -> None:
        self._held.close()


@dataclass(frozen=True)
class Machine:
    cpus: int
    memory: int
    isolates: bool
    """Whether containers get namespaces of their own."""
    has_gpu: bool = False

    @classmethod
    def here(cls, *, isolates: bool) -> Self:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        has_gpu = Path("/dev/nvidiactl").exists()
        return cls(len(os.sched_getaffinity(0)), memory, isolates, has_gpu)

    @property
    def capacity(self) -> dict[str, str]:
        return {"cpu": str(self.cpus), "memory": str(self.memory)}


def _port(number: int) -> int:
    return FIRST_PORT + number * PORTS_PER_RUN


def _listen(port: int) -> socket.socket | None:
    taken = socket.socket()
    try:
        taken.bind(("127.0.0.1", port))
        taken.listen(1)
    except OSError:
        taken.close()
        return None
    return taken


def _all_free(ports: range) -> bool:
    with ExitStack() as stack:
        for port in ports:
            tried = stack.enter_context(socket.socket())
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind(("", port))
            except OSError:
                return False
    return True
