"""What training says of itself at its end: the termination message of its container, as JSON of one format.

    {"paddlepaddle.org/report": 1, "nodes": 2, "processes": [{"rank": 0, "world": 4, "step": 500}, ...]}

A message has at most 4,096 bytes. All but the first field may be missing; fields that we do not know are
passed over. docs/en/reports.md is the page for users, with all fields; module/paddlejob.py writes it.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from .meta import Record
from .remembered import remembered

MARK = "paddlepaddle.org/report"
VERSION = 1
MOST_BYTES = 4096

Rank = Annotated[int, Meta(ge=0, le=2**31)]
Count = Annotated[int, Meta(ge=1, le=2**31)]


class Process(Record, frozen=True):
    rank: Rank | None = None
    world: Count | None = None
    """How many processes train together, as this one sees it."""
    alone: bool = False
    """It trains alone on purpose."""
    error: Annotated[str, Meta(max_length=64)] = ""
    """The class of the error that ended it."""
    lost_peer: bool = False
    """That error says that a peer is gone."""
    local_rank: Rank | None = None
    """Its place among the processes of its container."""


class Report(Record, frozen=True):
    version: int = msgspec.field(name=MARK)
    nodes: Count | None = None
    """How many pods train together, as Paddle's launcher sees it."""
    processes: tuple[Process, ...] = ()


def read_report(message: str) -> Report | None:
    """None: it is something else. Behind the line of a report the end of a log may stand."""
    if MARK not in message:
        return None
    if "\n" in message.strip() and (first := read_report(message.strip().partition("\n")[0])) is not None:
        return first
    return _decoded(message) if len(message) <= MOST_BYTES else None


@remembered
def _decoded(message: str) -> Report | None:
    try:
        report = msgspec.json.decode(message, type=Report)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return report if report.version == VERSION else None


def written(report: Report) -> str:
    return msgspec.json.encode(report).decode()
