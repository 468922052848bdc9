"""How much was simulated in this test run; tests/simulation/conftest.py says so at its end."""

from collections import Counter

TALLY: Counter[str] = Counter()
