"""Follows a log file that others write: whole lines, as they come."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from paddle_operator.local.logs import begins_a_try

MOST_BYTES = 1 << 18
FARTHEST_BEHIND = 16 << 20
LONGEST_LINE = 1 << 14
# A progress bar goes back to the start of its line; each of its states counts as a line.
_BREAK = re.compile(rb"\r?\n|\r")


@dataclass
class Tail:
    path: Path
    last: str = ""
    _read: int = 0
    _rest: bytes = field(default=b"")
    _was_complete: bool = False
    """The last line had no break and was told all the same: if one comes now, it is not another line's."""

    def new_lines(self, *, is_complete: bool = False) -> list[str]:
        """At most a quarter of a megabyte at a time; a line that never ends is cut.

        When nobody writes any more (``is_complete``), what stands behind the last break is a line too.
        """
        try:
            with self.path.open("rb") as file:
                skipped = self._skip(file.seek(0, os.SEEK_END))
                file.seek(self._read)
                found = file.read(MOST_BYTES)
        except FileNotFoundError:
            return []
        self._read += len(found)
        is_end = is_complete and len(found) < MOST_BYTES
        if self._was_complete and found:
            found, self._was_complete = found.removeprefix(b"\n"), False
        *whole, self._rest = _BREAK.split(self._rest + found)
        if len(self._rest) > LONGEST_LINE or (is_end and self._rest):
            whole, self._rest = [*whole, self._rest], b""
            self._was_complete = is_end
        lines = [line[:LONGEST_LINE].decode(errors="replace") for line in whole]
        self.last = next((line for line in reversed(lines) if line.strip()), self.last)
        return [*skipped, *lines]

    def _skip(self, size: int) -> list[str]:
        """Who prints faster than anybody reads is followed at a distance, and that is said."""
        if size - self._read <= FARTHEST_BEHIND:
            return []
        left_out = size - MOST_BYTES - self._read
        self._read, self._rest = size - MOST_BYTES, b""
        return [f"[{left_out / 1e6:.0f} MB are left out here; --keep DIR keeps the whole log]"]


def last_lines(path: Path, count: int) -> list[str]:
    """The end of a log, of whatever length it is; nothing of an earlier try of the job."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - count * LONGEST_LINE))
            *lines, rest = _BREAK.split(file.read())
    except FileNotFoundError:
        return []
    whole = [*lines, rest] if rest else lines
    last = [line[:LONGEST_LINE].decode(errors="replace") for line in whole[-count:]]
    begin = max((place for place, line in enumerate(last, 1) if begins_a_try(line)), default=0)
    return last[begin:]
