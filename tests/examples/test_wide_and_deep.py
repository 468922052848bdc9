"""Example 04 learns on parameter servers: as plain processes, and under the operator in every network."""

import subprocess
import sys
import uuid
from pathlib import Path

import laptop
import plain_processes
import pytest
from plain_processes import WIDE_AND_DEEP, Ended, Training

from dev import paddles
from paddle_operator.paddlejob.hints import NO_SERVERS_IN_PADDLE

pytestmark = pytest.mark.paddle

SECONDS = 180.0
TOP = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Training:
    return plain_processes.train(tmp_path_factory.mktemp("plain"), seconds=SECONDS)


def final_loss(workers: list[Ended]) -> float:
    """Their mean; together they have clearly learned. (Who begins later begins with what others learned.)"""
    losses = [worker.losses for worker in workers]
    mean = sum(last for _, last in losses) / len(losses)
    assert mean < 0.75 * max(first for first, _ in losses), [worker.log for worker in workers]
    return mean


def test_plain_processes_learn_and_only_the_servers_had_to_be_ended(plain: Training) -> None:
    assert final_loss(plain.workers) < 0.35
    assert [worker.code for worker in plain.workers] == [0, 0]
    assert [server.code for server in plain.servers] == [-15, -15]


SEED = TOP / "deploy" / "examples" / "wide_and_deep.yaml"
FILES = [*(WIDE_AND_DEEP.parent / name for name in ("job.yaml", "job-service.yaml", "job-host.yaml")), SEED]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_job_learns_what_plain_processes_learn(file: Path, tmp_path: Path, plain: Training) -> None:
    """Also as the original operator's documentation has it, with the image that it names."""
    ran = laptop.run(file, "--keep", tmp_path, limit=SECONDS)
    assert ran.code == 0, ran
    logs = sorted(tmp_path.glob("logs/default/*-worker-*/paddle.log"))
    workers = [Ended(0, log.read_text()) for log in logs]
    assert len(workers) == 2
    assert final_loss(workers) == pytest.approx(final_loss(plain.workers), abs=0.03)


@pytest.mark.parametrize("version", ["3.1.0", "3.3.1"])
def test_a_paddle_that_has_no_parameter_servers_is_recognised_by_its_words(version: str) -> None:
    python = paddles.ensure(version)
    changes = [
        f"--set=spec.{role}.template.spec.containers[0].command[0]={python}" for role in ("ps", "worker")
    ]
    ran = laptop.run(WIDE_AND_DEEP.parent / "job.yaml", *changes, limit=SECONDS)
    assert ran.code == 1, ran
    assert NO_SERVERS_IN_PADDLE in " ".join(ran.out.split()), ran.out


def test_of_plain_processes_that_are_cut_short_none_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = f"marker-{uuid.uuid4().hex}"
    monkeypatch.setenv("MARKER", marker)
    with pytest.raises(subprocess.TimeoutExpired):
        plain_processes.train(tmp_path, seconds=4.0)  # servers and workers are just about to meet
    assert laptop.none_left([marker])


def test_by_itself_it_says_what_is_missing() -> None:
    alone = subprocess.run(
        [sys.executable, WIDE_AND_DEEP], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert alone.returncode == 1
    assert "no parameter servers" in alone.stderr
