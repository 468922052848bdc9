"""The pages about reliability list rules, groups and bugs, in each language; `make generate` does it."""

from pathlib import Path

import pytest
from seeded_bugs import CLASSES
from simulator.rules import BY_GROUPS, BY_THE_END, NOT_BUILT, RULES, invariants_of
from simulator.sweeps import GROUPS

from dev import reliability


@pytest.mark.parametrize("page", reliability.PAGES, ids=lambda page: page.parent.name)
def test_the_tables_are_those_of_the_seeded_bugs(page: Path) -> None:
    stored = page.read_text(encoding="utf-8")
    is_current = stored == reliability.rewritten(stored, reliability.PAGES[page])
    assert is_current, f"docs/{page.parent.name}/{page.name} is out of date: run `make generate`"


@pytest.mark.parametrize("words", reliability.PAGES.values(), ids=lambda words: words.columns[0])
def test_every_class_rule_and_group_has_words_in_every_language(words: reliability.Words) -> None:
    assert words.rules.keys() == RULES.keys()
    assert words.groups.keys() == GROUPS.keys()
    assert words.titles.keys() == CLASSES.keys()
    assert words.absent.keys() == {number for number, one in CLASSES.items() if one.absent}


def test_every_rule_is_checked_by_something_or_said_not_to_be() -> None:
    elsewhere = NOT_BUILT | BY_GROUPS.keys() | BY_THE_END
    assert {rule for rule in RULES if not invariants_of(rule)} == elsewhere


def test_a_page_without_a_place_for_its_tables_is_refused() -> None:
    with pytest.raises(AssertionError, match="no place for groups"):
        reliability.rewritten("# Reliability\n", reliability.ENGLISH)
