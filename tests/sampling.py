"""Sweeps of the simulator are long: `make unit` lives a sample of each, `make simulate` all of it.

Which part is drawn by SAMPLE, a word that the run prints in its first lines and that draws the same again.
"""

import os
import random
from collections.abc import Iterable

WHOLE = os.environ.get("SIMULATE") == "all"
SAMPLE = os.environ.get("SAMPLE", "0")
SHARE = 0.15


def header() -> str:
    return (
        "simulated: everything" if WHOLE else f"simulated: a sample, SAMPLE={SAMPLE}; `make simulate` is all"
    )


def sample(numbers: Iterable[int], *what: object) -> list[int]:
    """Of one sweep, in its order; never none of it."""
    found = list(numbers)
    if WHOLE or not found:
        return found
    chance = random.Random(f"{SAMPLE} {' '.join(map(str, what))}")
    return sorted(chance.sample(found, max(1, round(SHARE * len(found)))))
