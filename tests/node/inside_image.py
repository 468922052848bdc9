"""Runs inside the operator's image, as `python3 -IBS -c TEXT QUESTION`, and prints its answer as JSON."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import cache_from_source, find_spec, source_hash
from pathlib import Path

TOP = Path("/opt/paddle-operator")
STANDARD_LIBRARY = Path(os.__file__).parent
PYTHON = ("/usr/bin/python3", "-IBS")
IMPORTS = f"import sys; sys.path.append('{TOP}'); import paddle_operator.cli, paddle_operator.manager"
COMMANDS = {
    "python alone": (*PYTHON, "-c", ""),
    "all imports": (*PYTHON, "-c", IMPORTS),
    "without byte code": (*PYTHON, "-X", "pycache_prefix=/nowhere", "-c", IMPORTS),
    "manager --version": ("/manager", "--version"),
}


def rights() -> object:
    """Who we are, and the folders of the image that we can write to."""
    return {
        "ids": [os.getuid(), os.getgid(), os.getgroups()],
        "writable": [str(folder) for folder, _ in walk() if is_writable(folder)],
    }


def walk() -> Iterator[tuple[Path, list[Path]]]:
    """Each folder and its files, but not what is mounted into the image."""
    device = Path("/").stat().st_dev
    for name, folders, files in os.walk("/"):
        folder = Path(name)
        folders[:] = [one for one in folders if (folder / one).lstat().st_dev == device]
        yield folder, [folder / one for one in files]


def is_writable(folder: Path) -> bool:
    try:
        (folder / "new").touch(exist_ok=False)
    except OSError:
        return False
    (folder / "new").unlink()
    return True


def programs() -> object:
    places = map(Path, os.get_exec_path())
    return {
        "programs": sorted({one.name for place in places if place.is_dir() for one in place.iterdir()}),
        "installers": [name for name in ("ensurepip", "pip", "setuptools", "uv") if find_spec(name)],
    }


def byte_code() -> object:
    """All sources, by how good their byte code is."""
    found: dict[str, list[str]] = {}
    for source in (*TOP.rglob("*.py"), *STANDARD_LIBRARY.rglob("*.py")):
        found.setdefault(state_of_byte_code(source), []).append(str(source))
    return found


def state_of_byte_code(source: Path) -> str:
    """After PEP 552: flags tell how Python decides whether the code is of this source; then comes by what."""
    try:
        header = Path(cache_from_source(str(source))).read_bytes()[:16]
    except FileNotFoundError:
        return "missing"
    flags = int.from_bytes(header[4:8], "little")
    text, seconds = source.read_bytes(), int(source.stat().st_mtime)
    by_time = seconds.to_bytes(4, "little") + len(text).to_bytes(4, "little")
    if header[8:] != (source_hash(text) if flags else by_time):
        return "stale"
    return {0b00: "checked by time", 0b01: "unchecked", 0b11: "checked by content"}[flags]


def measures() -> object:
    sizes = {file.lstat().st_ino: file.lstat().st_size for _, files in walk() for file in files}
    times = {title: [seconds(command) for _ in range(5)] for title, command in COMMANDS.items()}
    return {"bytes": sum(sizes.values()), "seconds": times}


def seconds(command: tuple[str, ...]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.path.append(str(TOP))
    questions = {one.__name__: one for one in (rights, programs, byte_code, measures)}
    print(json.dumps(questions[sys.argv[1]]()))
