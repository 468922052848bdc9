"""Whose last lines tell why a container failed."""

from pathlib import Path

import pytest
from launcher_words import DETAIL, EXIT, FAILED, WATCHING

from paddle_operator.local.logs import process_log
from paddle_operator.run.culprit import FARTHEST_TRACEBACK, SHOWN_LINES, farewell

TRY = "[try 1 begins]"
TRACEBACK = ["Traceback (most recent call last):", '  File "t.py", line 1', "ValueError: bad data"]
PEER_GONE = [*TRACEBACK[:2], "RuntimeError: [/gloo/gloo/transport/tcp/pair.cc:584] TIMEOUT self_rank = 0"]
STOPPED = ["FatalError: `Termination signal` is detected by the operating system."]


def named(rank: int) -> list[str]:
    words = (
        f"Container rank {rank} status failed cmd ['python', '-u', 't.py'] code 1 log log/workerlog.{rank}"
    )
    return [WATCHING, FAILED, words, DETAIL, "...", EXIT]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "paddle.log"


def write(file: Path, lines: list[str]) -> None:
    file.write_text("".join(f"{line}\n" for line in lines))


@pytest.mark.parametrize(
    ("printed", "processes", "culprit"),
    [
        # Without a launcher, and by a launcher that says nothing of a process.
        (["oh"], [], None),
        ([WATCHING, EXIT], [["a"], ["b"]], None),
        (named(0), [TRACEBACK], None),
        (named(0), [TRACEBACK, ["a"]], 0),
        (named(1), [["a"], TRACEBACK], 1),
        # It looks once a second, and by then the others have failed too.
        (named(0), [PEER_GONE, TRACEBACK], 1),
        (named(0), [PEER_GONE, PEER_GONE, STOPPED, TRACEBACK], 3),
        (named(0), [PEER_GONE, STOPPED, ["killed, so I say nothing"]], 0),
        (named(0), [["os._exit(3)"], PEER_GONE], 0),
        # Words of an earlier try.
        ([*named(1), TRY, *named(0)], [["a", TRY, "b"], [*TRACEBACK, TRY, "b"]], 0),
        ([*named(1), TRY, "killed"], [["a", TRY, "b"], [*TRACEBACK, TRY, "b"]], None),
        # Whose log has nothing of it.
        (named(1), [["a"], []], None),
        (named(5), [["a"], ["b"]], None),
    ],
)
def test_whose_last_lines_are_shown(
    log: Path, printed: list[str], processes: list[list[str]], culprit: int | None
) -> None:
    write(log, printed)
    for rank, lines in enumerate(processes):
        write(process_log(log, rank), lines)
    found = farewell(log)
    assert found.local_rank == culprit
    source = processes[culprit] if culprit is not None else printed if processes != [TRACEBACK] else TRACEBACK
    assert found.lines == source[-len(found.lines) :]
    assert found.lines
    assert TRY not in found.lines


@pytest.mark.parametrize(
    ("lines", "is_of_a_victim", "is_of_a_culprit"),
    [
        ([], False, False),
        (["step=1 loss=0.5", "Error rate: 0.1"], False, False),
        (TRACEBACK, False, True),
        (["paddle.base.core.OutOfMemoryError: no"], False, True),
        (PEER_GONE, True, False),
        (STOPPED, True, False),
    ],
)
def test_what_they_tell(log: Path, lines: list[str], is_of_a_victim: bool, is_of_a_culprit: bool) -> None:
    write(log, lines)
    found = farewell(log)
    assert (found.is_of_a_victim, found.is_of_a_culprit) == (is_of_a_victim, is_of_a_culprit)


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
    assert len(farewell(log).lines) == shown


def test_a_container_that_printed_nothing(log: Path) -> None:
    assert farewell(log).lines == []
