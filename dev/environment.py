"""Make .venv hold what requirements-dev.lock pins, and this project as editable installs.

Runs under the system's Python before anything is installed, so it uses the standard library only.
Doing it twice does no harm. The Makefile calls it only when the lock or pyproject.toml changed.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements-dev.lock"
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
UV = VENV / "bin" / "uv"
STAMP = VENV / "installed"  # the Makefile compares its age with those of the lock and pyproject.toml

# What pip is told by its configuration or by variables, PIP_..., and how uv is told the same.
UV_VARIABLES = {
    "INDEX_URL": "UV_DEFAULT_INDEX",
    "EXTRA_INDEX_URL": "UV_INDEX",
    "FIND_LINKS": "UV_FIND_LINKS",
    "NO_INDEX": "UV_NO_INDEX",
    "TRUSTED_HOST": "UV_INSECURE_HOST",
    "CERT": "SSL_CERT_FILE",
}
SECONDS_BETWEEN_LINES = 5.0  # where a line cannot be rewritten, as in a CI log


class SetupError(Exception):
    """A person has to do something; the message says what."""


def main() -> int:
    try:
        STAMP.unlink(missing_ok=True)  # a run that stops half-way must not count as done
        if not venv_works():
            make_venv()
        install_lock()
        install_project()
        STAMP.touch()
    except SetupError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def venv_works() -> bool:
    return succeeds([VENV_PYTHON, "-c", "import sys, pip; sys.exit(sys.version_info < (3, 11))"])


def succeeds(command: list[str | Path]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:  # there is no such program
        return False


def make_venv() -> None:
    if not succeeds([sys.executable, "-m", "ensurepip", "--version"]):
        install_venv_package()
    version = ".".join(map(str, sys.version_info[:3]))
    with timed(f"Making .venv with Python {version}"):
        run([sys.executable, "-m", "venv", "--clear", VENV])


def install_venv_package() -> None:
    """Debian keeps `ensurepip`, without which a virtual environment has no pip, in a package of its own."""
    package = f"python3.{sys.version_info.minor}-venv"
    if shutil.which("apt-get") is None:
        raise SetupError(
            f"{sys.executable} lacks the module ensurepip: install the venv package of this system"
        )
    if os.geteuid() != 0:
        raise SetupError(
            f"{sys.executable} lacks the module ensurepip: run `apt-get install {package}` as root"
        )
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    with timed("Updating the package lists of apt"):
        run(["apt-get", "update", "-qq"], environment)
    with timed(f"Installing the Debian package {package}"):
        run(["apt-get", "install", "-qq", "--no-install-recommends", package], environment)


def install_lock() -> None:
    """With uv, which takes seconds; with pip, which takes a minute, wherever uv cannot."""
    lock = LOCK.read_text(encoding="utf-8")
    pins = len(re.findall(r"^[\w.-]+==", lock, re.MULTILINE))
    with timed(f"Installing {pins} packages of {LOCK.name} into .venv"):
        if install_uv(lock) and install_with_uv():
            return
        print("  uv could not; now with pip", flush=True)
        command = [*pip_install(), "--progress-bar=off", "--require-hashes", "-r", LOCK]
        run_pip_with_counter(command, pins)


def install_uv(lock: str) -> bool:
    """The one that the lock pins."""
    pin = re.search(r"^uv==.*(\n +--hash=.*)+", lock, re.MULTILINE)
    if pin is None:
        return False
    with TemporaryDirectory() as folder:
        requirement = Path(folder, "uv.lock")
        requirement.write_text(pin[0], encoding="utf-8")
        return succeeds([*pip_install(), "--require-hashes", "-r", requirement])


def install_with_uv() -> bool:
    command = [str(UV), "pip", "install", "--python", str(VENV_PYTHON), "--compile-bytecode"]
    quiet = [] if sys.stdout.isatty() else ["--quiet"]  # on a terminal, large downloads are shown
    # With hashes it does not matter which of several indexes a package comes from.
    environment = {"UV_INDEX_STRATEGY": "unsafe-best-match"} | settings_of_pip() | os.environ
    command += [*quiet, "--require-hashes", "-r", str(LOCK)]
    return subprocess.run(command, env=environment, check=False).returncode == 0


def settings_of_pip() -> dict[str, str]:
    command = [str(VENV_PYTHON), "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = {}
    for section in ("global", "install", ":env:"):  # the later one wins, as in pip
        for option, value in re.findall(rf"^{section}\.([\w-]+)=(.+)$", listed, re.MULTILINE):
            name = option.upper().replace("-", "_")
            if name in UV_VARIABLES:
                words = ast.literal_eval(value).split()
                found[UV_VARIABLES[name]] = ("," if name == "FIND_LINKS" else " ").join(words)
    return found


def install_project() -> None:
    # No build isolation: the build backend is pinned in the lock too, and its program has to be found.
    environment = os.environ | {"PATH": f"{VENV_PYTHON.parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    with timed("Installing paddle-operator itself and its module for scripts, editable"):
        editable: list[str | Path] = ["-e", ROOT, "-e", ROOT / "module"]
        # By its path alone: setuptools would else have every Python here load a finder when it starts.
        plain = "--config-settings=editable_mode=compat"
        run([*pip_install(), "--quiet", "--no-deps", "--no-build-isolation", plain, *editable], environment)


def pip_install() -> list[str | Path]:
    return [VENV_PYTHON, "-m", "pip", "install", "--disable-pip-version-check"]


def run_pip_with_counter(command: list[str | Path], pins: int) -> None:
    """Turn pip's hundreds of lines into a counter; show them all only when pip fails."""
    counter = Counter(pins)
    transcript = []
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            transcript.append(line)
            if line.startswith(("Collecting ", "Requirement already satisfied: ", "Ignoring ")):
                counter.advance()
            elif line.startswith("Installing collected packages"):
                counter.show("unpacking", now=True)
    counter.close()
    if process.returncode != 0:
        sys.stdout.writelines(transcript)
        raise SetupError(f"pip could not install {LOCK.name}; its output is above")


class Counter:
    """Rewrites one line on a terminal; elsewhere writes a line now and then."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self.rewrites = sys.stdout.isatty()
        self.shown_at = time.monotonic()

    def advance(self) -> None:
        self.done += 1
        self.show(f"{self.done}/{self.total}")

    def show(self, text: str, *, now: bool = False) -> None:
        if self.rewrites:
            print(f"\r  {text:<20}", end="", flush=True)
        elif now or time.monotonic() - self.shown_at >= SECONDS_BETWEEN_LINES:
            print(f"  {text}", flush=True)
            self.shown_at = time.monotonic()

    def close(self) -> None:
        if self.rewrites:
            print(f"\r{'':<22}\r", end="", flush=True)


@contextmanager
def timed(what: str) -> Iterator[None]:
    print(f"{what} ...", flush=True)
    started = time.monotonic()
    yield
    print(f"  done in {time.monotonic() - started:.1f} s", flush=True)


def run(command: list[str | Path], environment: dict[str, str] | None = None) -> None:
    returncode = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    if returncode != 0:
        words = " ".join(map(str, command))
        raise SetupError(f"`{words}` failed with exit code {returncode}")


if __name__ == "__main__":
    sys.exit(main())
