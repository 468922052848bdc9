"""`paddle-operator run` of jobs whose pods have several processes, by a script that plays Paddle's launcher.

It copies the first one's lines late, and prints those of a failed one again.
"""

from pathlib import Path

import laptop
import pytest

LAUNCHER = """
cd "${PADDLE_LOG_DIR:-own}"
echo "envlog $PADDLE_TRAINER_ID" > envlog.0
touch workerlog.0
begin=$(wc -l < workerlog.0)
for step in 1 2; do for k in 0 1; do echo "I am $k of $PADDLE_TRAINER_ID" >> workerlog.$k; done; done
for k in 0 1; do echo "step=1 loss=0.5$k" >> workerlog.$k; done
echo "LAUNCH INFO 2026-11-19 23:29:33,693 Watching Pod: wnyodp, replicas 2, status running"
tail -n +$((begin + 1)) workerlog.0
"""
FAILS = """
echo "ValueError: bad data" >> workerlog.1
echo "LAUNCH ERROR 2026-11-19 23:29:34,693 Container failed !!!"
echo "Container rank 1 status failed cmd ['python', '-u', 't.py'] code 1 log workerlog.1"
echo "LAUNCH INFO 2026-11-19 23:29:34,693 -------- ERROR LOG DETAIL --------"
tail -n 3 workerlog.1
echo "LAUNCH INFO 2026-11-19 23:29:34,693 Exit code 1"
exit 1
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "job.yaml"
    file.write_text(text)
    return file


def test_each_process_of_each_pod_is_shown_once_and_kept_and_nothing_else(tmp_path: Path) -> None:
    keep = tmp_path / "kept"
    ran = laptop.run(written(tmp_path, laptop.job("pair", LAUNCHER)), "--logs", "--keep", keep)
    assert ran.code == 0, ran
    shown = [line for line in ran.out.splitlines() if " | I am" in line]
    assert sorted(shown) == [
        f"pair-worker-{rank}:{k} | I am {k} of {rank}" for rank in (0, 1) for k in (0, 1) for _ in range(2)
    ]
    assert "pair-worker-1 | LAUNCH INFO" in ran.out
    assert "pair-worker-1:1 step 1 loss 0.5100, last line: step=1 loss=0.51" in ran.out
    assert sorted(path.name for path in (keep / "logs" / "default" / "pair-worker-1").iterdir()) == [
        "paddle.log",
        "paddle.workerlog.0",
        "paddle.workerlog.1",
    ]
    assert not any("envlog" in path.read_text() for path in keep.rglob("workerlog*"))


@pytest.mark.parametrize("attempts", [1, 2])
def test_of_a_process_that_failed_the_last_lines_are_shown(tmp_path: Path, attempts: int) -> None:
    """Also in its second try, in a pod of the same name."""
    governed = {"runPolicy": {"backoffLimit": attempts - 1}}
    file = written(tmp_path, laptop.job("one", LAUNCHER + FAILS, replicas=1, **governed))
    ran = laptop.run(file, "--logs")
    assert ran.code == 1, ran
    assert ran.out.count("one-worker-0:1 | ValueError: bad data") == attempts
    assert ran.out.count("one-worker-0 | Container rank 1 status failed") == attempts
    assert ran.out.count("one-worker-0 | LAUNCH INFO 2026-11-19 23:29:34,693 Exit code 1") == attempts
    assert "one-worker-0 | I am" not in ran.out
    _, report = ran.out.split("lines of one-worker-0:1 (rank 0, local rank 1):\n")
    assert report.splitlines() == ["  I am 1 of 0"] * 2 + ["  step=1 loss=0.51", "  ValueError: bad data"]


def test_of_a_launcher_that_keeps_its_logs_elsewhere_everything_is_shown_as_it_comes(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    script = "unset PADDLE_LOG_DIR\n" + LAUNCHER + FAILS.replace("workerlog.1", "workerlog.0")
    ran = laptop.run(written(tmp_path, laptop.job("one", script, replicas=1)), "--logs")
    assert ran.code == 1, ran
    assert ran.out.count("one-worker-0 | I am 0 of 0") == 3
    # What follows the heading is no second measurement.
    table = ran.out[ran.out.index("step    loss") :].splitlines()
    assert [line.split()[:2] for line in table[1:3]] == [["1", "0.5000"], ["The", "last"]]
