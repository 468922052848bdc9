"""Namespaces for a user who is not root: the keeper makes a user namespace first."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from paddle_operator.local.process import KEEPER, Mount, Order

PATH = "/usr/bin:/bin"
NEW = "/no-such-folder-xyz"
"""Not on this machine, and not made on it."""

NOBODY = 65534
SYSTEM_PYTHON = "/usr/bin/python3"


@pytest.fixture
def commons() -> Iterator[Path]:
    """A folder that everybody can read, with the keeper in it."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user; in test_keeper.py a user tests namespaces anyhow")
    version = "import sys; sys.exit(sys.version_info < (3, 11))"
    if (
        not Path(SYSTEM_PYTHON).exists()
        or subprocess.run([SYSTEM_PYTHON, "-c", version], check=False).returncode
    ):
        pytest.skip(f"needs {SYSTEM_PYTHON} of 3.11 or newer, which other users can run")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(KEEPER, folder / "keeper.py")
        (folder / "scratch").mkdir()
        (folder / "source").mkdir()
        (folder / "source" / "given").write_text("from outside")
        for path in (folder, *folder.iterdir(), folder / "source" / "given"):
            os.chown(path, NOBODY, NOBODY)
            path.chmod(0o755)
        yield folder


def as_nobody(commons: Path, order: Order) -> tuple[list[dict[str, Any]], str]:
    """The keeper's answers, and the container's log."""
    log = commons / "log"
    with log.open("wb") as output, subprocess.Popen(
        [SYSTEM_PYTHON, "-I", "-S", str(commons / "keeper.py")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=output,
        user=NOBODY, group=NOBODY, extra_groups=[], cwd="/",
    ) as keeper:  # fmt: skip
        assert keeper.stdin is not None
        assert keeper.stdout is not None
        keeper.stdin.write(json.dumps(asdict(order)).encode() + b"\n")
        keeper.stdin.flush()
        answers = [json.loads(line) for line in keeper.stdout]
    if "user namespace" in answers[0].get("problem", ""):
        pytest.skip("this kernel gives no user namespaces to users")
    return answers, log.read_text()


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (f"id -u; cat {NEW}/deep/given; echo made > {NEW}/deep/new", f"{NOBODY}\nfrom outside"),
        ("uname -n; cat /etc/hosts", "a-worker-0\nfrom outside"),
        ("echo /proc/[0-9]*", "/proc/1 /proc/2\n"),
        (f"stat -f -c %T {NEW}/memory; : > {NEW}/memory/x", "tmpfs\n"),
        (f": > {NEW}/fixed/x && echo written; ls {NEW}/fixed 2>&1", "sh: 1: cannot create"),
        ("echo x > /etc/passwd", "sh: 1: cannot create /etc/passwd: Permission denied"),
    ],
)
def test_a_user_has_namespaces_too(commons: Path, script: str, said: str) -> None:
    source = str(commons / "source")
    mounts = (
        Mount(f"{NEW}/deep", source),
        Mount(f"{NEW}/fixed", source, read_only=True),
        Mount(f"{NEW}/memory", ""),
        Mount("/etc/hosts", f"{source}/given"),
    )
    order = Order(
        command=("sh", "-c", script),
        environment={"PATH": PATH},
        folder="/",
        isolated=True,
        host_name="a-worker-0",
        scratch=str(commons / "scratch"),
        mounts=mounts,
    )
    answers, log = as_nobody(commons, order)
    assert answers[0] == {"started": True}
    assert log.startswith(said)
    assert (commons / "source" / "new").exists() == ("deep/new" in script)
    assert not (commons / "source" / "x").exists()
    assert str(commons) not in Path("/proc/self/mountinfo").read_text()
    assert not Path(NEW).exists()
