"""The last lines of whom the operator has found to blame: of a container, or of one of its processes."""

from pathlib import Path

from paddle_operator.local.logs import process_logs

from .tail import last_lines

SHOWN_LINES, FARTHEST_TRACEBACK = 20, 60
_TRACEBACK = "Traceback (most recent call last):"


def farewell(log: Path, local_rank: int | None, elsewhere: str = "") -> list[str]:
    """Of the process, if it is known which one it was and it has printed something; else of the container.

    A script may have told its launcher to write elsewhere, which is on this machine too.
    """
    known = process_logs(log).get(local_rank) if local_rank is not None else None
    places = [known, Path(elsewhere) if elsewhere.startswith("/") else None]
    found = (_end_of(place) for place in places if place is not None)
    return next(filter(None, found), None) or _end_of(log)


def _end_of(log: Path) -> list[str]:
    """The traceback at the end is shown from its beginning, if that is not too far away."""
    lines = last_lines(log, FARTHEST_TRACEBACK)
    begin = max((place for place, line in enumerate(lines) if line == _TRACEBACK), default=len(lines))
    return lines[max(0, min(begin, len(lines) - SHOWN_LINES)) :]
