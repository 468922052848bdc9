"""The newest Paddle in an environment of its own, for tests. Made once, then kept in the user's cache.

    python -m dev.newest_paddle     # prints the path of its Python

Layout: <cache>/newest-paddle/<key>/bin/python; the key changes with the lock, the Python and the machine.
"""

import hashlib
import platform
import subprocess
import sys
from pathlib import Path

from testbed.cache import build_lock, cache_folder
from testbed.errors import BuildError, tail
from testbed.progress import Progress

LOCK = Path(__file__).resolve().parent.parent / "requirements-newest-paddle.lock"


def ensure() -> Path:
    """The Python that has it."""
    folder = cache_folder() / "newest-paddle" / cache_key()
    python, stamp = folder / "bin" / "python", folder / "installed"
    with build_lock(folder.with_suffix(".lock"), "the newest Paddle") as lock:
        # The stamp comes last: half of it does not count.
        if not stamp.exists():
            make(folder, python, lock)
            stamp.touch()
    return python


def cache_key() -> str:
    ingredients = [LOCK.read_bytes(), platform.python_version().encode(), platform.machine().encode()]
    digests = b"".join(hashlib.sha256(ingredient).digest() for ingredient in ingredients)
    return hashlib.sha256(digests).hexdigest()[:16]


def make(folder: Path, python: Path, lock: int) -> None:
    progress = Progress("the newest Paddle", f"installing {LOCK.name} (first time: about 20 seconds)")
    pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    commands: list[list[str | Path]] = [
        [sys.executable, "-m", "venv", "--clear", folder],
        [python, *pip, "--require-hashes", "-r", LOCK],
    ]
    log = folder.with_suffix(".log")
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
    print(ensure())
