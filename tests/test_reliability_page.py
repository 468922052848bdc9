"""The pages about reliability list every seeded bug, in both languages; `make generate` does it again."""

from pathlib import Path

import pytest
from seeded_bugs import CLASSES

from dev import reliability


@pytest.mark.parametrize("page", reliability.PAGES, ids=lambda page: page.parent.name)
def test_the_tables_are_those_of_the_seeded_bugs(page: Path) -> None:
    stored = page.read_text(encoding="utf-8")
    is_current = stored == reliability.rewritten(stored, reliability.PAGES[page])
    assert is_current, f"docs/{page.parent.name}/{page.name} is out of date: run `make generate`"


@pytest.mark.parametrize("words", reliability.PAGES.values(), ids=lambda words: words.columns[0])
def test_every_class_has_a_name_in_every_language(words: reliability.Words) -> None:
    assert words.titles.keys() == CLASSES.keys()
    assert words.absent.keys() == {number for number, one in CLASSES.items() if one.absent}


def test_a_page_without_a_place_for_its_tables_is_refused() -> None:
    with pytest.raises(AssertionError, match="no place for classes"):
        reliability.rewritten("# Reliability\n", reliability.ENGLISH)
