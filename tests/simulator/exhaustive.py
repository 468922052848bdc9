"""All orders of a small life: whoever waits may be the next to go on, a crash may come at each write.

Depth first, by living again from the start: an order is a list of choices, and a life that comes into a state
that was met before is given up. What makes the search finite, and what it therefore does not see:

- Lists and the beginnings of watches are not chosen among: they go on at once, in one order.
- Time stands still while somebody waits who may be chosen. Only one change that a watch shows may be held
  back while time goes on, for a few timers.
- A state is what is stored, what each cache has still to be shown, what the turn at hand knew and has done,
  who waits, and which faults are left. Two that differ only in identities, or in how long ago something was,
  are one.
"""

from collections.abc import Container, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from paddle_operator.api.meta import Manifest
from paddle_operator.api.names import ANNOTATION_NUDGE, ANNOTATION_PEERS
from paddle_operator.api.resources import CONFIG_MAPS, EVENTS, PADDLE_JOBS, PODS, SERVICES, AnyResource
from simulator.cases import Case
from simulator.faults import CrashAt, Fault, Faults, HeldBack
from simulator.life import Life, Workload, live
from simulator.oracle import ANOTHER_END, calm, differences, end_of
from simulator.schedule import Explorer
from simulator.witness import Witness
from simulator.workloads import LIVES

KINDS = (PADDLE_JOBS, PODS, CONFIG_MAPS, SERVICES)
# A change that is held back waits for so many timers at most.
MOST_TIMERS = 4


@dataclass(frozen=True)
class Scope:
    """How much may go wrong in one life."""

    crashes: int = 0
    late_changes: int = 0
    answers_wait: bool = True
    """Else each comes at once; requests and changes that are shown still wait."""


@dataclass
class Findings:
    states: int = 0
    executions: int = 0
    ends: int = 0
    """So many lives were lived to their end; the others came to where another had been."""
    broken: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Invariants, and the choices that led to their first violation."""


class KnownError(Exception):
    """From here on another life has gone before."""


def search(workload: Workload, scope: Scope, until: str = "") -> Findings:
    """All orders; or so many that an invariant of this name is broken."""
    expected = calm(workload).end
    findings, seen = Findings(), set[int]()
    plan: list[int] | None = []
    while plan is not None and (not until or until not in findings.broken):
        path = Path(plan, scope, seen)
        for broken in path.lived(workload, expected):
            findings.broken.setdefault(broken, tuple(path.choices))
        findings.executions += 1
        findings.ends += path.is_whole
        findings.states = len(seen)
        plan = path.next_plan()
    return findings


@dataclass(frozen=True)
class Order(Case):
    """The life that some choices give, to its end."""

    strikes: int = 0
    scope: Scope = Scope()
    choices: tuple[int, ...] = ()

    def lived(self) -> Life:
        path = Path(self.choices, self.scope, seen=None)
        explorer = Explorer(path.next_one, answers_wait=self.scope.answers_wait)
        return live(self.workload, CrashIfChosen(path), explorer)

    def simpler(self) -> Iterator["Order"]:
        """With fewer choices that are not simply the first one."""
        for place in reversed(range(len(self.choices))):
            if self.choices[place]:
                changed = (*self.choices[:place], 0, *self.choices[place + 1 :])
                last = max((step for step, choice in enumerate(changed) if choice), default=-1)
                yield replace(self, choices=changed[: last + 1])


class Path:
    """One life: the choices of a plan, and from there on always the first."""

    def __init__(self, plan: Sequence[int], scope: Scope, seen: set[int] | None) -> None:
        self.choices: list[int] = []
        self.is_whole = False
        self._counts: list[int] = []
        self._plan = plan
        self._scope = scope
        self._seen = seen
        self._crashes = 0
        self._held = ""
        self._timers = 0
        self._witness: Witness | None = None
        self._states = States()
        self._own: set[int] = set()

    def lived(self, workload: Workload, expected: Manifest) -> Iterator[str]:
        try:
            life = live(
                workload, CrashIfChosen(self), Explorer(self.next_one, answers_wait=self._scope.answers_wait)
            )
        except KnownError:
            assert self._witness is not None
            yield from (one.invariant.__name__ for one in self._witness.violations)
            return
        self.is_whole = True
        yield from (one.invariant.__name__ for one in life.witness.violations)
        if not life.witness.violations and any(differences(end_of(life), expected)):
            yield ANOTHER_END

    def next_plan(self) -> list[int] | None:
        """The last choice that could have been another is; what came before stays."""
        for step in reversed(range(len(self.choices))):
            if self.choices[step] + 1 < self._counts[step]:
                return [*self.choices[:step], self.choices[step] + 1]
        return None

    def next_one(self, waiting: Sequence[str], witness: Witness) -> int | None:
        self._witness = witness
        allowed = [place for place, actor in enumerate(waiting) if actor != self._held]
        alternatives: list[int | None] = [*allowed, *(p for p in range(len(waiting)) if p not in allowed)]
        if self._may_hold(waiting, allowed):
            alternatives.append(None)
        chosen = alternatives[self._choose(len(alternatives), waiting)]
        if chosen is None:
            self._held = self._held or waiting[0]
            witness.fault_lasts(HeldBack(self._held), f"held back: {self._held}")
            self._timers += 1
        return chosen

    def crashes_here(self) -> bool:
        if self._crashes >= self._scope.crashes:
            return False
        crashes = self._choose(2, ()) == 1
        self._crashes += crashes
        return crashes

    def _may_hold(self, waiting: Sequence[str], allowed: Sequence[int]) -> bool:
        """Time may go on if only one change waits, and it is the one that is held back, or the first."""
        if self._timers >= MOST_TIMERS or len(waiting) != 1 or " watches " not in waiting[0]:
            return False
        return not allowed or (not self._held and self._scope.late_changes > 0)

    def _choose(self, alternatives: int, waiting: Sequence[str]) -> int:
        if alternatives == 1 or (waiting and self._has_been_here(waiting)):
            return 0
        step = len(self.choices)
        self.choices.append(self._plan[step] if step < len(self._plan) else 0)
        self._counts.append(alternatives)
        return self.choices[-1]

    def _has_been_here(self, waiting: Sequence[str]) -> bool:
        """In this life: only time has gone on since, and every choice is or will be made there."""
        assert self._witness is not None
        left = (self._crashes, self._held, self._timers)
        state = hash((self._states.of(self._witness), tuple(sorted(waiting)), left))
        if state in self._own:
            return True
        if len(self.choices) >= len(self._plan) and self._seen is not None:
            if state in self._seen:
                raise KnownError
            self._seen.add(state)
        self._own.add(state)
        return False


class States:
    """What a life has come to, without identities and times. Parts of it are remembered for one life."""

    def __init__(self) -> None:
        self._digests: dict[int, int] = {}
        self._stored: tuple[int, int] = (-1, 0)
        self._later: dict[tuple[AnyResource, int, int], Hashable] = {}

    def of(self, witness: Witness) -> Hashable:
        stored = self._store(witness)
        if not witness.turns:
            return stored
        turn, knows = witness.turns[-1], witness.requests[-1].process
        done = tuple(
            (one.verb, one.resource.plural, one.key.name if one.resource is not EVENTS else "")
            for one in witness.requests
            if one.turn is turn
        )
        to_come = tuple(self._since(witness, kind, knows.shown[kind]) for kind in KINDS)
        then = tuple(self._since(witness, kind, turn.shown.get(kind, 0)) for kind in KINDS)
        return stored, done, to_come, then

    def _store(self, witness: Witness) -> int:
        history = witness.history
        if self._stored[0] != history.version:
            documents = frozenset(
                (kind.plural, key.name, self._digest(document))
                for (kind, key), document in history.objects.items()
                if kind is not EVENTS
            )
            self._stored = history.version, hash(documents)
        return self._stored[1]

    def _since(self, witness: Witness, kind: AnyResource, version: int) -> Hashable:
        """The changes of a kind after a version: with what is stored, they say what was known then."""
        asked = (kind, version, witness.history.version)
        if asked not in self._later:
            self._later[asked] = tuple(self._changes(witness, kind, version))
        return self._later[asked]

    def _changes(self, witness: Witness, kind: AnyResource, version: int) -> Iterator[int]:
        for entry in reversed(witness.history.entries):
            if entry.version <= version:
                return
            if entry.resource is kind:
                yield self._digest(entry.after) if entry.after is not None else 0

    def _digest(self, document: Manifest) -> int:
        """Documents are kept as long as the life, and never changed."""
        known = self._digests.get(id(document))
        if known is None:
            known = self._digests[id(document)] = hash(_canonical(document))
        return known


def _canonical(value: Any) -> Hashable:
    if isinstance(value, dict):
        return tuple(
            (name, _canonical(item) if name != ANNOTATION_NUDGE else item.partition(" ")[0])
            for name, item in sorted(value.items())
            if name not in TIMES
        )
    return tuple(map(_canonical, value)) if isinstance(value, list) else value


# Wherever they stand: of another pod of the same name, another moment.
TIMES = {
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "lastTransitionTime",
    "startTime",
    "completionTime",
    "attemptTime",
    "resumeTime",
    "finishedAt",
    "deletionTimestamp",
    ANNOTATION_PEERS,
}


class CrashIfChosen(Faults):
    """Crashes that are chosen like everything else: at each write it is asked whether one is planned here."""

    def __init__(self, path: Path) -> None:
        super().__init__(_Planned(path))  # type: ignore[arg-type]

    def of(self, _: type[Any]) -> tuple[Any, ...]:
        return ()


class _Planned(Container[Fault]):
    def __init__(self, path: Path) -> None:
        self._path = path

    def __contains__(self, fault: object) -> bool:
        return isinstance(fault, CrashAt) and self._path.crashes_here()


SEARCHES = {
    "orders": (LIVES["completes"], Scope()),
    "orders and a crash": (LIVES["completes"], Scope(crashes=1)),
    "orders and a late change": (LIVES["completes"], Scope(late_changes=1)),
    "orders, a crash and a late change": (
        LIVES["completes"],
        Scope(crashes=1, late_changes=1, answers_wait=False),
    ),
}
"""By name: what is searched as a whole, each in minutes."""
