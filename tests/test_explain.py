"""`paddle-operator explain-exit` as people meet it."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner, Result

from paddle_operator.cli import app
from paddle_operator.paddlejob.ends import table

REASONS = sorted({reason for row in (*table().end, *table().waiting) for reason in row.reasons})


def explain_exit(*words: str, columns: int = 200) -> Result:
    wide = {"COLUMNS": str(columns), "TERM": "dumb"}
    return CliRunner().invoke(app, ("explain-exit", *words), env=wide)


def told(*words: str, columns: int = 200) -> str:
    result = explain_exit(*words, columns=columns)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def in_one_line(text: str) -> str:
    return " ".join(text.split())


def complaint(*words: str) -> str:
    result = explain_exit(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    return line


def test_a_code_is_told_with_class_meaning_limit_and_next_step() -> None:
    assert told("7") == (
        "7: the program\n"
        "  class    code\n"
        "  means    ended with an error of its own\n"
        "  counts   as a failure, against runPolicy.backoffLimit\n"
        "  next     look at the end of its log: kubectl logs POD -c CONTAINER\n"
    )


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        (
            "15",
            ["Paddle's launcher", "class preempted", "against runPolicy.maxDisruptions", "15 may also be"],
        ),
        ("101", ["legacy launcher", "class rendezvous", "101 may also be: the program"]),
        ("134", ["class victim", "SIGABRT"]),
        ("139", ["SIGSEGV"]),
        ("250", ["Paddle's launcher", "class victim"]),
        ("241", ["Paddle's launcher", "class victim", "or of this pod if no other has ended"]),
        ("lostbypeers", ["class code", "the first that its peers lost", "its log, workerlog.*"]),
        ("TrainerFailed", ["class code", "FallbackToLogsOnError"]),
        (" 136 ", ["a signal (the code less 128)"]),
        ("0", ["ended well", "ServerEnded"]),
        ("OOMKilled", ["any container", "class OOM", "raise resources.limits.memory"]),
        ("ImagePullBackOff", ["class image", "imagePullSecrets", "startDeadlineSeconds"]),
        ("outofexample.com/npu", ["class node", "was turned down by its node"]),
        ("StartDeadlineExceeded", ["against nothing"]),
        ("rendezvous", ["RestartedAlone", "101: Paddle's legacy launcher"]),
        ("Error", ["Ask for that code"]),
        ("PodFailed", ["status.failure"]),
        ("Completed", ["ended well"]),
    ],
)
def test_a_word_is_explained(word: str, parts: list[str]) -> None:
    text = in_one_line(told(word))
    assert [part for part in parts if part not in text] == []


@pytest.mark.parametrize("code", ["137", "247"])
def test_of_a_killed_process_it_is_said_that_the_reason_goes_before_the_code(code: str) -> None:
    text = in_one_line(told(code))
    assert "these reasons, which go before the code: - OOMKilled (class OOM): used more memory" in text


@pytest.mark.parametrize("reason", REASONS)
def test_case_does_not_matter(reason: str) -> None:
    expected = told(reason)
    assert told(reason.lower()) == told(reason.upper()) == told(f" {reason} ") == expected


@pytest.mark.parametrize("code", range(256))
def test_every_code_is_explained(code: int) -> None:
    assert told(str(code)).startswith(f"{code}: ")


def test_without_a_word_the_whole_table_is_printed() -> None:
    text = told()
    keys = [*REASONS, *(code for row in table().end for code in row.codes)]
    assert [key for key in keys if key not in text] == []
    assert "goes before its exit code" in text
    assert "paddle-operator explain-exit 247" in text


@pytest.mark.parametrize(("columns", "widest"), [(200, 100), (100, 100), (72, 72), (1, 60)])
def test_lines_fit_the_terminal_and_are_never_longer_than_100(columns: int, widest: int) -> None:
    texts = [told(columns=columns), told("137", columns=columns), told("Evicted", columns=columns)]
    lines = [line for text in texts for line in text.splitlines()]
    assert max(map(len, lines)) <= widest
    assert not [line for line in lines if line != line.rstrip()]


def test_there_is_no_colour_and_nothing_but_ascii() -> None:
    text = told()
    assert text.isascii()
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("256", "256 is no exit code, these are 0 to 255"),
        ("99999999999999999999", "is no exit code"),
        ("-9", "what signal 9 ended has 137, or 247 under Paddle's launcher"),
        ("-999", "-999 is no exit code, these are 0 to 255"),
        ("OOMKiled", "'OOMKiled' is no exit code (0 to 255) and no reason that is known; is it OOMKilled?"),
        ("nonsense-of-mine", "without a word, prints all"),
        ("137.0", "no reason that is known"),
        ("²", "no reason that is known"),
        ("", "the word is empty"),
        ("*", "no reason that is known"),
    ],
)
def test_a_word_that_is_not_known_is_an_error_with_a_way_out(word: str, words: str) -> None:
    assert words in complaint(word)


def test_help_teaches_with_an_example() -> None:
    text = in_one_line(explain_exit("--help").output)
    for part in ("CODE|REASON", "OOMKilled", "Try: paddle-operator explain-exit 247", "whole table"):
        assert part in text


def test_two_words_are_too_many() -> None:
    result = explain_exit("137", "247")
    assert result.exit_code == 2
    assert "Usage:" in result.stderr


def test_the_other_commands_do_not_pay_for_this_one() -> None:
    program = "import sys, paddle_operator.cli; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    modules = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert not {"tomllib", "paddle_operator.paddlejob.ends"} & set(modules)
