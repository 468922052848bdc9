"""Sets of ranks as short text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddle_operator.paddlejob.ranks import from_text, to_text


@pytest.mark.parametrize(
    ("ranks", "text"), [(set(), ""), ({0}, "0"), ({0, 1, 2}, "0-2"), ({7, 0, 1, 3}, "0-1,3,7")], ids=str
)
def test_spans_are_short(ranks: set[int], text: str) -> None:
    assert to_text(ranks) == text


@given(st.sets(st.integers(0, 5999)))
def test_what_is_written_is_read(ranks: set[int]) -> None:
    assert from_text(to_text(ranks), below=6000) == ranks


@pytest.mark.parametrize("text", ["x", "-", "1-x", "9-1", "0-99999999999", ",", "٣", "9" * 5000])
def test_nonsense_is_passed_over_and_bounded(text: str) -> None:
    assert from_text(text, below=4) <= {0, 1, 2, 3}
