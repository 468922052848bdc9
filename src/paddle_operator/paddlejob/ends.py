"""What it means when a process or pod ends, or waits: the table in ends.toml, and how it is asked."""

import tomllib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache
from importlib.resources import files

import msgspec


class Counts(StrEnum):
    """Against which limit the end of a try counts."""

    FAILURE = "failure"
    DISRUPTION = "disruption"
    NOTHING = "nothing"
    """It is final whatever the limits."""


class Meaning(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: str = msgspec.field(name="class")
    means: str
    next: str
    reasons: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    vague: bool = False
    doubtful: bool = False
    by: str = ""
    counts: Counts = Counts.FAILURE

    def covers(self, code: int) -> bool:
        return any(low <= code <= high for low, high in map(_bounds, self.codes))

    def explains(self, reason: str) -> bool:
        """One that ends in * stands for all that begin so: kubelets make up OutOf<resource>."""
        return reason in self.reasons or any(
            one.endswith("*") and reason.startswith(one[:-1]) for one in self.reasons
        )

    def told(self, facts: Mapping[str, str]) -> "Meaning":
        """With its gaps filled in; what is not known, or empty, is said in general words."""
        known = _Facts({name: fact for name, fact in facts.items() if fact})
        filled = {name: getattr(self, name).format_map(known) for name in ("means", "next")}
        return msgspec.structs.replace(self, **filled)


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    blame: tuple[str, ...]
    end: tuple[Meaning, ...]
    waiting: tuple[Meaning, ...]

    def rank(self, meaning: Meaning) -> int:
        """Whom to blame first."""
        return self.blame.index(meaning.kind)


VICTIM = "victim"
IN_GENERAL = {
    "limit": "resources.limits.memory",
    "image": "of the container",
    "pod": "POD",
    "container": "CONTAINER",
    "log": "workerlog.*",
}
"""What sentences may have gaps for, and how these are filled when nothing is known."""
UNKNOWN = Meaning(
    kind="code", means="failed", next="look at its log, and at what kubectl describe pod says", by="unknown"
)


@cache
def table() -> Table:
    text = files(__package__).joinpath("ends.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), Table)


@cache
def meaning_of(reasons: tuple[str, ...], code: int | None) -> Meaning:
    """Of an end: by the first reason that the table knows, a vague one last; else by the exit code."""
    found = [one for reason in reasons for one in table().end if one.explains(reason)]
    if found:
        return min(found, key=lambda one: one.vague)
    rows = table().end if code is not None else ()
    return _first(one for one in rows if one.covers(code or 0)) or UNKNOWN


def meanings_of_code(code: int) -> tuple[Meaning, ...]:
    """All that an exit code may mean when nothing else is known; the narrowest first."""
    return tuple(one for one in table().end if one.covers(code))


@cache
def meaning_of_waiting(reason: str) -> Meaning | None:
    return _first(one for one in table().waiting if one.explains(reason))


def _first(found: Iterable[Meaning]) -> Meaning | None:
    return next(iter(found), None)


def _bounds(written: str) -> tuple[int, int]:
    low, _, high = written.partition("-")
    return int(low), int(high or low)


class _Facts(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return IN_GENERAL.get(name, name)
