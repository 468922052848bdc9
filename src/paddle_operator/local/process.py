"""A container that runs: the keeper, seen from the operator."""

import asyncio
import errno
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

KEEPER = Path(__file__).with_name("keeper.py")


@dataclass(frozen=True)
class Mount:
    target: str
    source: str
    """Empty: memory of its own, gone with the container."""
    read_only: bool = False


@dataclass(frozen=True)
class Order:
    """What the keeper is told; the names are those of its JSON."""

    command: tuple[str, ...]
    environment: dict[str, str]
    folder: str
    isolated: bool
    host_name: str
    scratch: str
    mounts: tuple[Mount, ...] = ()


class CannotStart(Exception):  # noqa: N818 (reads as what it is)
    """The container's command could not be run; the text says why, ``code`` is what a shell would return."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class ContainerProcess:
    """Ends when its command ends, when it is killed, and when this process is gone."""

    def __init__(self, keeper: asyncio.subprocess.Process) -> None:
        assert keeper.stdin is not None
        assert keeper.stdout is not None
        self._keeper = keeper
        self._orders = keeper.stdin
        self._answers = keeper.stdout

    @classmethod
    async def start(cls, order: Order, log: Path) -> Self:
        with log.open("ab") as output:
            keeper = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-S", KEEPER,
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=output,
                start_new_session=True,  # Ctrl-C at the terminal is for the operator alone
            )  # fmt: skip
        process = cls(keeper)
        try:
            process._orders.write(json.dumps(asdict(order)).encode() + b"\n")
            answer = await process._answer()
        except BaseException:
            await process.kill()
            raise
        if not answer.get("started"):
            await process.kill()
            code = 126 if answer.get("code") == errno.EACCES else 127
            raise CannotStart(str(answer.get("problem", "its keeper was killed")), code)
        return process

    async def wait(self) -> int:
        """The exit code; 137 if the keeper itself was killed."""
        answer = await self._answer()
        await self._keeper.wait()
        return int(str(answer.get("exit", 137)))

    def terminate(self) -> None:
        if not self._orders.is_closing():
            self._orders.write(b"T")

    async def kill(self) -> None:
        self._orders.close()
        await self._keeper.wait()

    async def _answer(self) -> dict[str, object]:
        line = await self._answers.readline()
        said: dict[str, object] = json.loads(line) if line else {}
        return said


async def can_isolate(folder: Path) -> bool:
    """Whether this kernel gives us namespaces: asked of itself, by the way that a container goes."""
    scratch = folder / "scratch"
    scratch.mkdir()
    order = Order(
        ("true",), {"PATH": "/usr/bin:/bin"}, "/", isolated=True, host_name="p", scratch=str(scratch)
    )
    try:
        process = await ContainerProcess.start(order, folder / "isolation.log")
    except CannotStart:
        return False
    return await process.wait() == 0
