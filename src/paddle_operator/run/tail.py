"""Follows a log file that others write: whole lines, as they come."""

import re
from dataclasses import dataclass, field
from pathlib import Path

MOST_BYTES = 1 << 20
LONGEST_LINE = 1 << 14
# A progress bar goes back to the start of its line; each of its states counts as a line.
_BREAK = re.compile(rb"\r?\n|\r")


@dataclass
class Tail:
    path: Path
    last: str = ""
    _read: int = 0
    _rest: bytes = field(default=b"")

    def new_lines(self, *, is_complete: bool = False) -> list[str]:
        """At most a megabyte at a time; a line that never ends is cut.

        When nobody writes any more (``is_complete``), what stands behind the last break is a line too.
        """
        try:
            with self.path.open("rb") as file:
                file.seek(self._read)
                found = file.read(MOST_BYTES)
        except FileNotFoundError:
            return []
        self._read += len(found)
        *whole, self._rest = _BREAK.split(self._rest + found)
        is_end = is_complete and len(found) < MOST_BYTES
        if len(self._rest) > LONGEST_LINE or (is_end and self._rest):
            whole, self._rest = [*whole, self._rest], b""
        lines = [line[:LONGEST_LINE].decode(errors="replace") for line in whole]
        self.last = next((line for line in reversed(lines) if line.strip()), self.last)
        return lines


def last_lines(path: Path, count: int) -> list[str]:
    """The end of a log, of whatever length it is."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - count * LONGEST_LINE))
            *lines, rest = _BREAK.split(file.read())
    except FileNotFoundError:
        return []
    whole = [*lines, rest] if rest else lines
    return [line[:LONGEST_LINE].decode(errors="replace") for line in whole[-count:]]
