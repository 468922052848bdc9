"""Following a log that somebody else writes."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_operator.run.tail import LONGEST_LINE, MOST_BYTES, Tail, last_lines


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def add(log: Path, text: str | bytes) -> None:
    with log.open("ab") as file:
        file.write(text.encode() if isinstance(text, str) else text)


def test_a_log_that_is_not_there_yet(log: Path) -> None:
    tail = Tail(log)
    assert tail.new_lines() == []
    add(log, "hello\n")
    assert tail.new_lines() == ["hello"]


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        (["a\nb\n"], [["a", "b"]]),
        (["a\n", "b\n"], [["a"], ["b"]]),
        (["a\nb", "c\n"], [["a"], ["bc"]]),
        (["a", "b", "c\n"], [[], [], ["abc"]]),
        (["\n\na\n"], [["", "", "a"]]),
        ([""], [[]]),
        # Progress bars, and lines as Windows ends them.
        (["10%\r20%\r30%\n"], [["10%", "20%", "30%"]]),
        (["a\r\nb\r\n"], [["a", "b"]]),
        # A character that is not yet whole.
        ([b"gr\xc3", b"\xa4ben\n"], [[], ["gräben"]]),
        ([b"\xff\n"], [["\ufffd"]]),
        (["a\x0bb\x0cc\u2028d\n"], [["a\x0bb\x0cc\u2028d"]]),
    ],
)
def test_whole_lines_as_they_come(log: Path, pieces: list[str | bytes], lines: list[list[str]]) -> None:
    tail, found = Tail(log), []
    for piece in pieces:
        add(log, piece)
        found.append(tail.new_lines())
    assert found == lines
    assert tail.new_lines() == []


@pytest.mark.parametrize(
    ("pieces", "last"),
    [
        (["a\nb\n"], "b"),
        (["a\n\n  \n"], "a"),
        (["a\nb"], "a"),
        (["a\n", "\n"], "a"),
        (["b\r"], "b"),
        ([], ""),
    ],
)
def test_the_last_line_that_says_something(log: Path, pieces: list[str], last: str) -> None:
    tail = Tail(log)
    for piece in pieces:
        add(log, piece)
        tail.new_lines()
    assert tail.last == last


def test_what_stands_behind_the_last_break_is_a_line_when_nobody_writes_any_more(log: Path) -> None:
    add(log, "a\nloss=0.5")
    tail = Tail(log)
    assert tail.new_lines() == ["a"]
    assert tail.new_lines(is_complete=True) == ["loss=0.5"]
    assert tail.new_lines(is_complete=True) == []
    assert tail.last == "loss=0.5"


def test_a_line_that_never_ends_is_cut(log: Path) -> None:
    add(log, "x" * (LONGEST_LINE + 1))
    tail = Tail(log)
    assert tail.new_lines() == ["x" * LONGEST_LINE]
    add(log, "y\n")
    assert tail.new_lines() == ["y"]


def test_a_long_line_is_cut(log: Path) -> None:
    add(log, "x" * (2 * LONGEST_LINE) + "\nnext\n")
    assert Tail(log).new_lines() == ["x" * LONGEST_LINE, "next"]


def test_much_comes_a_megabyte_at_a_time(log: Path) -> None:
    line = "x" * 1023 + "\n"
    add(log, line * (MOST_BYTES // 1024 + 3) + "rest")
    tail = Tail(log)
    assert [len(tail.new_lines(is_complete=True)) for _ in range(3)] == [MOST_BYTES // 1024, 4, 0]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(alphabet="ab\nä", max_size=8)))
def test_no_cut_loses_anything(tmp_path_factory: pytest.TempPathFactory, pieces: list[str]) -> None:
    log = tmp_path_factory.mktemp("tail") / "log"
    tail, found = Tail(log), []
    for piece in pieces:
        add(log, piece)
        found += tail.new_lines()
    found += tail.new_lines(is_complete=True)
    whole = "".join(pieces)
    assert found == (whole.removesuffix("\n").split("\n") if whole else [])


def test_a_line_without_an_end_is_told_once_when_a_later_run_goes_on_behind_it(log: Path) -> None:
    tail = Tail(log)
    add(log, "no end")
    assert tail.new_lines(is_complete=True) == ["no end"]
    assert tail.new_lines(is_complete=True) == []
    add(log, "\n[try 1 begins]\n\nnew\n")
    assert tail.new_lines() == ["[try 1 begins]", "", "new"]


# The end of a log.


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("a\n", ["a"]),
        ("a\nb\nc\nd\n", ["b", "c", "d"]),
        ("a\nb\nc\nd", ["b", "c", "d"]),
        ("a\n\n\n", ["a", "", ""]),
        ("1%\r2%\r3%\r4%\n", ["2%", "3%", "4%"]),
        ("a\r\nb\r\n", ["a", "b"]),
        ("x\x0cy\n", ["x\x0cy"]),
        ("a\n[try 1 begins]\nb\n", ["b"]),
        ("a\n[try 1 begins]\n", []),
        ("a\n[try 1 begins]\nb\n[try 2 begins]\nc\n", ["c"]),
        ("a\n[restart in place 1 begins]\nb\n", ["a", "[restart in place 1 begins]", "b"]),
    ],
)
def test_the_last_lines(log: Path, text: str, lines: list[str]) -> None:
    add(log, text)
    assert last_lines(log, 3) == lines


def test_the_last_lines_of_nothing(log: Path) -> None:
    assert last_lines(log, 3) == []


def test_the_last_lines_of_a_long_log(log: Path) -> None:
    add(log, "x" * (10 * LONGEST_LINE) + "\nlast one\n")
    assert last_lines(log, 3) == ["x" * LONGEST_LINE, "last one"]
    add(log, "".join(f"line {number}\n" for number in range(100_000)))
    assert last_lines(log, 2) == ["line 99998", "line 99999"]
