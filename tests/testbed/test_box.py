"""A real node leaves nothing behind, whenever it ends. Runs before the node of the other tests is made."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from world import unique_name

from testbed.box import LINK, cgroup_of
from testbed.box_init import SETTINGS
from testbed.controlplane import ControlPlane
from testbed.instance import instance_folder
from testbed.node_services import PAUSE_IMAGE

pytestmark = [pytest.mark.node, pytest.mark.usefixtures("means")]

TOP = Path(__file__).parents[2]


def traces(name: str) -> dict[str, set[str]]:
    """What the node of a testbed makes on a machine; others may be at work on it too."""
    folder = str(instance_folder(name))
    return {
        "processes": {f"{pid} {words}" for pid, words in _processes(folder).items()},
        "mounts": {line for line in Path("/proc/self/mountinfo").read_text().splitlines() if folder in line},
        "links": {link.name for link in Path("/sys/class/net").iterdir()},
        "nft": set(_output("nft", "list", "ruleset").splitlines()),
        "settings": {f"{name} {Path('/proc/sys', name).read_text()}" for name in SETTINGS},
        "left by kubelets": {
            str(path)
            for folder in ("/var/lib/cni", "/var/lib/kubelet", "/var/log/containers", "/opt/containerd")
            for path in Path(folder).rglob("*")
        },
        "cgroups": {str(path) for path in Path("/sys/fs/cgroup").glob(f"*/{cgroup_of(Path(folder))}")},
        "files": {folder} if Path(folder).exists() else set(),
        "forwarding": {Path("/proc/sys/net/ipv4/ip_forward").read_text()},
    }


def _processes(folder: str) -> dict[str, str]:
    """Those that know the folder; what runs in containers does not, and ends with them."""
    found = {}
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with suppress(OSError):
                words = (process / "cmdline").read_bytes().replace(b"\0", b" ")
                if folder.encode() in words + (process / "environ").read_bytes():
                    found[process.name] = words.decode(errors="replace")
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


def with_a_pod(plane: ControlPlane) -> None:
    """Runs one, and leaves it there."""
    words = ["run", "hello", f"--image={PAUSE_IMAGE}", "--restart=Never", "--command", "--", "sleep", "600"]
    for command in (words, ["wait", "pod/hello", "--for=condition=Ready", "--timeout=60s"]):
        subprocess.run([plane.kubectl, f"--kubeconfig={plane.kubeconfig}", *command], check=True, timeout=90)


def test_down_leaves_nothing() -> None:
    name = unique_name("box")
    before = traces(name)
    assert up(name).wait(120) == 0
    assert traces(name) != before
    with_a_pod(ControlPlane(name))
    ControlPlane(name).down()
    assert traces(name) == before


def test_nor_does_a_down_after_a_kill_of_up_at_any_moment() -> None:
    name = unique_name("box")
    before = traces(name)
    seed = int(os.environ.get("SEED", str(time.time_ns() % 10**6)))
    print(f"SEED={seed}")
    chance = random.Random(seed)
    for _ in range(6):
        process = up(name)
        time.sleep(chance.uniform(0.3, 5.0))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        ControlPlane(name).down()
        assert traces(name) == before


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
        assert "this machine has a real node already" in refused.stderr
        assert f"testbed down --name {first}" in refused.stderr
        assert not any(component.pid for component in ControlPlane(second).status())
        ControlPlane(second).down()
        assert all(component.healthy for component in ControlPlane(first).status()), "unharmed"
        assert Path("/sys/class/net", LINK).exists()
    finally:
        ControlPlane(second).down()
        ControlPlane(first).down()
