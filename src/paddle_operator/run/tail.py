"""Follows a log file that others write: whole lines, as they come."""

from dataclasses import dataclass, field
from pathlib import Path

MOST_BYTES = 1 << 20
LONGEST_LINE = 1 << 14


@dataclass
class Tail:
    path: Path
    last: str = ""
    _read: int = 0
    _rest: bytes = field(default=b"")

    def new_lines(self) -> list[str]:
        """At most a megabyte at a time; a line that never ends is cut. Progress bars count as lines."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._read)
                found = file.read(MOST_BYTES)
        except FileNotFoundError:
            return []
        self._read += len(found)
        *whole, self._rest = (self._rest + found).replace(b"\r", b"\n").split(b"\n")
        if len(self._rest) > LONGEST_LINE:
            whole, self._rest = [*whole, self._rest], b""
        lines = [line[:LONGEST_LINE].decode(errors="replace") for line in whole]
        self.last = next((line for line in reversed(lines) if line.strip()), self.last)
        return lines


def last_lines(path: Path, count: int) -> list[str]:
    """The end of a log, of whatever length it is."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - count * LONGEST_LINE))
            lines = file.read().decode(errors="replace").splitlines()
    except FileNotFoundError:
        return []
    return lines[-count:]
