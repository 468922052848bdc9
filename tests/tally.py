"""How much was simulated in this test run; tests/conftest.py says so at its end."""

from collections import Counter

TALLY: Counter[str] = Counter()
