"""What Paddle's launcher prints: its own words are told from copies of what its processes have printed."""

from pathlib import Path

import pytest
from launcher_words import DETAIL, EXIT, FAILED, RANK, WATCHING

from paddle_operator.run import launcher
from paddle_operator.run.launcher import Copies, Repetition
from paddle_operator.run.tail import Tail

TRY = "[try 1 begins]"


@pytest.mark.parametrize(
    ("lines", "once"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", FAILED, RANK, DETAIL, "a", EXIT], ["a", FAILED, RANK, DETAIL, EXIT]),
        # What a shell script says behind its launcher.
        (["a", DETAIL, "a", EXIT, "sorry"], ["a", DETAIL, EXIT, "sorry"]),
        # A last line without an end.
        ([DETAIL, "a", f"loss=0.{EXIT}", "sorry"], [DETAIL, f"loss=0.{EXIT}", "sorry"]),
        # Killed while it did so.
        ([DETAIL, "a", TRY, "a"], [DETAIL, TRY, "a"]),
        ([DETAIL, "a", "I say ERROR LOG DETAIL", EXIT], [DETAIL, EXIT]),
        (["ERROR LOG DETAIL of mine", "a"], ["ERROR LOG DETAIL of mine", "a"]),
    ],
)
def test_what_follows_the_heading_is_a_repetition(lines: list[str], once: list[str]) -> None:
    repetition = Repetition()
    assert [line for line in lines if not repetition.holds(line)] == once


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "paddle.workerlog.0"


@pytest.mark.parametrize(
    ("log_of_first", "printed", "own"),
    [
        ("", ["a", WATCHING], ["a", WATCHING]),
        ("a\nb\n", [WATCHING, "a", "b", EXIT], [WATCHING, EXIT]),
        # The same line again and again is copied as often as it was printed.
        ("a\na\n", ["a", "a", "a"], ["a"]),
        # Others print too, in between.
        ("a\nb\nc\n", ["sh: hello", "a", "GPU 0: 93%", "b", "c"], ["sh: hello", "GPU 0: 93%"]),
        # The launcher is killed before it has copied all of it.
        (f"a\nb\n{TRY}\nc\nd\n", ["a", TRY, WATCHING, "c", "d"], [TRY, WATCHING]),
        (f"a\nb\n{TRY}\nb\n", [TRY, "b", "b"], [TRY, "b"]),
        # The first try ended before any process was started.
        ("a\n", ["oh", TRY, WATCHING, "a"], ["oh", TRY, WATCHING]),
        # Progress bars, and a last line without an end, behind which the launcher goes on.
        ("1%\r2%\r3%\n", ["1%", "2%", "3%"], []),
        ("1%\r2%", ["1%", f"2%{EXIT}"], [EXIT]),
    ],
)
def test_copies_are_left_out(log: Path, log_of_first: str, printed: list[str], own: list[str]) -> None:
    log.write_text(log_of_first)
    assert Copies(log).without(printed) == own


def test_copies_come_late_and_few_at_a_time(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The launcher copies at most a thousand lines a look; who prints more is ever farther ahead of it."""
    monkeypatch.setattr(launcher, "LOOKS_AHEAD", 10)
    copies, lines = Copies(log), [f"line {number}" for number in range(1000)]
    assert copies.without([WATCHING]) == [WATCHING]
    log.write_text("\n".join(lines) + "\n")
    for begin in range(0, 1000, 7):
        assert copies.without(["noise", *lines[begin : begin + 7]]) == ["noise"]


def test_behind_a_gap_only_the_launchers_words_are_its_own(log: Path, tmp_path: Path) -> None:
    log.write_text("a\nb\nc\n")
    printed = tmp_path / "paddle.log"
    printed.write_text("x\n" * (1 << 20))
    (gap, *_) = Tail(printed, farthest_behind=1 << 10).new_lines()
    lines = ["a", gap, "c", "noise", EXIT, TRY, "sh: hello"]
    assert Copies(log).without(lines) == [gap, EXIT, TRY, "sh: hello"]
