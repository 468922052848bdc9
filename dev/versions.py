"""Which releases of Paddle train under `paddle-operator run`, in which mode: tries, and prints a table."""

import re
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from dev import paddles

EXAMPLES = paddles.TOP / "examples"
COLLECTIVE = EXAMPLES / "02-collective" / "job.yaml"
PARAMETER_SERVERS = EXAMPLES / "04-wide-and-deep" / "job.yaml"
# Paddle has parameter servers up to 3.0.0.
TRIALS = [
    ("2.6.2", "PS", PARAMETER_SERVERS),
    ("3.0.0", "PS", PARAMETER_SERVERS),
    ("2.6.2", "Collective", COLLECTIVE),
    ("3.0.0", "Collective", COLLECTIVE),
    ("3.3.1", "Collective", COLLECTIVE),
]
ROW = "{:<8} {:<11} {:<10} {:>8} {:>8}"
DONE = re.compile(r"^done step=\d+ loss=(\S+)", re.MULTILINE)
RUN = [sys.executable, "-m", "paddle_operator", "run"]
SECONDS = 300


class Outcome(NamedTuple):
    text: str
    loss: float
    """The mean of all workers; nan if one has none."""
    seconds: float
    errors: str


def main() -> int:
    pythons = {version: paddles.ensure(version) for version, _, _ in TRIALS}
    print(ROW.format("Paddle", "mode", "outcome", "loss", "seconds"), flush=True)
    outcomes = []
    for version, mode, job in TRIALS:
        outcome = train(job, pythons[version])
        outcomes.append(outcome)
        loss, seconds = f"{outcome.loss:.4f}", f"{outcome.seconds:.1f}"
        print(ROW.format(version, mode, outcome.text, loss, seconds), flush=True)
    for outcome in outcomes:
        sys.stderr.write(outcome.errors)
    return 1 if any(outcome.errors for outcome in outcomes) else 0


def train(job: Path, python: Path) -> Outcome:
    roles = ["worker", "ps"] if job == PARAMETER_SERVERS else ["worker"]
    changes = [f"--set=spec.{role}.template.spec.containers[0].command[0]={python}" for role in roles]
    with TemporaryDirectory() as folder:
        started = time.monotonic()
        ran = subprocess.run(
            [*RUN, str(job), *changes, f"--keep={folder}", f"--timeout={SECONDS}s"],
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.monotonic() - started
        loss = final_loss(Path(folder))
    if ran.returncode == 0:
        return Outcome("Completed", loss, seconds, "")
    return Outcome(f"code {ran.returncode}", loss, seconds, ran.stdout + ran.stderr)


def final_loss(kept: Path) -> float:
    logs = [log.read_text() for log in kept.glob("logs/default/*-worker-*/paddle.log")]
    found = [match[1] for log in logs if (match := DONE.search(log))]
    return sum(map(float, found)) / len(logs) if found and len(found) == len(logs) else float("nan")


if __name__ == "__main__":
    sys.exit(main())
