"""What is known of training that ended well: by its file, by a line of its log, by Paddle's launcher."""

from pathlib import Path

import pytest

from paddle_operator.api.report import read_report
from paddle_operator.local.reports import termination_message

TIME = "2026-11-18 12:00:00,000"
BANNER = f"LAUNCH INFO {TIME} Job: a, mode collective, replicas {{0}}[{{0}}:{{0}}], elastic False\n"
LINE = '{"paddlepaddle.org/report": 1, "processes": [{"rank": 1, "world": 2}]}\n'
AS_KEPT = '"processes":[{"rank":1,"world":2}]}'


@pytest.mark.parametrize(
    ("log", "file", "expected"),
    [
        ("step=1 loss=2\n", None, ""),
        (BANNER.format(1), None, '{"paddlepaddle.org/report":1,"nodes":1}'),
        # A script may prepare something alone first.
        (BANNER.format(1) + BANNER.format(2), None, '{"paddlepaddle.org/report":1,"nodes":2}'),
        ("hello\n" + LINE, None, '{"paddlepaddle.org/report":1,' + AS_KEPT),
        (BANNER.format(2) + LINE, None, '{"paddlepaddle.org/report":1,"nodes":2,' + AS_KEPT),
        (LINE.replace("2}", "1}") + LINE, None, '{"paddlepaddle.org/report":1,' + AS_KEPT),
        ("hello\n", LINE, LINE.strip()),
        ("hello\n", "no report", ""),
        (BANNER.format(2), LINE, LINE.strip()),
        ("x" * 3_000_000 + "\n" + LINE, None, '{"paddlepaddle.org/report":1,' + AS_KEPT),
        (BANNER.format(2) + "x" * 3_000_000, None, '{"paddlepaddle.org/report":1,"nodes":2}'),
        ("\udcff\n".encode(errors="surrogateescape").decode("latin-1") + BANNER.format(0), None, ""),
    ],
)
def test_what_is_said_of_a_run(log: str, file: str | None, expected: str, tmp_path: Path) -> None:
    before = BANNER.format(7)
    (tmp_path / "log").write_text(before + log)
    if file is not None:
        (tmp_path / "message").write_text(file)
    assert termination_message(tmp_path / "message", tmp_path / "log", len(before), code=0) == expected


def test_of_who_failed_both_are_told_what_it_said_of_itself_and_the_end_of_its_log(tmp_path: Path) -> None:
    log = "Traceback\nValueError: 7\n"
    (tmp_path / "log").write_text(log)
    (tmp_path / "message").write_text(LINE)
    message = termination_message(tmp_path / "message", tmp_path / "log", 0, code=1)
    assert message.endswith("\n" + log)
    report = read_report(message)
    assert report is not None
    assert [(one.rank, one.world) for one in report.processes] == [(1, 2)]
    (tmp_path / "message").unlink()
    assert (
        termination_message(tmp_path / "message", tmp_path / "log", 0, code=1) == "Traceback\nValueError: 7\n"
    )
