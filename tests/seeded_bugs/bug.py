"""What a seeded bug is: how to put it in, the classes that it stands for, and who must notice it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from pytest import MonkeyPatch  # noqa: PT013 (it is in every line of this package)
from simulator.oracle import ANOTHER_END

Seed = Callable[[MonkeyPatch], None]
Hunt = tuple[str, str]
"""Which faults (a name of HUNTS in tests/simulation/test_seeded_bugs.py), in which life."""


class Level(StrEnum):
    """Where a bug is caught; the lowest that can do it comes first."""

    TABLE = "table"
    """A test that needs nothing but Python."""
    SIMULATION = "simulation"
    """An invariant, in a whole life under faults."""
    SERVER = "API server"
    """A test on a real kube-apiserver."""


@dataclass(frozen=True)
class Bug:
    seed: Seed
    classes: tuple[int, ...]
    """Of classes.py; none: no other operator is known to have had it."""
    level: Level
    caught_by: tuple[str, ...]
    """Invariants, or ANOTHER_END; or tests, as pytest names them. Each of these must fail."""
    hunts: tuple[Hunt, ...] = ()
    error: str = ""
    """How the tests fail, if not by what they assert."""

    @property
    def name(self) -> str:
        return self.seed.__name__

    @property
    def sentence(self) -> str:
        return self.name.replace("_", " ")


__all__ = ["ANOTHER_END", "BUGS", "Bug", "Level", "served", "simulated", "tabled"]
BUGS: dict[str, Bug] = {}
_Decorator = Callable[[Seed], Seed]


def simulated(*classes: int, breaks: Iterable[str], hunts: Iterable[Hunt]) -> _Decorator:
    return _registered(classes, Level.SIMULATION, tuple(sorted(breaks)), tuple(hunts))


def tabled(*classes: int, fails: Iterable[str], error: str = "") -> _Decorator:
    return _registered(classes, Level.TABLE, tuple(fails), error=error)


def served(*classes: int, fails: Iterable[str]) -> _Decorator:
    return _registered(classes, Level.SERVER, tuple(fails))


def _registered(
    classes: tuple[int, ...],
    level: Level,
    caught_by: tuple[str, ...],
    hunts: tuple[Hunt, ...] = (),
    error: str = "",
) -> _Decorator:
    def register(seed: Seed) -> Seed:
        bug = Bug(seed, classes, level, caught_by, hunts, error)
        assert bug.name not in BUGS, f"two bugs are called {bug.name}"
        BUGS[bug.name] = bug
        return seed

    return register
