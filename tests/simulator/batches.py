"""Sweeps in portions that another process can live through: what is handed over is names and numbers only."""

import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from simulator.cases import Case, Verdict, tried
from simulator.exhaustive import SEARCHES, Order, search
from simulator.random_lives import random_case
from simulator.sweeps import GROUPS, find

RANDOM, EXHAUSTIVE = "random", "exhaustive"
NAMES = (*GROUPS, RANDOM, EXHAUSTIVE)
PARTS = 4
SEEDS_AT_ONCE = 100


@dataclass(frozen=True)
class Batch:
    group: str
    life: str = ""
    """Or the search that it is."""
    part: int = 0
    """One of PARTS; or the first seed."""

    def cases(self) -> Iterator[Case]:
        if self.group == RANDOM:
            return (random_case(seed) for seed in range(self.part, self.part + SEEDS_AT_ONCE))
        return islice(GROUPS[self.group].cases(self.life), self.part, None, PARTS)


@dataclass(frozen=True)
class Result:
    """Of one batch, or of several."""

    lives: int = 0
    writes: int = 0
    disturbed: int = 0
    """Lives in which a fault has struck."""
    seconds: float = 0.0
    """Of a core."""
    states: int = 0
    """That a search has met."""
    failures: tuple[Verdict, ...] = ()

    def __add__(self, other: "Result") -> "Result":
        return Result(
            self.lives + other.lives,
            self.writes + other.writes,
            self.disturbed + other.disturbed,
            self.seconds + other.seconds,
            self.states + other.states,
            self.failures + other.failures,
        )


def batches(only: str, schedules: int) -> list[Batch]:
    """Of all groups, or of one. The last few random lives may be more than was asked for."""
    swept = [
        Batch(name, life, part)
        for name, group in GROUPS.items()
        if only in {"", name}
        for life in group.lives
        for part in range(PARTS)
    ]
    drawn = [Batch(RANDOM, part=first) for first in range(0, schedules, SEEDS_AT_ONCE)]
    searches = [Batch(EXHAUSTIVE, name) for name in SEARCHES]
    # The longest first.
    return [
        *(searches if only in {"", EXHAUSTIVE} else []),
        *swept,
        *(drawn if only in {"", RANDOM} else []),
    ]


def lived(batch: Batch) -> tuple[str, Result]:
    """With its group. What goes wrong before there is a case, is one failure too."""
    began = time.process_time()
    if batch.group == EXHAUSTIVE:
        return batch.group, replace(searched(batch.life), seconds=time.process_time() - began)
    verdicts: list[Verdict] = []
    try:
        verdicts.extend(map(tried, batch.cases()))
    except Exception:  # noqa: BLE001 (the rest of the run goes on)
        verdicts.append(Verdict(f"{batch.group} {batch.life}", broken=traceback.format_exc()))
    return batch.group, Result(
        len(verdicts),
        sum(verdict.writes for verdict in verdicts),
        sum(verdict.struck > 0 for verdict in verdicts),
        time.process_time() - began,
        failures=tuple(verdict for verdict in verdicts if verdict.broken),
    )


def searched(name: str) -> Result:
    workload, scope = SEARCHES[name]
    findings = search(workload, scope)
    failures = [
        tried(named(f"{EXHAUSTIVE} {name}: {','.join(map(str, choices))}"))
        for choices in findings.broken.values()
    ]
    return Result(findings.executions, states=findings.states, failures=tuple(failures))


def named(name: str) -> Case:
    """One of a sweep; a random life, by its number; a search and an order. LookupError says what there is."""
    group, _, rest = name.partition(" ")
    if name.isdecimal() or (group == RANDOM and rest.isdecimal()):
        return random_case(int(name if name.isdecimal() else rest))
    if group == EXHAUSTIVE:
        return _order(name, rest)
    if group not in GROUPS:
        raise LookupError(f"there is no group {group!r}, but {', '.join(NAMES)}")
    return find(name)


def _order(name: str, rest: str) -> Order:
    where, _, order = rest.rpartition(": ")
    if where not in SEARCHES:
        known = ", ".join(SEARCHES)
        raise LookupError(f"{EXHAUSTIVE} has no search {where!r}, but {known}; then `: ` and choices")
    workload, scope = SEARCHES[where]
    choices = tuple(int(choice) for choice in order.split(",") if choice)
    return Order(name, workload, scope=scope, choices=choices)
