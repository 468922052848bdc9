"""Times as kubectl takes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddle_operator.run.duration import BadDuration, seconds


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("90s", 90),
        ("90", 90),
        ("10m", 600),
        ("1h", 3600),
        ("1h30m", 5400),
        ("1h30m5s", 5405),
        ("1h5s", 3605),
        ("1.5h", 5400),
        (".5s", 0.5),
        ("0", 0),
    ],
)
def test_a_time(text: str, count: float) -> None:
    assert seconds(text) == count


@pytest.mark.parametrize(
    "text",
    [
        "",
        "s",
        "h",
        "soon",
        "-5s",
        "+5s",
        "5 s",
        " 5s",
        "500ms",
        "30m1h",
        "5s5s",
        "1d",
        ".",
        "1.2.3s",
        "inf",
        "1e3",
    ],
)
def test_anything_else_is_refused_with_examples(text: str) -> None:
    with pytest.raises(BadDuration) as caught:
        seconds(text)
    assert str(caught.value) == f"--timeout {text!r} is no time; write for example 90s, 10m or 1h30m"


@given(st.integers(0, 999), st.integers(0, 59), st.integers(0, 59))
def test_the_parts_add_up(hours: int, minutes: int, rest: int) -> None:
    assert seconds(f"{hours}h{minutes}m{rest}s") == 3600 * hours + 60 * minutes + rest
