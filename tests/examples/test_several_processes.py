"""Two pods of two processes, with real Paddle: each process is a stream of its own, from end to end."""

import re
from collections import Counter
from pathlib import Path

import laptop
import pytest

from dev import paddles

pytestmark = pytest.mark.paddle

EXAMPLE = Path(__file__).parents[2] / "examples" / "05-several-processes" / "job.yaml"
SECONDS = 180.0
PROCESSES = [(rank, local_rank) for rank in (0, 1) for local_rank in (0, 1)]
PYTHON = "spec.worker.template.spec.containers[0].command[0]"


def said(out: str) -> Counter[tuple[str, str]]:
    """How often who has said what, of what the script prints."""
    pattern = r"^(several-\S+) \| (process .*|step=.*|done .*|ValueError.*)$"
    return Counter(re.findall(pattern, out, re.MULTILINE))


def steps_of(out: str) -> list[str]:
    """Of the table at the end."""
    _, table = out.split("step    loss")
    return re.findall(r"^ +(\d+)  \d\.", table, re.MULTILINE)


def test_every_process_is_shown_once_and_kept(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    ran = laptop.run(
        EXAMPLE, "--logs", "--keep", kept, "--volumes", tmp_path / "volumes", limit=SECONDS, SECRET="sesame"
    )
    assert ran.code == 0, ran
    found = said(ran.out)
    assert set(found.values()) == {1}
    assert len({text for _, text in found if text.startswith("done")}) == 1, "all have the same parameters"
    for rank, local_rank in PROCESSES:
        name = f"several-worker-{rank}:{local_rank}"
        texts = [text for source, text in found if source == name]
        assert texts[0] == f"process {2 * rank + local_rank} of 4 begins"
        assert len(texts) == 12, texts
        log = kept / "logs" / "default" / f"several-worker-{rank}" / f"paddle.workerlog.{local_rank}"
        assert set(texts) <= set(log.read_text().splitlines())
    assert steps_of(ran.out)[-1] == "100"
    assert "--log_dir is passed over on this machine" in ran.err
    # Of what the launcher writes beside the logs nothing is kept: there may be secrets in it.
    assert not any("sesame" in file.read_text() for file in kept.rglob("*") if file.is_file())
    assert not any((tmp_path / "volumes" / "default" / "training-logs").iterdir())


def test_the_traceback_of_the_process_that_failed_is_shown_in_every_try(tmp_path: Path) -> None:
    """It is not the first of its pod; and those that are fail too, before their launcher looks."""
    words = ("--logs", "--volumes", tmp_path, "--set", "spec.runPolicy.backoffLimit=1")
    ran = laptop.run(EXAMPLE, *words, limit=SECONDS, FAIL_AT="40")
    assert ran.code == 1, ran
    assert said(ran.out)["several-worker-1:1", "ValueError: bad data at step 40"] == 2
    assert set(said(ran.out).values()) == {2}, "nothing is shown again by a launcher"
    expect_traceback(ran.out)
    assert steps_of(ran.out) == ["10", "20", "30"]


@pytest.mark.parametrize("version", ["2.6.2", paddles.NEWEST])
def test_other_releases_of_paddle_too(tmp_path: Path, version: str) -> None:
    python = f"{PYTHON}={paddles.ensure(version)}"
    words = ("--logs", "--volumes", tmp_path, "--set", python)
    ran = laptop.run(EXAMPLE, *words, limit=SECONDS, FAIL_AT="40")
    assert ran.code == 1, ran
    found = said(ran.out)
    assert set(found.values()) == {1}
    assert {source for source, _ in found} == {f"several-worker-{a}:{b}" for a, b in PROCESSES}
    expect_traceback(ran.out)
    assert steps_of(ran.out) == ["10", "20", "30"]


def expect_traceback(out: str) -> None:
    _, report = out.split("lines of several-worker-1:1 (rank 1, local rank 1):\n")
    assert "  Traceback (most recent call last):\n" in report
    assert report.endswith("  ValueError: bad data at step 40\n")
