"""Reads step and loss out of the lines that a training script prints.

Without `--metric`, a line counts if it says `loss` and a number, in whatever company:

    step=12 loss=0.1234
    Epoch 1, step: 12/500, lr: 1e-3, loss: 1.2e-1
    {"global_step": 12, "loss": 0.1234}

The step may be missing. The words may be written in any case; `val_loss` and `steps` are other words.
"""

import re
from dataclasses import dataclass
from typing import Self

from .scene import Measurement

LONGEST_LINE = 2000
"""Characters that are looked at: nobody reads more of a line, and no pattern is slow on so few."""

EXAMPLE = r"--metric 'iter (?P<step>\d+).* cost (?P<loss>\S+)'"

# `++`, `*+` and `?+` never give back what they took: each pattern passes over a line once.
_IS = r"""["']?(?:\s*+[=:]|\s)\s*+[\[(]?"""
_NUMBER = r"[-+]?(?:\d++(?:\.\d*+)?+|\.\d++)(?:e[-+]?\d++)?+"
_FLAGS = re.IGNORECASE | re.ASCII
# Not `loss 0.5%`, which is what a network loses.
_LOSS = re.compile(rf"(?<!\w)loss{_IS}(?P<loss>{_NUMBER}|[-+]?(?:nan|inf(?:inity)?+))(?![\w%])", _FLAGS)
# Not `step=0.01`, which is how far an optimiser goes; and no counter has more than 18 digits.
_STEP = re.compile(rf"(?<!\w)(?:global_)?step{_IS}(?P<step>\d{{1,18}}+)(?!\w|\.\d)", _FLAGS)

_COLUMN_CODE = r"\x1b\[[0-?]*+[ -/]*+[@-~]?"
_TITLE_CODE = r"\x1b\][^\x07\x1b]*+(?:\x07|\x1b\\)?"
_TERMINAL_CODE = re.compile(rf"{_COLUMN_CODE}|{_TITLE_CODE}|\x1b.?")


class BadMetric(Exception):  # noqa: N818 - named after what it is, like the errors of a cluster
    """The regular expression of `--metric` cannot be used; the text says why, and shows one that can."""

    def __init__(self, pattern: str, problem: str) -> None:
        super().__init__(f"--metric {pattern!r} {problem}. A good one: {EXAMPLE}")


@dataclass(frozen=True)
class Metric:
    """How to find a measurement in a line: each pattern is searched for by itself, in any order."""

    patterns: tuple[re.Pattern[str], ...]

    @classmethod
    def of(cls, pattern: str | None) -> Self:
        """What the user asked for, or else the format above."""
        if pattern is None:
            return cls((_LOSS, _STEP))
        try:
            compiled = re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise BadMetric(pattern, f"is no regular expression: {error}") from error
        if "loss" not in compiled.groupindex:
            raise BadMetric(pattern, "has no group named loss, as in (?P<loss>...)")
        return cls((compiled,))

    def measure(self, line: str) -> Measurement | None:
        text = readable(line)
        found: dict[str, str | None] = {}
        for pattern in self.patterns:
            match = pattern.search(text)
            if match is not None:
                found |= match.groupdict()
        loss = _loss(found.get("loss"))
        return None if loss is None else Measurement(_step(found.get("step")), loss)


def readable(line: str) -> str:
    """What a person would see of a line in a terminal: one row, no colours, nothing invisible."""
    # A progress bar writes over itself; only its last state is still to be seen.
    last = line.rstrip().rpartition("\r")[2][:LONGEST_LINE]
    if last.isprintable():
        return last
    text = _TERMINAL_CODE.sub("", last)
    return "".join(sign if sign.isprintable() else " " if sign.isspace() else "" for sign in text)


def _loss(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _step(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None
