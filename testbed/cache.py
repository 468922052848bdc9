"""What is built once and kept in the user's cache: where it is, and who builds it while others wait."""

import fcntl
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.errors import BuildError
from testbed.progress import Progress


def cache_folder() -> Path:
    # The XDG specification wants relative paths ignored.
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    base = configured if configured.is_absolute() else Path.home() / ".cache"
    return base / "paddle-operator"


@contextmanager
def build_lock(file: Path, title: str) -> Iterator[int]:
    """At most one process is in here; the others wait, and then find in the cache what was built.

    Give the descriptor to the build: if we are killed it goes on for a while, and the next one waits for it.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise BuildError(
            f"cannot write to the cache folder {file.parent}: {error}",
            remedy="make it writable, or point XDG_CACHE_HOME to a folder that is",
        ) from error
    try:
        _wait_for_lock(descriptor, title)
        yield descriptor
    finally:
        os.close(descriptor)


def finish(process: "subprocess.Popen[bytes]", progress: Progress) -> int:
    """The exit code of a build; it is killed if we are interrupted."""
    try:
        while True:
            try:
                return process.wait(timeout=0.5)
            except subprocess.TimeoutExpired:
                progress.tick()
    except BaseException:
        process.kill()
        process.wait()
        raise


def _wait_for_lock(descriptor: int, title: str) -> None:
    progress = None
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress = progress or Progress(title, "another process is building it, waiting")
            progress.tick()
            time.sleep(0.2)
        else:
            if progress is not None:
                progress.done("waited")
            return
