"""Bugs to be put into the operator by monkeypatch; operators have had most of them (classes.py).

Each is a function that takes a MonkeyPatch, in a file by subject, with what must catch it in its decorator.
tests/simulation/test_seeded_bugs.py and tests/test_seeded_bugs.py put them in, one after the other, and want
each to be caught; docs/en/reliability.md lists them. A test can be run with a bug by hand:

    PYTHONPATH=tests:. python -m pytest -p seeded_bugs.plugin --seeded-bug NAME TEST
"""

from seeded_bugs import caches, decisions, ends, owners, peers, statuses, times, writes
from seeded_bugs.bug import ANOTHER_END, BUGS, Bug, Level
from seeded_bugs.classes import CLASSES, BugClass

SUBJECTS = (caches, owners, writes, decisions, ends, statuses, peers, times)

__all__ = ["ANOTHER_END", "BUGS", "CLASSES", "SUBJECTS", "Bug", "BugClass", "Level"]
