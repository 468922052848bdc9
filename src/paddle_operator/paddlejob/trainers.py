"""Which trainer of a pod that failed is to blame, where several run in one: by what the ends of logs tell.

Three things tell. The peers: gloo's trainers stand in a ring, and lose the neighbour who went first; whom
both neighbours have lost, or who alone can have been the first, is the cause. The launcher: whom it names has
failed, but it looks once a second, and victims may be quicker to end than it is to look. The trainers' own
logs, where the text has them: the only one that lost nobody is the cause.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

from paddle_operator.api.paddlejob import Role

from .launcher_words import Loss, Told, log_beside
from .observed import Observed

# Paddle's: what goes for its launcher goes for no other.
_PROCESSES = re.compile(r"(?<!\S)--nproc_per_node(?:=|\s+)(\S+)")
_OVERRIDES = "PADDLE_NPROC_PER_NODE"
_ABORTED = -6


class Trainer(NamedTuple):
    """One process of a pod."""

    process: int
    """Its local rank."""
    rank: int | None = None
    """Its global rank, where it is known how many processes a pod has."""
    code: int | None = None
    """Its own exit code, if its launcher has told it; of one that a signal ended less than 0."""
    log: str = ""
    is_lost: bool = False
    """Its peers have lost it, and it has lost nobody."""


class _Place(NamedTuple):
    pod: int
    process: int


class Trainers:
    """What is known of the trainers of one role's pods, all of them together."""

    def __init__(self, seen: Observed, role: Role, told: Mapping[int, Told]) -> None:
        """What was told, by the rank of the pod: of those that failed."""
        self._told = told
        self._pods = sum(slot.role is role for slot in seen.slots.values())
        self._processes = _processes_of_template(seen, role) or _processes_by_words(told)
        self._losses = self._find_losses()
        self._victims = self._find_victims()
        lost = [self._place(loss.of) for loss in self._losses]
        self._lost_by = Counter(place for place in lost if place is not None and place not in self._victims)
        self._lost_in: dict[int, list[_Place]] = defaultdict(list)
        for place, _ in self._lost_by.most_common():
            self._lost_in[place.pod].append(place)
        self._first = self._lost_by_neighbours() or self._only_one_left() or self._by_elimination()

    def of_pod(self, pod: int) -> Trainer | None:
        """The one that failed by itself; else the one of whom its launcher has told."""
        told = self._told[pod]
        words = told.words
        first = self._first
        if first is not None and first.pod == pod and (words is None or first.process != words.process):
            log = log_beside(words.log if words is not None else "", first.process)
            return Trainer(first.process, self._rank(first), None, log, is_lost=True)
        if words is None:
            return None
        place = _Place(pod, words.process)
        return Trainer(words.process, self._rank(place), words.code, words.log, is_lost=place == first)

    def is_victim(self, pod: int) -> bool:
        """So says the launcher of the trainer that it names, or, if it names none, some trainer."""
        words = self._told[pod].words
        return self.lost_a_peer(pod) or (words is not None and words.code == _ABORTED)

    def lost_a_peer(self, pod: int) -> bool:
        return self._told[pod].lost_a_peer

    def raised(self, pod: int) -> bool:
        """The trainer, or some trainer, ended with an exception."""
        return self._told[pod].raised

    def lost_in(self, pod: int) -> int:
        """How many trainers have lost one of this pod that, as far as is known, has lost nobody."""
        return sum(self._lost_by[place] for place in self._lost_in.get(pod, ()))

    def look_at(self, pod: int) -> str:
        """The log that may tell more: of somebody whom another one has lost."""
        lost = self._lost_in.get(pod)
        words = self._told[pod].words
        return log_beside(words.log if words is not None else "", lost[0].process) if lost else ""

    @property
    def _world(self) -> int | None:
        """How many trainers the job has."""
        return self._processes * self._pods if self._processes is not None else None

    def _lost_by_neighbours(self) -> _Place | None:
        """By both, or by the only one; of several the one that most have lost."""
        enough = min(2, self._world - 1) if self._world is not None else 2
        lost = [(-count, place) for place, count in self._lost_by.items() if count >= enough]
        return min(lost)[1] if lost else None

    def _only_one_left(self) -> _Place | None:
        """All others are victims, or have a neighbour that lost somebody else."""
        world = self._world
        # Each loss speaks for three trainers at most.
        if world is None or not self._losses or world > 3 * len(self._losses) + len(self._victims) + 1:
            return None
        spoken_for = {
            neighbour
            for loss in self._losses
            for neighbour in ((loss.by + 1) % world, (loss.by - 1) % world)
            if neighbour != loss.of
        }
        places = [self._place(rank) for rank in range(world) if rank not in spoken_for]
        left = [place for place in places if place is not None and place not in self._victims]
        return left[0] if len(left) == 1 else None

    def _by_elimination(self) -> _Place | None:
        """The own logs of all are known, and all but one lost a peer or were stopped."""
        if not all(told.victims or told.others for told in self._told.values()):
            return None
        left = [_Place(pod, process) for pod, told in self._told.items() for process in told.others]
        return left[0] if len(left) == 1 and self._victims else None

    def _find_losses(self) -> list[Loss]:
        """None if a pod tells of trainers that it does not have: ranks are those of a smaller group then."""
        losses = {(pod, loss) for pod, told in self._told.items() for loss in told.losses}
        for pod, loss in losses:
            by, of = self._place(loss.by), self._place(loss.of)
            if by is None or of is None or by.pod != pod:
                return []
        return sorted({loss for _, loss in losses})

    def _find_victims(self) -> set[_Place]:
        by_others = {self._place(loss.by) for loss in self._losses}
        of_logs = {_Place(pod, one) for pod, told in self._told.items() for one in told.victims}
        named = {
            _Place(pod, told.words.process)
            for pod, told in self._told.items()
            if told.words is not None and self.is_victim(pod)
        }
        return {place for place in by_others if place is not None} | of_logs | named

    def _place(self, rank: int) -> _Place | None:
        if self._pods == 1 and self._processes is None:
            return _Place(0, rank)
        if self._processes is None or rank >= self._processes * self._pods:
            return None
        return _Place(*divmod(rank, self._processes))

    def _rank(self, place: _Place) -> int | None:
        if self._pods == 1:
            return place.process
        return place.pod * self._processes + place.process if self._processes is not None else None


def trainers_of(seen: Observed, told: Mapping[str, Told]) -> dict[Role, Trainers]:
    """What was told, by the name of the pod."""
    by_role: dict[Role, dict[int, Told]] = defaultdict(dict)
    for name, one in told.items():
        slot = seen.slots[name]
        by_role[slot.role][slot.rank] = one
    return {role: Trainers(seen, role, pods) for role, pods in by_role.items()}


def _processes_of_template(seen: Observed, role: Role) -> int | None:
    """As asked for. What a launcher chooses by itself depends on the devices that it finds."""
    containers: list[dict[str, Any]] = seen.templates[role].get("containers") or []
    for container in containers:
        words = [*(container.get("command") or ()), *(container.get("args") or ())]
        asked = [
            one.get("value", "") for one in container.get("env") or () if one.get("name") == _OVERRIDES
        ] or _PROCESSES.findall(" ".join(map(str, words)))
        if asked:
            return _as_count(str(asked[-1]))
    return None


def _processes_by_words(told: Mapping[int, Told]) -> int | None:
    """Launchers say so when they start; later on a trainer's two ranks and its pod's tell it."""
    counts = {one.processes for one in told.values() if one.processes is not None}
    for pod, one in told.items():
        words = one.words
        # The log of the first trainer is always in the text; that of another only if the words are of it.
        by = {loss.by for loss in one.losses}
        if pod and words is not None and words.process == 0 and len(by) == 1:
            count, rest = divmod(next(iter(by)), pod)
            counts |= {count} if count and not rest else set()
    return counts.pop() if len(counts) == 1 else None


def _as_count(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and 0 < int(text) < 100_000 else None
