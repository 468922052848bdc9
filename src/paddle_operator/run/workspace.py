"""The folder of one run: logs, volumes of pods. Gone when it ends, but for what the user keeps."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

PREFIX = "paddle-operator-run-"


@dataclass(frozen=True)
class Workspace:
    root: Path
    kept: Path

    @property
    def logs(self) -> Path:
        return self.kept / "logs"

    @property
    def objects(self) -> Path:
        return self.kept / "objects.yaml"

    @property
    def operator_log(self) -> Path:
        return self.kept / "operator.log"

    @property
    def pods(self) -> Path:
        return self.root / "pods"

    @property
    def scratch(self) -> Path:
        return self.root / "scratch"


@contextmanager
def workspace(keep: Path | None) -> Iterator[Workspace]:
    """The lock on it is held until the process is gone, so that the next run can tell what a kill left."""
    _sweep()
    unlocked = Path(tempfile.mkdtemp(prefix=f"new-{PREFIX}"))
    with (unlocked / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Only now does it have a name that others look for, and find locked.
        root = unlocked.rename(unlocked.with_name(unlocked.name.removeprefix("new-")))
        place = Workspace(root, keep or root)
        try:
            place.scratch.mkdir()
            place.logs.mkdir(parents=True)
            yield place
        finally:
            shutil.rmtree(root, ignore_errors=True)


def volumes_folder() -> Path:
    """Where persistent volume claims are: what a job writes there is found again by the next one."""
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    try:
        base = Path(data).expanduser()
    except RuntimeError:  # a user without a home
        base = Path(tempfile.gettempdir()) / f"of-user-{os.getuid()}"
    return base / "paddle-operator" / "volumes"


def _sweep() -> None:
    """Remove folders of our runs that were killed."""
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            if left.lstat().st_uid == os.getuid():
                _remove_if_free(left)


def _remove_if_free(folder: Path) -> None:
    with (folder / "lock").open() as lock:
        if _is_free(lock):
            shutil.rmtree(folder, ignore_errors=True)


def _is_free(lock: TextIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
