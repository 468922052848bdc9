"""What is known of training that ended well: by its file, by a line of its log, by Paddle's launcher."""

from pathlib import Path

import pytest

from paddle_operator.local.reports import report_in

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
        ("hello\n", LINE, '{"paddlepaddle.org/report":1,' + AS_KEPT),
        ("hello\n", "no report", ""),
        (BANNER.format(2), LINE, '{"paddlepaddle.org/report":1,"nodes":2,' + AS_KEPT),
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
    assert report_in(tmp_path / "message", tmp_path / "log", len(before)) == expected
