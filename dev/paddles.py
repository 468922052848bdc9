"""Releases of Paddle, each in an environment of its own, for tests. Made once, then kept in the user's cache.

    python -m dev.paddles 2.6.2     # prints the path of its Python

Layout: <cache>/paddle/2.6.2-<key>/bin/python; the key changes with the lock, the Python and the machine.
"""

import argparse
import hashlib
import platform
import subprocess
import sys
from pathlib import Path

from testbed.cache import build_lock, cache_folder
from testbed.errors import BuildError, tail
from testbed.progress import Progress

TOP = Path(__file__).resolve().parent.parent
LOCKS = {
    "2.6.2": TOP / "requirements-paddle-2.6.2.lock",
    "3.0.0": TOP
    / "requirements-paddle.lock",  # that of paddle-operator[local]: the last one with parameter servers
    "3.1.0": TOP / "requirements-paddle-3.1.0.lock",
    "3.3.1": TOP / "requirements-paddle-3.3.1.lock",
}
NEWEST = "3.3.1"


def ensure(version: str) -> Path:
    """The Python that has it."""
    folder = cache_folder() / "paddle" / f"{version}-{cache_key(LOCKS[version])}"
    python, stamp = folder / "bin" / "python", folder / "installed"
    with build_lock(folder.with_name(f"{folder.name}.lock"), f"Paddle {version}") as lock:
        # The stamp comes last: half of it does not count.
        if not stamp.exists():
            make(version, folder, python, lock)
            stamp.touch()
    return python


def cache_key(lock: Path) -> str:
    ingredients = [lock.read_bytes(), platform.python_version().encode(), platform.machine().encode()]
    digests = b"".join(hashlib.sha256(ingredient).digest() for ingredient in ingredients)
    return hashlib.sha256(digests).hexdigest()[:16]


def make(version: str, folder: Path, python: Path, lock: int) -> None:
    requirements = LOCKS[version]
    progress = Progress(f"Paddle {version}", f"installing {requirements.name} (first time: about 20 seconds)")
    pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    commands: list[list[str | Path]] = [
        [sys.executable, "-m", "venv", "--clear", folder],
        [python, *pip, "--require-hashes", "-r", requirements],
    ]
    log = folder.with_name(f"{folder.name}.log")
    with log.open("wb") as output:
        for command in commands:
            finished = subprocess.run(command, stdout=output, stderr=output, check=False, pass_fds=(lock,))
            if finished.returncode != 0:
                progress.stop()
                words = " ".join(map(str, command))
                raise BuildError(
                    f"`{words}` failed; the end of {log}:\n{tail(log)}",
                    remedy="see the message above: no network, a full disk?",
                )
    log.unlink()
    progress.done("installed")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m dev.paddles")
    parser.add_argument("version", choices=LOCKS)
    print(ensure(parser.parse_args().version))
