"""`paddle-operator run` as a person starts it: a process, its output, and what it leaves behind."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

COMMAND = [sys.executable, "-m", "paddle_operator", "run"]
PATIENCE = 60.0


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


def run(*words: str | Path, stdin: str = "", limit: float = PATIENCE, **variables: str) -> Ran:
    done = subprocess.run(
        [*COMMAND, *map(str, words)],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=limit,
        check=False,
        env=os.environ | variables,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


@contextmanager
def started(*words: str | Path, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """A run that goes on while the test does something to it; killed if the test leaves it running."""
    with subprocess.Popen(
        [*COMMAND, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | variables,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def job(
    name: str,
    script: str,
    *,
    replicas: int = 2,
    pod: dict[str, Any] | None = None,
    paddle: dict[str, Any] | None = None,
    **spec: Any,
) -> str:
    """A job whose workers run a shell script; more for its pods, and for their container."""
    container = {
        "name": "paddle",
        "image": "any",
        "command": ["sh", "-c", script],
        **(paddle or {}),
    }
    template = {"spec": {"terminationGracePeriodSeconds": 5, "containers": [container], **(pod or {})}}
    document = {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": name},
        "spec": {"worker": {"replicas": replicas, "template": template}, **spec},
    }
    return yaml.safe_dump(document)


def wait_for(process: subprocess.Popen[str], *texts: str) -> str:
    """What it printed until all of the texts had come."""
    assert process.stdout is not None
    seen = ""
    for line in process.stdout:
        seen += line
        if all(text in seen for text in texts):
            return seen
    raise AssertionError(f"it ended without saying {texts}:\n{seen}")


def processes(marker: str) -> list[int]:
    """Those whose command line or environment holds the marker, this process aside."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            text = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
        except OSError:
            continue
        if marker.encode() in text:
            found.append(int(folder.name))
    return found


def none_left(markers: Sequence[str], seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while any(map(processes, markers)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
