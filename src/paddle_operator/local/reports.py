"""What training says of itself at its end: what a kubelet finds in the file of the termination message.

Here there is more to go by, as the log is at hand: a line of the same format, and the words with which
Paddle's launcher begins. So a script that says nothing is understood too, if the launcher starts it.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from paddle_operator.api.report import MOST_BYTES, VERSION, Process, Report, read_report, written

from .logs import last_words

# A launcher begins with its words; what a script says of itself it says early, or at its end.
_FIRST_BYTES = _LAST_BYTES = 1 << 20
_LAUNCHER = re.compile(r"^LAUNCH INFO .*\bmode collective, replicas (\d{1,9})\[")


def termination_message(file: Path, log: Path, since: int, code: int) -> str:
    """Of a run that began at this byte of the log.

    Of one that failed a kubelet takes the file, or else the end of the log; here both are told.
    """
    said = _said(file)
    if code:
        return "\n".join(filter(None, (said, last_words(log, since))))
    return said or _in_log(log, since)


def _in_log(log: Path, since: int) -> str:
    lines = [*_lines(log, since)]
    reports = [report for line in lines if (report := read_report(line.strip()))]
    nodes = [one.nodes for one in reports if one.nodes is not None]
    nodes += [int(match[1]) for line in lines if (match := _LAUNCHER.match(line)) and int(match[1])]
    if not nodes and not reports:
        return ""
    # A script may prepare something alone before all train together.
    return written(Report(VERSION, max(nodes, default=None), _latest(reports)))


def _latest(reports: list[Report]) -> tuple[Process, ...]:
    """Of each rank what it said last."""
    by_rank = {one.rank: one for report in reports for one in report.processes}
    return tuple(by_rank.values())


def _said(file: Path) -> str:
    """What the file holds, as a kubelet takes it, if it is a report."""
    try:
        with file.open("rb") as opened:
            text = opened.read(MOST_BYTES).decode(errors="replace")
    except OSError:
        return ""
    # In one line, as something may stand behind it.
    return " ".join(text.split()) if read_report(text) is not None else ""


def _lines(log: Path, since: int) -> Iterator[str]:
    """Of a log that may be long: the first and the last ones."""
    size = log.stat().st_size
    first_end = min(size, since + _FIRST_BYTES)
    with log.open("rb") as opened:
        for start, end in ((since, first_end), (max(first_end, size - _LAST_BYTES), size)):
            opened.seek(start)
            yield from opened.read(end - start).decode(errors="replace").splitlines()
