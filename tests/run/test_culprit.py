"""Whose last lines tell why a container failed."""

from pathlib import Path

import pytest

from paddle_operator.local.logs import process_log
from paddle_operator.run.culprit import FARTHEST_TRACEBACK, SHOWN_LINES, farewell

TRY = "[try 1 begins]"
TRACEBACK = ["Traceback (most recent call last):", '  File "t.py", line 1', "ValueError: bad data"]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "paddle.log"


def write(file: Path, lines: list[str]) -> None:
    file.write_text("".join(f"{line}\n" for line in lines))


@pytest.mark.parametrize(
    ("local_rank", "processes", "source"),
    [
        (None, [], "printed"),
        (None, [["a"], ["b"]], "printed"),
        (0, [], "printed"),
        (0, [TRACEBACK], 0),
        (1, [["a"], TRACEBACK], 1),
        (1, [["a"], [*TRACEBACK, TRY, "b"]], 1),
        # Whose log has nothing of it.
        (1, [["a"], []], "printed"),
        (5, [["a"], ["b"]], "printed"),
    ],
)
def test_whose_last_lines_are_shown(
    log: Path, local_rank: int | None, processes: list[list[str]], source: int | str
) -> None:
    printed = ["the launcher's words"]
    write(log, printed)
    for rank, lines in enumerate(processes):
        write(process_log(log, rank), lines)
    found = farewell(log, local_rank)
    said = processes[source] if isinstance(source, int) else printed
    assert found == said[-len(found) :]
    assert found
    assert TRY not in found


def test_a_log_that_a_script_has_put_elsewhere_is_found(log: Path, tmp_path: Path) -> None:
    write(log, ["the launcher's words"])
    elsewhere = tmp_path / "workerlog.1"
    assert farewell(log, 1, str(elsewhere)) == ["the launcher's words"]
    write(elsewhere, TRACEBACK)
    assert farewell(log, 1, str(elsewhere)) == TRACEBACK
    assert farewell(log, 1, "log/workerlog.1") == ["the launcher's words"], "nobody knows where that is"


@pytest.mark.parametrize(
    ("before", "behind", "shown"),
    [
        (100, 0, SHOWN_LINES),
        (100, SHOWN_LINES, SHOWN_LINES + len(TRACEBACK)),
        (0, 5, len(TRACEBACK) + 5),
        (100, FARTHEST_TRACEBACK, SHOWN_LINES),
    ],
)
def test_a_traceback_is_shown_from_its_beginning(log: Path, before: int, behind: int, shown: int) -> None:
    write(log, ["step"] * before + TRACEBACK + ["I1119 tcp_store.cc:292] receive shutdown event"] * behind)
    assert len(farewell(log, None)) == shown


def test_a_container_that_printed_nothing(log: Path) -> None:
    assert farewell(log, None) == []
