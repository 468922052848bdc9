"""Whose last lines tell why a container failed: its own, or those of one of its processes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from paddle_operator.local.logs import begins_a_run, process_logs

from .tail import last_lines, lines_at_end

SHOWN_LINES, FARTHEST_TRACEBACK, FARTHEST_SIGN = 20, 60, 200
_ENOUGH_FOR_ITS_WORDS = 1 << 16
_FAILED = re.compile(r"Container rank (\d+) status failed cmd ")
_TRACEBACK = "Traceback (most recent call last):"
_ERROR = re.compile(r"^Traceback \(most recent call last\):|^[\w.]*Error: ")
# What a process says that has failed because another one is gone, or that its launcher has stopped.
_VICTIM = re.compile(r"gloo/transport/tcp/\w+\.cc|Termination signal")


@dataclass(frozen=True)
class Farewell:
    log: Path
    lines: list[str]
    local_rank: int | None = None
    """Of the process, if there are several."""

    @property
    def is_of_a_victim(self) -> bool:
        return _says(_VICTIM, self.log)

    @property
    def is_of_a_culprit(self) -> bool:
        return not self.is_of_a_victim and _says(_ERROR, self.log)


def farewell(log: Path) -> Farewell:
    processes = process_logs(log)
    culprit = _culprit(processes, _named_by_the_launcher(log))
    if culprit is None or not (lines := _last_lines(processes[culprit])):
        return Farewell(log, _last_lines(log))
    return Farewell(processes[culprit], lines, culprit if len(processes) > 1 else None)


def _named_by_the_launcher(log: Path) -> int | None:
    found = [match for line in _of_this_run(log) if (match := _FAILED.match(line))]
    return int(found[-1][1]) if found else None


def _culprit(processes: Mapping[int, Path], named: int | None) -> int | None:
    """The launcher looks once a second, and names the lowest rank of those that have failed by then.

    That one may have failed because the real one was gone.
    """
    if named is None or named not in processes:
        return None
    is_victim = {rank: _says(_VICTIM, log) for rank, log in processes.items()}
    if not is_victim[named]:
        return named
    others = (rank for rank, log in processes.items() if not is_victim[rank] and _says(_ERROR, log))
    return next(others, named)


def _says(sign: re.Pattern[str], log: Path) -> bool:
    return any(sign.search(line) for line in _of_this_run(log)[-FARTHEST_SIGN:])


def _of_this_run(log: Path) -> list[str]:
    lines = lines_at_end(log, _ENOUGH_FOR_ITS_WORDS)
    begin = max((place for place, line in enumerate(lines, 1) if begins_a_run(line)), default=0)
    return lines[begin:]


def _last_lines(log: Path) -> list[str]:
    """The traceback at the end is shown from its beginning, if that is not too far away."""
    lines = last_lines(log, FARTHEST_TRACEBACK)
    begin = max((place for place, line in enumerate(lines) if line == _TRACEBACK), default=len(lines))
    return lines[max(0, min(begin, len(lines) - SHOWN_LINES)) :]
