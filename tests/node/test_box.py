"""A real node leaves nothing behind, whenever it ends. Runs before the node of the other tests is made."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from world import unique_name

from testbed.box import LINK
from testbed.controlplane import ControlPlane

pytestmark = [pytest.mark.node, pytest.mark.usefixtures("means")]

TOP = Path(__file__).parents[2]


def traces() -> dict[str, set[str]]:
    """What a node makes on a machine, kernel threads aside."""
    return {
        "processes": {f"{pid} {words}" for pid, words in _processes().items()},
        "mounts": set(Path("/proc/self/mountinfo").read_text().splitlines()),
        "links": {link.name for link in Path("/sys/class/net").iterdir()},
        "nft": set(_output("nft", "list", "ruleset").splitlines()),
        "cgroups": {str(path) for path in Path("/sys/fs/cgroup").glob("*/*") if path.is_dir()},
        "files": {str(path) for path in Path("/tmp").glob("paddle-operator-testbed-*/*")},
        "forwarding": {Path("/proc/sys/net/ipv4/ip_forward").read_text()},
    }


def _processes() -> dict[str, str]:
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if any(
                name in words for name in ("kube", "containerd", "coredns", "etcd", "box_init", "unshare")
            ):
                found[folder.name] = words
    return found


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def up(name: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "testbed", "up", "--node", "--name", name],
        cwd=TOP,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def test_down_leaves_nothing() -> None:
    name, before = unique_name("box"), traces()
    assert up(name).wait(120) == 0
    assert traces() != before
    ControlPlane(name).down()
    assert traces() == before


def test_nor_does_a_down_after_a_kill_of_up_at_any_moment() -> None:
    name, before = unique_name("box"), traces()
    seed = int(os.environ.get("SEED", str(time.time_ns() % 10**6)))
    print(f"SEED={seed}")
    chance = random.Random(seed)
    for _ in range(6):
        process = up(name)
        time.sleep(chance.uniform(0.3, 5.0))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        ControlPlane(name).down()
        assert traces() == before


def test_a_machine_has_one_real_node_at_a_time() -> None:
    first, second = unique_name("box"), unique_name("other")
    assert up(first).wait(120) == 0
    try:
        refused = subprocess.run(
            [sys.executable, "-m", "testbed", "up", "--node", "--name", second],
            cwd=TOP,
            capture_output=True,
            text=True,
            check=False,
        )
        assert refused.returncode == 1
        assert "this machine has a real node" in refused.stderr
        assert not any(component.pid for component in ControlPlane(second).status())
        ControlPlane(second).down()
        assert all(component.healthy for component in ControlPlane(first).status()), "unharmed"
        assert Path("/sys/class/net", LINK).exists()
    finally:
        ControlPlane(second).down()
        ControlPlane(first).down()
