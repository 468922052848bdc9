"""What is known of a simulated life: what the manager asked for, on what picture, and what came of it.

The witness stands between the store and the invariants: each request and each change passes by it, is judged
at once, and is kept for the story that a broken invariant is told with.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from simulated_history import Objects, TrueHistory, key_of

from paddle_operator.api.meta import Key, Manifest
from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.api.resources import AnyResource
from paddle_operator.memory.history import Entry

WRITES = frozenset({"create", "patch", "delete"})


@dataclass
class Knowledge:
    """What one process has been told: by lists and watches (its caches), and by answers to its own writes."""

    shown: dict[AnyResource, int] = field(default_factory=lambda: defaultdict(int))
    """How far the cache of each kind has come."""
    written: dict[tuple[str, AnyResource], int] = field(default_factory=lambda: defaultdict(int))
    """The version of the last write that was answered, by the UID of the job it was for."""
    alive: set[str] = field(default_factory=set)
    """UIDs of objects that it was told of."""
    deleted: set[str] = field(default_factory=set)
    """UIDs of objects whose deletion it asked for and was answered."""

    def is_behind_own_writes(self, job_uid: str) -> bool:
        return any(
            self.shown[kind] < version for (uid, kind), version in self.written.items() if uid == job_uid
        )


@dataclass(frozen=True)
class Turn:
    """What one decision was made on."""

    job: PaddleJob
    behind_own_writes: bool


@dataclass(frozen=True)
class Request:
    at: float
    verb: str
    resource: AnyResource
    key: Key
    process: Knowledge
    uid: str = ""
    subresource: str = ""
    body: Manifest = field(default_factory=dict)
    turn: Turn | None = None
    """None: not made for one job, but to fill a cache."""

    @property
    def is_write(self) -> bool:
        return self.verb in WRITES

    def __str__(self) -> str:
        kind = f"{self.resource}/{self.subresource}" if self.subresource else str(self.resource)
        return f"{self.verb} {kind} {self.key.name}".strip()


@dataclass(frozen=True)
class Change:
    """One change of the store; ``objects`` is what is stored after it."""

    at: float
    entry: Entry
    request: Request | None
    """None: made by somebody else."""
    objects: Objects

    def __str__(self) -> str:
        document = self.entry.after or self.entry.before
        assert document is not None
        what = f"{self.entry.resource} {key_of(document).name}"
        if self.entry.after is None:
            return f"{what} is gone"
        phase = document.get("status", {}).get("phase", "")
        leaving = " terminating" if "deletionTimestamp" in document["metadata"] else ""
        return f"{what} {'is changed' if self.entry.before else 'is made'} {phase}{leaving}".rstrip()


@dataclass(frozen=True)
class Violation:
    invariant: Callable[..., bool]
    told_until: int
    """So much of the story had happened."""


CURRENT_TURN: ContextVar[Turn | None] = ContextVar("CURRENT_TURN", default=None)
CURRENT_REQUEST: ContextVar[Request | None] = ContextVar("CURRENT_REQUEST", default=None)


class Witness:
    def __init__(self, history: TrueHistory, invariants: "Invariants") -> None:
        self.history = history
        self.requests: list[Request] = []
        self.turns: list[Turn] = []
        self.told: Counter[AnyResource] = Counter()
        """How many changes the watches of each kind have shown, in all processes."""
        self.faults = 0
        """How many of the planned faults have struck."""
        self.violations: list[Violation] = []
        self._invariants = invariants
        self._story: list[tuple[float, str, Any]] = []
        history.on_change.append(self._changed)

    @property
    def changes(self) -> list[Change]:
        return [what for _, _, what in self._story if isinstance(what, Change)]

    @property
    def changed_at(self) -> list[float]:
        return [change.at for change in self.changes]

    @property
    def writes(self) -> list[Request]:
        return [request for request in self.requests if request.is_write]

    def turn_begins(self, turn: Turn) -> None:
        CURRENT_TURN.set(turn)
        self.turns.append(turn)

    def request_arrives(self, request: Request) -> None:
        """Judged on the store as it is before the request has changed it."""
        self.requests.append(request)
        self._tell("manager asks", request)
        self._judge(self._invariants.of_a_request, request, self.history.objects)

    def request_is_done(self, request: Request, *, changed: bool) -> None:
        stored = self.history.objects.get((request.resource, request.key))
        self._judge(self._invariants.of_an_answer, request, stored, changed)

    def fault_strikes(self, fault: str) -> None:
        self.faults += 1
        self._tell("fault", fault)

    def at_rest(self, life: Any) -> None:
        self._judge(self._invariants.at_rest, life)

    def story(self, until: int | None = None) -> str:
        return "\n".join(f"{at:9.3f} s  {who}: {what}" for at, who, what in self._story[:until])

    def complaint(self) -> str:
        """The first broken invariant, what it says, and how it came to that. Empty if all hold."""
        if not self.violations:
            return ""
        first = self.violations[0]
        names = ", ".join(dict.fromkeys(one.invariant.__name__ for one in self.violations))
        return f"broken: {names}\n{first.invariant.__doc__}\n{self.story(first.told_until)}"

    def _changed(self, entry: Entry) -> None:
        change = Change(_now(), entry, CURRENT_REQUEST.get(), self.history.objects)
        self._tell("store", change)
        self._judge(self._invariants.of_a_change, change)

    def _tell(self, who: str, what: object) -> None:
        self._story.append((_now(), who, what))

    def _judge(self, invariants: Sequence[Callable[..., bool]], *facts: object) -> None:
        broken = [one for one in invariants if not one(*facts)]
        self.violations += [Violation(one, len(self._story)) for one in broken]


@dataclass(frozen=True)
class Invariants:
    """Functions that say whether something holds; a violation is told by their names and docstrings."""

    of_a_request: Sequence[Callable[[Request, Objects], bool]]
    of_an_answer: Sequence[Callable[[Request, Manifest | None, bool], bool]]
    """Also told what is stored now, and whether the request has changed that."""
    of_a_change: Sequence[Callable[[Change], bool]]
    at_rest: Sequence[Callable[[Any], bool]]


def _now() -> float:
    return asyncio.get_running_loop().time()
