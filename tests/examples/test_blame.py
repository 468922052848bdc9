"""Which process is to blame when real Paddle fails, where several trainers may run in one pod.

The launcher looks at its trainers once a second, and gloo's victims end within that time: so what it tells
differs from run to run, and the verdict must not.
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import laptop
import pytest
import yaml

from paddle_operator.run.setback import on_this_machine

pytestmark = pytest.mark.paddle

SECONDS = 180.0
VERDICT_SECONDS = 15.0
"""Of a verdict that waits for a minute this is far away."""
SCRIPT = """
import os, signal, sys, time
import paddle
from paddle import distributed

distributed.init_parallel_env()
rank = distributed.get_rank()
for step in range(1, 1000):
    distributed.all_reduce(paddle.ones([1000]))
    print(f"step={step} loss={1 / step:.4f}", flush=True)
    if step == 20 and rank == int(os.environ["RANK_THAT_FAILS"]):
        exec(os.environ["HOW"])
    time.sleep(0.02)
"""
LAUNCH = "-m paddle.distributed.launch --nproc_per_node"
RAISES = "raise ValueError('bad batch')"
KILLS_ITSELF = "os.kill(os.getpid(), signal.SIGKILL)"
KILLS_ITS_LAUNCHER = "os.kill(os.getppid(), signal.SIGKILL)"
SHOWS_OWN_LOGS = "code=$?; tail -c 400 ${PADDLE_LOG_DIR:-log}/workerlog.*; exit $code"


@dataclass(frozen=True)
class Case:
    pods: int
    processes: int
    rank: int
    how: str
    own_logs: bool = False


@dataclass(frozen=True)
class Told:
    out: str
    failure: dict[str, Any]
    seconds: float
    """From the first end of a container to the verdict."""


def fail(folder: Path, case: Case, python: str | Path = "python") -> Told:
    command = f"{python} {LAUNCH} {case.processes} train.py"
    document = laptop.job(
        "job",
        f"{command} || {{ {SHOWS_OWN_LOGS}; }}" if case.own_logs else f"exec {command}",
        replicas=case.pods,
        paddle={
            "env": [
                {"name": "OMP_NUM_THREADS", "value": "1"},
                {"name": "RANK_THAT_FAILS", "value": str(case.rank)},
                {"name": "HOW", "value": case.how},
            ]
        },
        cleanPodPolicy="Never",
    )
    (folder / "train.py").write_text(SCRIPT)
    (folder / "job.yaml").write_text(document)
    kept = folder / "kept"
    ran = laptop.run(folder / "job.yaml", "--keep", kept, limit=SECONDS)
    assert ran.code == 1, ran
    documents = list(yaml.safe_load_all((kept / "objects.yaml").read_text()))
    (status,) = (one["status"] for one in documents if one["kind"] == "PaddleJob")
    (failed,) = (one for one in status["conditions"] if one["type"] == "Failed")
    ends = [
        end["finishedAt"]
        for pod in documents
        if pod["kind"] == "Pod"
        for container in pod["status"]["containerStatuses"]
        if (end := container["state"].get("terminated"))
    ]
    waited = at(failed["lastTransitionTime"]) - min(map(at, ends))
    return Told(ran.out, status["failure"], waited.total_seconds())


def at(written: str) -> datetime:
    return datetime.fromisoformat(written)


@pytest.mark.parametrize(
    ("case", "pod", "process", "kind"),
    [
        (Case(2, 2, 3, RAISES), 1, 1, "code"),
        (Case(2, 2, 0, RAISES), 0, 0, "code"),
        (Case(2, 2, 3, "sys.exit(7)"), 1, 1, "code"),
        (Case(2, 1, 1, RAISES), 1, 0, "code"),
        (Case(2, 1, 1, KILLS_ITSELF), 1, 0, "code"),
        (Case(2, 1, 1, KILLS_ITS_LAUNCHER), 1, None, "code"),
        (Case(1, 4, 2, KILLS_ITSELF, own_logs=True), 0, 2, "code"),
    ],
    ids=[
        "rank 3 of 2x2 raises", "rank 0 of 2x2 raises", "rank 3 of 2x2 exits", "rank 1 of 2x1 raises",
        "rank 1 of 2x1 killed", "launcher of 2x1 killed", "rank 2 of 1x4 killed, own logs",
    ],
)  # fmt: skip
def test_the_process_that_failed_is_the_cause(
    tmp_path: Path, case: Case, pod: int, process: int | None, kind: str
) -> None:
    told = fail(tmp_path, case)
    blamed = told.failure
    assert (blamed["pod"], blamed.get("localRank"), blamed["class"]) == (f"job-worker-{pod}", process, kind)
    assert told.seconds < VERDICT_SECONDS
    assert on_this_machine(blamed["message"]) in told.out
    if process is not None:
        assert f"process {process} (global rank {case.rank})" in blamed["message"]
        assert blamed["log"].endswith(f"workerlog.{process}")


def test_of_a_ring_that_has_broken_up_the_one_that_says_nothing_of_peers_is_named(tmp_path: Path) -> None:
    """The launcher shows process 0 alone, and that lost a victim: the others' own logs tell who failed."""
    told = fail(tmp_path, Case(1, 4, 2, KILLS_ITSELF))
    blamed = told.failure
    assert (blamed["pod"], blamed["class"]) == ("job-worker-0", "code")
    assert blamed["localRank"] == 2
    assert told.seconds < VERDICT_SECONDS


def test_the_newest_paddle_is_understood_too(tmp_path: Path, newest_paddle: Path) -> None:
    told = fail(tmp_path, Case(2, 2, 3, RAISES), python=newest_paddle)
    assert (told.failure["pod"], told.failure["localRank"]) == ("job-worker-1", 1)
