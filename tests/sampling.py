"""Sweeps of the simulator are long: `make unit` lives a sample of each, `make simulate` all of it.

Which part is drawn by SAMPLE, a word that the run prints in its first lines and that draws the same again.
"""

import os
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
SAMPLE = os.environ.get("SAMPLE", "0")


def header() -> str:
    return f"simulated: a sample, SAMPLE={SAMPLE}; `make simulate` is all"


def shuffled(things: Sequence[T], *what: object) -> list[T]:
    """In an order that the word and what it is for decide."""
    return random.Random(f"{SAMPLE} {' '.join(map(str, what))}").sample(things, len(things))
