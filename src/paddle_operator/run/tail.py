"""Follows a log file that others write: whole lines, as they come."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from paddle_operator.local.logs import begins_a_try

MOST_BYTES = 1 << 18
FARTHEST_BEHIND = 16 << 20
LONGEST_LINE = 1 << 14
_GAP = "are left out here; --keep DIR keeps the whole log]"
# A progress bar goes back to the start of its line; each of its states counts as a line.
_BREAK = re.compile(rb"\r?\n|\r")


@dataclass
class Tail:
    path: Path
    farthest_behind: int | None = FARTHEST_BEHIND
    """None: nothing is ever left out."""
    last: str = ""
    bytes_read: int = 0
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
                file.seek(self.bytes_read)
                found = file.read(MOST_BYTES)
        except FileNotFoundError:
            return []
        self.bytes_read += len(found)
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
        if self.farthest_behind is None or size - self.bytes_read <= self.farthest_behind:
            return []
        left_out = size - MOST_BYTES - self.bytes_read
        self.bytes_read, self._rest = size - MOST_BYTES, b""
        return [f"[{left_out / 1e6:.0f} MB {_GAP}"]


def is_gap(line: str) -> bool:
    return line.endswith(_GAP)


def last_lines(path: Path, count: int) -> list[str]:
    """The end of a log, of whatever length it is; nothing of an earlier try of the job."""
    last = lines_at_end(path, count * LONGEST_LINE)[-count:]
    begin = max((place for place, line in enumerate(last, 1) if begins_a_try(line)), default=0)
    return last[begin:]


def lines_at_end(path: Path, size: int) -> list[str]:
    """What stands in so many of its last bytes; the first line may be cut."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - size))
            *lines, rest = _BREAK.split(file.read())
    except FileNotFoundError:
        return []
    return [line[:LONGEST_LINE].decode(errors="replace") for line in (*lines, *filter(None, [rest]))]
