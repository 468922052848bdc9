"""One way on this machine, under `paddle-operator run`."""

import sys
import time
from pathlib import Path
from typing import NamedTuple

import laptop
import yaml

from .ways import SCRIPTS, Process, Way, manifest, read_results

SECONDS = 120.0
"""A case takes 5; one that hangs must end."""


class Tried(NamedTuple):
    processes: list[Process]
    code: int
    """Of the command; 124: it was cut short."""
    seconds: float
    text: str


def run(way: Way, intranet: str, folder: Path, *, python: str | Path = sys.executable) -> Tried:
    results, kept = folder / "results", folder / "kept"
    results.mkdir()
    variables = {"SCRIPTS": str(SCRIPTS), "RESULTS": str(results), "PYTHON": str(python)}
    file = folder / "job.yaml"
    file.write_text(yaml.safe_dump(manifest(way, intranet, variables=variables)))
    started = time.monotonic()
    limit = f"--timeout={SECONDS:.0f}s"
    ran = laptop.run(file, "--keep", kept, limit, limit=2 * SECONDS)
    logs = "".join(f"\n{log}:\n{log.read_text()[-3000:]}" for log in sorted(kept.glob("logs/*/*/*.log")))
    return Tried(read_results(results), ran.code, time.monotonic() - started, ran.out + ran.err + logs)
