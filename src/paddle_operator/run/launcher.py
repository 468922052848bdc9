"""What Paddle's launcher prints: words of its own, and copies of what its processes have printed.

It copies the log of the first process line by line, seconds later. When a process has failed, it prints the
end of that one's log once more, under a heading.
"""

import re
from collections import deque
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from paddle_operator.local.logs import begins_a_run

from .tail import Tail, is_gap

LOOKS_AHEAD = 1000
"""Lines of the first process. What others print in between is not among them."""
_OWN = re.compile(r"LAUNCH [A-Z]+ \d{4}-\d\d-\d\d \d\d:")
_DETAIL = re.compile(r"LAUNCH [A-Z]+ \S+ \S+ -+ ERROR LOG DETAIL -+")


@dataclass
class Repetition:
    """Tells where the end of a log is repeated under the launcher's heading."""

    _is_on: bool = False

    def holds(self, line: str) -> bool:
        if begins_a_run(line) or _OWN.search(line):
            self._is_on = _DETAIL.search(line) is not None
            return False
        return self._is_on


@dataclass
class Copies:
    """Recognises copies by the log that they are made of, which it reads as far as they go."""

    log: Path
    _source: Tail = field(init=False)
    _expected: deque[str] = field(default_factory=deque)
    _is_lost: bool = False
    """Behind a gap nobody knows where it is: all but the launcher's words is taken for a copy."""

    def __post_init__(self) -> None:
        self._source = Tail(self.log, farthest_behind=None)

    def without(self, lines: list[str]) -> list[str]:
        """What of these lines is no copy."""
        return [own for line in lines if (own := self._own_part(line)) is not None]

    def _own_part(self, line: str) -> str | None:
        if begins_a_run(line):
            self._go_on_behind(line)
            return line
        if is_gap(line):
            self._is_lost = True
            return line
        if self._is_copy(line):
            return None
        # A last line without an end has the launcher's next word in it.
        own = _OWN.search(line)
        return line[own.start() :] if own else line

    def _is_copy(self, line: str) -> bool:
        if self._is_lost:
            return _OWN.search(line) is None
        return self._expects(line) or (self._reads_ahead() and self._expects(line))

    def _expects(self, line: str) -> bool:
        place = next((at for at, one in enumerate(islice(self._expected, LOOKS_AHEAD)) if one == line), None)
        if place is not None:
            del self._expected[place]
        return place is not None

    def _reads_ahead(self) -> bool:
        before = len(self._expected)
        while len(self._expected) < LOOKS_AHEAD and (lines := self._source.new_lines()):
            self._expected += lines
        return len(self._expected) > before

    def _go_on_behind(self, mark: str) -> None:
        """What an earlier launcher did not come to copy, this one does not copy either."""
        self._is_lost = False
        ahead, expected = replace(self._source), [*self._expected]
        while mark not in expected:
            expected = ahead.new_lines()
            if not expected:
                return  # the log is younger than that
        self._source, self._expected = ahead, deque(expected[expected.index(mark) + 1 :])
