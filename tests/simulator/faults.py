"""What can go wrong in a simulated life: each fault strikes at a moment that can be counted, and so again."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto
from typing import TypeVar

from paddle_operator.api.resources import AnyResource
from paddle_operator.cluster import ApiError


class Moment(Enum):
    BEFORE = auto()
    WITHOUT_REPLY = auto()
    AFTER = auto()


@dataclass(frozen=True)
class CrashAt:
    write: int
    moment: Moment


@dataclass(frozen=True)
class LateChange:
    """The n-th change that watches of a kind show, and all behind it, wait for that many further changes."""

    resource: AnyResource
    number: int
    changes: float
    """Infinite: this watch never speaks again, and only a list helps."""


@dataclass(frozen=True)
class StaleList:
    """The first list of a kind that the n-th process makes is answered from that many changes ago."""

    resource: AnyResource
    process: int
    changes: float


@dataclass(frozen=True)
class HeldBack:
    """What this watch shows next waits while time goes on; chosen in a search, not planned."""

    watch: str


class Breakage(Enum):
    """What can happen to a watch instead of its next change; all that a real server or network does to it."""

    CUT = auto()
    """The connection breaks; it is taken up again from the last version that was told."""
    AGAIN = auto()
    """The same, and the change that was told last is told once more."""
    FORGOTTEN = auto()
    """The same, and the server does not remember that version any more: 410 to the next watch."""
    ERROR = auto()
    """The server says in the stream itself that it is too far back: an ERROR of 410."""
    QUIET = auto()
    """Only bookmarks, of the last version that was told, for a while."""
    ENDED = auto()
    """The server ends it, as it does with every watch after some minutes."""


@dataclass(frozen=True)
class BrokenWatch:
    """Before the n-th change that watches of a kind show."""

    resource: AnyResource
    number: int
    how: Breakage


@dataclass(frozen=True)
class RefusedWrite:
    """The n-th write is answered with an error."""

    write: int
    error: ApiError
    has_effect: bool = False
    """Only the answer is lost: what was asked for is done."""


@dataclass(frozen=True)
class RefusedFor:
    """All writes of a kind are refused until a moment, as by a quota or by a right that is not granted."""

    verb: str
    resource: AnyResource
    error: ApiError
    until_seconds: float


@dataclass(frozen=True)
class SecondLeader:
    """Another manager acts too, for the whole life; each of its steps takes so much longer."""

    slower_by_seconds: float


@dataclass(frozen=True)
class Interference:
    """Somebody does something to the job as soon as the store has had that many changes."""

    change: int
    deed: str
    """A name of deeds.DEEDS."""


@dataclass(frozen=True)
class ClockJump:
    """Somebody sets the clock of the manager's machine, once, for good."""

    at_seconds: float
    by_seconds: float

    @property
    def is_due(self) -> bool:
        return asyncio.get_running_loop().time() >= self.at_seconds

    def shift(self) -> timedelta:
        return timedelta(seconds=self.by_seconds if self.is_due else 0)


Fault = (
    CrashAt
    | LateChange
    | StaleList
    | BrokenWatch
    | RefusedWrite
    | RefusedFor
    | SecondLeader
    | Interference
    | ClockJump
)
F = TypeVar("F", bound=Fault)


@dataclass(frozen=True)
class Faults:
    """Any number of them, also of one kind."""

    all: tuple[Fault, ...] = ()

    def of(self, kind: type[F]) -> tuple[F, ...]:
        return tuple(one for one in self.all if isinstance(one, kind))

    def __str__(self) -> str:
        return " and ".join(map(str, self.all)) or "no fault"


def faults(*them: Fault) -> Faults:
    return Faults(them)
