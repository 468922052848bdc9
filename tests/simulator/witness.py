"""What is known of a simulated life: what the manager asked for, on what picture, and what came of it.

The witness stands between the store and the invariants: each request and each change passes by it, is judged
at once, and is kept for the story that a broken invariant is told with.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from paddle_operator.api.meta import Key, Manifest
from paddle_operator.api.names import COMPLETED
from paddle_operator.api.paddlejob import PaddleJob, Phase
from paddle_operator.api.resources import PADDLE_JOBS, AnyResource
from paddle_operator.cluster import ApiError
from paddle_operator.memory.history import Entry
from simulator.history import FINAL, Objects, TrueHistory, attempt_of, key_of, owner_of

WRITES = frozenset({"create", "patch", "delete"})


@dataclass
class Knowledge:
    """What one process has been told: by lists and watches (its caches), and by answers to its own writes."""

    name: str = "manager"
    shown: dict[AnyResource, int] = field(default_factory=lambda: defaultdict(int))
    """How far the cache of each kind has come."""
    written: dict[tuple[str, AnyResource], int] = field(default_factory=lambda: defaultdict(int))
    """The version of the last write that was answered, by the UID of the job it was for."""
    alive: dict[str, float] = field(default_factory=dict)
    """UIDs of objects that it was told of, and since when."""
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
    at: float
    shown: Mapping[AnyResource, int]
    """How far the cache of each kind had come then; what comes while a request is under way, is too late."""


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

    @property
    def is_for_an_old_try(self) -> bool:
        """Something is made for a job that is gone, over or suspended, or that has begun anew since."""
        made = self.entry.after
        if made is None or self.entry.before is not None or not owner_of(made):
            return False
        jobs = (one for (kind, _), one in self.objects.items() if kind == PADDLE_JOBS)
        gone: Manifest = {"phase": COMPLETED}
        status: Manifest = next(
            (job.get("status", {}) for job in jobs if job["metadata"]["uid"] == owner_of(made)), gone
        )
        is_over = status.get("phase") in {*FINAL, Phase.SUSPENDED}
        return is_over or attempt_of(made) < int(status.get("attempt", 0))

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
    is_for_an_old_try: bool = False
    """By something that was made too late, and has to go again."""


@dataclass(frozen=True)
class Scene:
    """One line of the story."""

    at: float
    who: str
    what: Request | Change | str

    def __str__(self) -> str:
        return f"{self.at:9.3f} s  {self.who}: {self.what}"


CURRENT_TURN: ContextVar[Turn | None] = ContextVar("CURRENT_TURN", default=None)
CURRENT_REQUEST: ContextVar[Request | None] = ContextVar("CURRENT_REQUEST", default=None)
CURRENT_DEED: ContextVar[tuple[object, str] | None] = ContextVar("CURRENT_DEED", default=None)
"""What somebody is about to do, and how it is told."""
CURRENT_WITNESS: ContextVar["Witness"] = ContextVar("CURRENT_WITNESS")
"""For those who have to know how far a life has come, to say who goes on."""


class Witness:
    def __init__(self, history: TrueHistory, invariants: "Invariants") -> None:
        self.history = history
        self.requests: list[Request] = []
        self.writes: list[Request] = []
        self.changes: list[Change] = []
        self.turns: list[Turn] = []
        self.told: Counter[AnyResource] = Counter()
        """How many changes the watches of each kind have shown, in all processes."""
        self.told_at = 0.0
        self.struck: set[object] = set()
        """Those of the planned faults that have had an effect."""
        self.refusals: list[tuple[Request, ApiError]] = []
        """Writes that were answered with an error, planned or not."""
        self.violations: list[Violation] = []
        self._invariants = invariants
        self.scenes: list[Scene] = []
        history.on_change.append(self._changed)
        CURRENT_WITNESS.set(self)

    @property
    def changed_at(self) -> list[float]:
        return [change.at for change in self.changes]

    @property
    def moved_at(self) -> float:
        """When something was last asked, changed, or shown: who is slow may have much to hear."""
        return max(self.told_at, *(one[-1].at for one in (self.requests, self.changes) if one))

    def watch_shows(self, resource: AnyResource) -> None:
        self.told[resource] += 1
        self.told_at = _now()

    def turn_begins(self, turn: Turn) -> None:
        CURRENT_TURN.set(turn)
        self.turns.append(turn)

    def turn_decides_on(self, job: PaddleJob) -> None:
        turn = CURRENT_TURN.get()
        assert turn is not None, "it has begun"
        CURRENT_TURN.set(replace(turn, job=job))

    def request_arrives(self, request: Request) -> None:
        """Judged on the store as it is before the request has changed it."""
        self.requests.append(request)
        if request.is_write:
            self.writes.append(request)
        self._tell(f"{request.process.name} asks", request)
        self._judge(self._invariants.of_a_request, request, self.history.objects)

    def request_is_done(self, request: Request, *, changed: bool) -> None:
        stored = self.history.objects.get((request.resource, request.key))
        self._judge(self._invariants.of_an_answer, request, stored, changed)

    def request_is_refused(self, request: Request, error: ApiError) -> None:
        self.refusals.append((request, error))
        self._tell("server", f"{type(error).__name__}: {request}")

    def fault_strikes(self, fault: object, told: str) -> None:
        self.struck.add(fault)
        self._tell("fault", told)

    def fault_lasts(self, fault: object, told: str) -> None:
        """It has an effect once more, which is told only the first time."""
        if fault not in self.struck:
            self.fault_strikes(fault, told)

    def at_rest(self, life: Any) -> None:
        self._judge(self._invariants.at_rest, life)

    def story(self, until: int | None = None) -> str:
        return "\n".join(map(str, self.scenes[:until]))

    def complaint(self) -> str:
        """The first broken invariant, what it says, and how it came to that. Empty if all hold."""
        if not self.violations:
            return ""
        first = self.violations[0]
        names = ", ".join(dict.fromkeys(one.invariant.__name__ for one in self.violations))
        return f"broken: {names}\n{first.invariant.__doc__}\n{self.story(first.told_until)}"

    def _changed(self, entry: Entry) -> None:
        if (deed := CURRENT_DEED.get()) is not None:
            self.fault_lasts(*deed)
        change = Change(_now(), entry, CURRENT_REQUEST.get(), self.history.objects)
        self.changes.append(change)
        self._tell("store", change)
        self._judge(self._invariants.of_a_change, change)

    def _tell(self, who: str, what: Request | Change | str) -> None:
        self.scenes.append(Scene(_now(), who, what))

    def _judge(self, invariants: Sequence[Callable[..., bool]], *facts: object) -> None:
        for invariant in invariants:
            if not invariant(*facts):
                is_old = any(isinstance(fact, Change) and fact.is_for_an_old_try for fact in facts)
                self.violations.append(Violation(invariant, len(self.scenes), is_old))


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
