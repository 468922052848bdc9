"""One real node, and tests in several processes: most share it, and some need it for themselves."""

import fcntl
import os
import tempfile
from pathlib import Path


class Room:
    """Who wants it alone waits for all others to leave; those who come meanwhile wait at the door."""

    def __init__(self, name: str) -> None:
        folder = Path(tempfile.gettempdir())
        self._files = [folder / f"{name}-{part}.lock" for part in ("door", "room")]
        self._inside: int | None = None

    def enter(self, *, alone: bool) -> None:
        door, room = (os.open(file, os.O_RDWR | os.O_CREAT, 0o600) for file in self._files)
        fcntl.flock(door, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        os.close(door)
        self._inside = room

    def leave(self) -> None:
        if self._inside is not None:
            os.close(self._inside)
            self._inside = None

    def remove(self) -> None:
        for file in self._files:
            file.unlink(missing_ok=True)
