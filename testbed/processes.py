"""Processes that outlive the command that started them, and how to find exactly those again.

Every process carries the folder of its instance in its environment, from the moment that it exists. There
are no pid files: nothing is lost when `up` is killed between starting a process and noting it down, and a pid
that was given to somebody else is never mistaken for ours. A pidfd holds on to the process between the check
and the signal.
"""

import os
import select
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import ControlPlaneError

FOLDER_VARIABLE = "PADDLE_OPERATOR_TESTBED_FOLDER"
COMPONENT_VARIABLE = "PADDLE_OPERATOR_TESTBED_COMPONENT"
KILL_TIMEOUT_SECONDS = 20.0
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"

# Started here and not yet waited for. As long as a pid is in here the kernel gives it to nobody else.
_children: set[int] = set()


@dataclass(frozen=True)
class Process:
    pid: int
    component: str


def start(component: str, command: list[str], folder: Path, log: Path) -> int:
    """Starts a process in a session of its own and returns its pid; the log is appended to.

    It sees nothing of our environment: ETCD_* or proxy settings of the user must not change what it does.
    """
    environment = {
        "PATH": PATH,
        "HOME": str(folder),
        "TMPDIR": str(folder),
        FOLDER_VARIABLE: str(folder),
        COMPONENT_VARIABLE: component,
    }
    child = os.posix_spawn(
        command[0],
        command,
        environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        # Python ignores these two; a child would inherit that.
        setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
    )
    _children.add(child)
    return child


def find(folder: Path) -> list[Process]:
    """The running processes of the instance in this folder, whoever started them."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            process = _inspect(int(entry.name), folder)
            if process is not None:
                found.append(process)
    return sorted(found, key=lambda process: process.pid)


def kill_all(folder: Path) -> list[Process]:
    """No process of the instance is left afterwards; returns those that were.

    SIGKILL at once: the data is thrown away anyhow, and an API server that says goodbye to its watchers takes
    its time.
    """
    reap()
    killed: list[Process] = []
    deadline = time.monotonic() + KILL_TIMEOUT_SECONDS
    while found := find(folder):
        for process in found:
            _kill(process, folder)
        killed += [process for process in found if process not in killed]
        if time.monotonic() > deadline:
            names = ", ".join(f"{process.component} (pid {process.pid})" for process in found)
            raise ControlPlaneError(
                f"still running {KILL_TIMEOUT_SECONDS:.0f} s after SIGKILL: {names}",
                remedy="look for a hanging disk (`ps -o pid,stat,wchan`), then run `down` again",
            )
    return killed


def is_running(child: int) -> bool:
    """For a process that this very process has started."""
    reap()
    return child in _children


def reap() -> None:
    """Children that have ended leave no zombies. Children of anybody else in this process are not touched."""
    for child in list(_children):
        try:
            ended, _ = os.waitpid(child, os.WNOHANG)
        except ChildProcessError:
            # After a fork: the child is our parent's.
            ended = child
        if ended:
            _children.discard(child)


def _inspect(pid: int, folder: Path) -> Process | None:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        # Gone, or of another user: either way not ours.
        return None
    if f"{FOLDER_VARIABLE}={folder}".encode() not in environment:
        return None
    prefix = f"{COMPONENT_VARIABLE}=".encode()
    names = [entry.removeprefix(prefix).decode() for entry in environment if entry.startswith(prefix)]
    return Process(pid, names[0] if names else "unknown")


def _kill(process: Process, folder: Path) -> None:
    with _pidfd(process.pid) as descriptor:
        if descriptor is None or _inspect(process.pid, folder) is None:
            return
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.poll(2000)
        reap()


@contextmanager
def _pidfd(pid: int) -> Iterator[int | None]:
    """None when there is no such process."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)
