"""One log for all runs of a container, and where each of them begins in it."""

from pathlib import Path

import pytest

from paddle_operator.local.logs import LAST_WORDS_BYTES, begin_run, begins_a_run, begins_a_try, last_words


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "team" / "pod" / "paddle.log"


def add(log: Path, text: str) -> None:
    with log.open("a") as file:
        file.write(text)


def test_the_first_run_says_nothing(log: Path) -> None:
    assert begin_run(log, attempt=0, restarts=0) == 0
    assert log.read_text() == ""


@pytest.mark.parametrize(
    ("before", "attempt", "restarts", "after"),
    [
        ("", 1, 0, "[try 1 begins]\n"),
        ("a\n", 2, 0, "a\n[try 2 begins]\n"),
        ("no end", 2, 0, "no end\n[try 2 begins]\n"),
        ("a\n", 0, 3, "a\n[restart in place 3 begins]\n"),
        ("a\n", 2, 3, "a\n[restart in place 3 begins]\n"),
    ],
)
def test_later_runs_stand_behind_a_line_that_names_them(
    log: Path, before: str, attempt: int, restarts: int, after: str
) -> None:
    begin_run(log, 0, 0)
    add(log, before)
    assert begin_run(log, attempt, restarts) == len(after)
    assert log.read_text() == after
    mark = after.splitlines()[-1]
    assert (begins_a_run(mark), begins_a_try(mark)) == (True, not restarts)


@pytest.mark.parametrize("line", ["", "try 1 begins", "[try one begins]", "I say [try 1 begins]", "[begins]"])
def test_what_others_print_is_no_such_line(line: str) -> None:
    assert not begins_a_run(line)
    assert not begins_a_try(line)


def test_last_words_are_those_of_the_run(log: Path) -> None:
    begin_run(log, 0, 0)
    add(log, "of an earlier one\n")
    begun_at = begin_run(log, 1, 0)
    assert last_words(log, begun_at) == ""
    add(log, "mine\n")
    assert last_words(log, begun_at) == "mine\n"
    add(log, "x" * LAST_WORDS_BYTES)
    assert last_words(log, begun_at) == "x" * LAST_WORDS_BYTES
