"""This machine as a node: how big it is, and the addresses and ports that one run takes of it."""

import os
import socket
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from paddle_operator.api.names import PORTS_PER_POD

# Paddle's launcher listens on all interfaces, so two jobs cannot share a port although their addresses
# differ: each job has some for itself. All below what Linux hands out by itself (32768 and up).
RUNS = range(20_000, 20_200)
JOBS = range(20_200, 32_700, PORTS_PER_POD)
PODS_PER_NET = NETS = 254


class NoRoom(Exception):  # noqa: N818 (reads as what it is)
    """All ports are taken."""


@dataclass
class Block:
    """The addresses and ports of one run, until it ends. Sockets hold them: a crash leaves none behind."""

    number: int
    _held: list[socket.socket]
    _pods: int = 0

    @classmethod
    def take(cls) -> Self:
        for number, port in enumerate(RUNS):
            if held := _listen(port):
                return cls(number, [held])
        raise NoRoom(f"{len(RUNS)} runs are under way; `pgrep -af 'paddle-operator run'` lists them")

    def ports(self, blocks: int = 1) -> int:
        """The first of so many blocks of ports in a row. The last port of each is held: they are taken."""
        found: list[socket.socket] = []
        for first in JOBS:
            held = _take(first)
            if held is None:
                _close(found)
                found = []
                continue
            found.append(held)
            if len(found) == blocks:
                self._held += found
                return first - (blocks - 1) * JOBS.step
        _close(found)
        needed = blocks * JOBS.step
        raise NoRoom(f"no {needed} ports in a row are free between {JOBS.start} and {JOBS.stop}")

    def address(self) -> str:
        """127.0.1.1, 127.0.1.2, ...; the second run at the same time has 127.1.1.1, and so on.

        A pod that is made anew has a new one, as on a cluster; after 64516 pods the first are free again.
        """
        net, host = divmod(self._pods % (NETS * PODS_PER_NET), PODS_PER_NET)
        self._pods += 1
        return f"127.{self.number}.{net + 1}.{host + 1}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _close(self._held)


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


def _take(first: int) -> socket.socket | None:
    held = _listen(first + JOBS.step - 1)
    if held is not None and not _all_free(range(first, first + JOBS.step - 1)):
        held.close()
        return None
    return held


def _close(sockets: Iterable[socket.socket]) -> None:
    for one in sockets:
        one.close()


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
