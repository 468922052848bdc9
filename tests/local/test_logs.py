"""One log for all runs of a container, and where each of them begins in it."""

from pathlib import Path

import pytest

from paddle_operator.local.logs import (
    LAST_WORDS_BYTES,
    begin_run,
    begins_a_run,
    begins_a_try,
    furnish_launcher,
    last_words,
    process_log,
    process_logs,
)


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


# Processes of a container.


def test_processes_have_their_logs_beside_that_of_the_container_by_local_rank(log: Path) -> None:
    begin_run(log, 0, 0)
    others = [log.with_name("paddle-two.log"), process_log(log.with_name("paddle-two.log"), 0)]
    for rank in (10, 2, 0):
        add(process_log(log, rank), "hello\n")
    for other in others:
        add(other, "hello\n")
    assert {rank: path.name for rank, path in process_logs(log).items()} == {
        0: "paddle.workerlog.0",
        2: "paddle.workerlog.2",
        10: "paddle.workerlog.10",
    }
    assert [*process_logs(log)] == [0, 2, 10]


def test_what_the_launcher_writes_of_its_processes_is_kept_and_nothing_else(
    log: Path, tmp_path: Path
) -> None:
    begin_run(log, 0, 0)
    folder = tmp_path / "launcher"
    for _ in range(2):  # also when it has to wait for a config map
        furnish_launcher(folder, log)
    assert process_logs(log) == {}, "none that nobody has begun"
    for name in ("workerlog.0", "workerlog.63", "envlog.0", "backup_env.0.json", "default.abcdef.log"):
        add(folder / name, "hello\n")
    assert sorted(path.name for path in log.parent.iterdir()) == [
        "paddle.log",
        "paddle.workerlog.0",
        "paddle.workerlog.63",
    ]


def test_links_lead_to_the_logs_from_everywhere(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--keep here`, and a container that runs elsewhere."""
    begin_run(log, 0, 0)
    monkeypatch.chdir(tmp_path)
    furnish_launcher(Path("launcher"), log.relative_to(tmp_path))
    add(tmp_path / "launcher" / "workerlog.1", "hello\n")
    assert process_log(log, 1).read_text() == "hello\n"


def test_a_later_run_is_marked_in_the_logs_of_processes_that_there_are(log: Path) -> None:
    begin_run(log, 0, 0)
    add(process_log(log, 1), "no end")
    begin_run(log, 1, 0)
    assert process_log(log, 1).read_text() == "no end\n[try 1 begins]\n"
    assert [*process_logs(log)] == [1]


def test_last_words_are_those_of_the_run(log: Path) -> None:
    begin_run(log, 0, 0)
    add(log, "of an earlier one\n")
    begun_at = begin_run(log, 1, 0)
    assert last_words(log, begun_at) == ""
    add(log, "mine\n")
    assert last_words(log, begun_at) == "mine\n"
    add(log, "x" * LAST_WORDS_BYTES)
    assert last_words(log, begun_at) == "x" * LAST_WORDS_BYTES


def test_last_words_have_the_ends_of_the_logs_of_several_processes(log: Path) -> None:
    begun_at = begin_run(log, 0, 0)
    add(log, "the launcher's\n")
    add(process_log(log, 0), "zero\n")
    assert last_words(log, begun_at) == "the launcher's\n", "which it has copied from the only process"
    add(process_log(log, 1), "x" * 1000 + "one\n")
    begin_run(log, 1, 0)
    add(process_log(log, 0), "zero again\n")
    words = last_words(log, begun_at)
    assert "\n==> workerlog.0 <==\n\nzero again\n" in words
    assert words.endswith("\n==> workerlog.1 <==\n\n"), "it has not said anything in this run"
    assert "one" not in words


def test_last_words_have_the_ends_of_logs_that_a_script_has_put_elsewhere(log: Path, tmp_path: Path) -> None:
    begun_at = begin_run(log, 0, 0)
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    add(log, f"Container rank 0 status failed cmd ['t.py'] code 1 log {folder}/workerlog.0 \n")
    add(folder / "workerlog.0", "zero\n")
    add(folder / "workerlog.1", "one\n")
    assert last_words(log, begun_at).endswith("==> workerlog.0 <==\nzero\n\n==> workerlog.1 <==\none\n")
