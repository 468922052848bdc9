"""Sweeps of the simulator are long: `make unit` lives a sample of each, `make simulate` all of it.

Which part is drawn by SAMPLE, a word that the run prints in its first lines and that draws the same again.
Nobody has to choose one: then each run has another. Random lives begin at a number, BASE, that goes with it.
"""

import os
import random
import secrets
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
# Put down for the processes of `pytest -n`, which are begun later: all have to collect the same tests.
SAMPLE = os.environ["SAMPLE"] = os.environ.get("SAMPLE") or secrets.token_hex(4)
BASE = int(os.environ.get("BASE") or random.Random(f"{SAMPLE} base").getrandbits(32))


def header() -> str:
    return f"simulated: a sample, SAMPLE={SAMPLE}, random lives from BASE={BASE} on; `make simulate` is all"


def shuffled(things: Sequence[T], *what: object) -> list[T]:
    """In an order that the word and what it is for decide."""
    return random.Random(f"{SAMPLE} {' '.join(map(str, what))}").sample(things, len(things))
