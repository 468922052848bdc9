"""Sweeps in portions that another process can live through: what is handed over is names and numbers only."""

import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from simulator.cases import Verdict, tried
from simulator.exhaustive import SEARCHES, search
from simulator.names import EXHAUSTIVE, RANDOM, UNDISTURBED, UnknownNameError, named, without_faults
from simulator.once_broken import ONCE_BROKEN
from simulator.oracle import UndisturbedError
from simulator.sweeps import GROUPS
from simulator.workloads import ALL

PARTS = 4
SEEDS_AT_ONCE = 100


@dataclass(frozen=True)
class Batch:
    group: str
    life: str = ""
    """Or the search that it is; of random lives those that were broken once."""
    part: int = 0
    """One of PARTS; or the first seed."""

    @property
    def name(self) -> str:
        return f"{self.group} {self.life}".strip()

    def verdicts(self) -> Iterator[Verdict]:
        if self.group == UNDISTURBED:
            yield verdict_of(self.name)
        elif self.group == RANDOM:
            drawn = range(self.part, self.part + SEEDS_AT_ONCE)
            yield from (verdict_of(f"{RANDOM} {seed}") for seed in (ONCE_BROKEN if self.life else drawn))
        else:
            yield from map(tried, islice(GROUPS[self.group].cases(self.life), self.part, None, PARTS))


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
            # A life that is broken without any fault is met in many portions, and is one failure.
            tuple({one.case: one for one in (*self.failures, *other.failures)}.values()),
        )


def batches(only: str, schedules: int, base: int) -> list[Batch]:
    """Of all groups, or of one. The last few random lives may be more than was asked for.

    Of these, what was broken once comes first, and then numbers from the base on.
    """
    calm = [Batch(UNDISTURBED, life) for life in ALL]
    swept = [
        Batch(name, life, part)
        for name, group in GROUPS.items()
        if only in {"", name}
        for life in group.lives
        for part in range(PARTS)
    ]
    drawn = [Batch(RANDOM, part=first) for first in range(base, base + schedules, SEEDS_AT_ONCE)]
    drawn.insert(0, Batch(RANDOM, "once broken"))
    searches = [Batch(EXHAUSTIVE, name) for name in SEARCHES]
    # What is broken without any fault is said at once; then the longest first.
    return [
        *(calm if only in {"", UNDISTURBED} else []),
        *(searches if only in {"", EXHAUSTIVE} else []),
        *swept,
        *(drawn if only in {"", RANDOM} else []),
    ]


def lived(batch: Batch) -> tuple[str, Result]:
    """With its group. What goes wrong is one failure, and the rest of the run goes on."""
    began = time.process_time()
    try:
        result = _searched(batch) if batch.group == EXHAUSTIVE else _swept(batch)
    except Exception as error:  # noqa: BLE001 (the rest of the run goes on)
        result = Result(failures=(_without_a_case(batch, error),))
    return batch.group, replace(result, seconds=time.process_time() - began)


def _swept(batch: Batch) -> Result:
    verdicts: list[Verdict] = []
    try:
        verdicts.extend(batch.verdicts())
    except Exception as error:  # noqa: BLE001 (what came before it counts)
        verdicts.append(_without_a_case(batch, error))
    return Result(
        len(verdicts),
        sum(verdict.writes for verdict in verdicts),
        sum(verdict.struck > 0 for verdict in verdicts),
        failures=tuple(verdict for verdict in verdicts if verdict.broken),
    )


def _searched(batch: Batch) -> Result:
    findings = search(*SEARCHES[batch.life])
    orders = {f"{batch.name}: {','.join(map(str, made))}": broken for broken, made in findings.broken.items()}
    failures = [replace(verdict_of(name), broken=broken) for name, broken in orders.items()]
    return Result(findings.executions, states=findings.states, failures=tuple(failures))


def _without_a_case(batch: Batch, error: Exception) -> Verdict:
    """What is broken by itself cannot be disturbed; of any other error the whole portion is to blame."""
    if isinstance(error, UndisturbedError):
        verdict = tried(without_faults(error.workload))
        return replace(verdict, broken=verdict.broken or str(error))
    return Verdict(batch.name, broken="".join(traceback.format_exception(error)).strip())


def verdict_of(name: str) -> Verdict:
    """Also if there is an error before there is a case; but not if there is no case of that name."""
    try:
        case = named(name)
    except UnknownNameError:
        raise
    except Exception:  # noqa: BLE001 (whatever it is, it is this case's)
        return Verdict(name, broken=traceback.format_exc().strip())
    return tried(case)
