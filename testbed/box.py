"""The namespaces of a real node: its network, mounts and processes are its own, and go with one kill.

    host                                   box
    198.18.0.1  pdtb0 ─────────── eth0     198.18.0.2   kubelet, kube-proxy, CoreDNS, containerd
    kube-apiserver                cni0     198.18.1.1   pods are 198.18.1.2 and up

There is no default route and no masquerade: nothing in it can reach beyond this machine. Only one box can
exist at a time, because there can be only one link of that name.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from testbed import processes
from testbed.components import ADVERTISE_ADDRESS
from testbed.errors import ControlPlaneError

COMPONENT = "box"
LINK = "pdtb0"
NODE_ADDRESS = "198.18.0.2"
NODE_RANGE = "198.18.0.0/24"
POD_RANGE = "198.18.1.0/24"
BRIDGE = "cni0"
# Pinned: it would follow that of a pod, and running pods would lose the bridge for many seconds.
BRIDGE_MAC = "02:00:c6:12:01:01"
INIT = Path(__file__).with_name("box_init.py")
CGROUPS = Path("/sys/fs/cgroup")
START_TIMEOUT_SECONDS = 10.0
# Program -> Debian package.
PROGRAMS = {
    "containerd": "containerd",
    "runc": "runc",
    "nft": "nftables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    # For the images.
    "buildah": "buildah",
    "debootstrap": "debootstrap",
    "busybox": "busybox-static",
}


def require_means() -> None:
    """Root and Debian's programs, or an error that says what is missing."""
    if os.geteuid() != 0:
        raise ControlPlaneError("a real node needs root", remedy="run it with sudo, or without --node")
    if (CGROUPS / "cgroup.controllers").exists():
        raise ControlPlaneError(
            "a real node needs control groups of version 1, as Debian 12 has with the kernel parameter "
            "systemd.unified_cgroup_hierarchy=0; version 2 was never tried",
            remedy="boot with that parameter, or run it without --node",
        )
    if missing := _missing_packages():
        raise ControlPlaneError(
            f"a real node needs {', '.join(missing)}",
            remedy="python -m testbed packages (installs them with apt-get)",
        )


def install_means() -> None:
    """What `require_means` misses, by apt-get."""
    missing = _missing_packages()
    if missing and (os.geteuid() != 0 or _find("apt-get") is None):
        raise ControlPlaneError(
            f"a real node needs the programs of {', '.join(missing)}", remedy="install them as root"
        )
    environment = os.environ | {"PATH": processes.PATH, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["install", "-qq", "--no-remove", "--no-install-recommends", *missing]
    for words in (["update", "-qq"], install) if missing else ():
        if subprocess.run(["apt-get", *words], check=False, env=environment).returncode != 0:
            raise ControlPlaneError(f"`apt-get {' '.join(words)}` failed", remedy="see its message above")
    require_means()


def _missing_packages() -> list[str]:
    return sorted({package for program, package in PROGRAMS.items() if not _find(program)})


class Box:
    """All state is in the kernel: an object with the same folder, in any process, speaks of the same box."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._cgroup = cgroup_of(folder)
        self._has_link = folder / "node" / "has-link"

    def start(self, log: Path) -> None:
        unshare = _find("unshare")
        assert unshare is not None, "see require_means"
        ready = self._folder / "box-is-ready"
        command = [
            unshare, "--net", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private",
            sys.executable, "-I", "-S", str(INIT), str(self._folder), str(ready),
        ]  # fmt: skip
        processes.start(COMPONENT, command, self._folder, log)
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while not ready.exists():
            if time.monotonic() > deadline:
                raise ControlPlaneError(
                    "the namespaces of the node could not be made",
                    remedy=f"see {log}; is this root of a machine?",
                )
            time.sleep(0.01)
        # First the link, which is the lock of the machine: what another node has is not touched.
        self._make_link()
        self._make_cgroups()

    @property
    def first_process(self) -> int:
        """The pid, as the host sees it, of the process 1 in the box."""
        for process in processes.find(self._folder):
            if process.component == COMPONENT and _namespaced_pids(process.pid)[-1:] == ["1"]:
                return process.pid
        raise ControlPlaneError("the real node is not up", remedy="python -m testbed up --node")

    @property
    def root(self) -> Path:
        """The file system as the node sees it."""
        return Path(f"/proc/{self.first_process}/root")

    def inside(self, *command: str | Path) -> list[str]:
        """The command line that runs a command in there."""
        enter = ["nsenter", "--target", str(self.first_process), "--net", "--mount", "--pid", "--"]
        return [str(_find(enter[0])), *enter[1:], *map(str, command)]

    def remove_traces(self) -> list[str]:
        """What may outlive a kill: control groups; and the link, for a moment.

        Never the link of somebody else: it goes with its network namespace, by itself.
        """
        # Resolved, because cpu and cpuacct are often two names of one hierarchy.
        found = sorted({group.resolve() for group in CGROUPS.glob(f"*/{self._cgroup}")})
        for group in found:
            _remove_cgroup(group)
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while self._has_link.exists() and Path("/sys/class/net", LINK).exists():
            if time.monotonic() > deadline:
                raise ControlPlaneError(
                    f"the link {LINK} is still there", remedy=f"look into it, or `ip link delete {LINK}`"
                )
            time.sleep(0.01)
        return [f"control groups {self._cgroup}"] if found else []

    def _make_cgroups(self) -> None:
        for controller in CGROUPS.iterdir():
            if (controller / "cgroup.procs").exists():
                (controller / self._cgroup).mkdir(exist_ok=True)
        # A new set of CPUs is empty until somebody fills it.
        for name in ("cpuset.cpus", "cpuset.mems"):
            with suppress(FileNotFoundError):
                (CGROUPS / "cpuset" / self._cgroup / name).write_text((CGROUPS / "cpuset" / name).read_text())

    def _make_link(self) -> None:
        node = str(self.first_process)
        try:
            _run("ip", "link", "add", LINK, "type", "veth", "peer", "name", "eth0", "netns", node)
        except subprocess.CalledProcessError as error:
            if not Path("/sys/class/net", LINK).exists():
                raise ControlPlaneError(
                    f"the link {LINK} cannot be made: {error.stderr.decode().strip()}",
                    remedy="see the message",
                ) from None
            holder = Path("/sys/class/net", LINK, "ifalias").read_text().strip() or "an unknown testbed"
            raise ControlPlaneError(
                f"this machine has a real node already: {holder}",
                remedy=f"python -m testbed down --name {Path(holder).name}",
            ) from None
        self._has_link.touch()
        _run("ip", "link", "set", LINK, "alias", str(self._folder))
        _run("ip", "address", "add", f"{ADVERTISE_ADDRESS}/24", "dev", LINK)
        _run("ip", "link", "set", LINK, "up")
        # Pods ask the API server, and its answers have to find them. It goes with the link.
        _run("ip", "route", "add", POD_RANGE, "via", NODE_ADDRESS, "dev", LINK)
        _run(*self.inside("ip", "address", "add", f"{NODE_ADDRESS}/24", "dev", "eth0"))
        _run(*self.inside("ip", "link", "set", "eth0", "up"))
        _run(*self.inside("ip", "link", "add", BRIDGE, "address", BRIDGE_MAC, "type", "bridge"))


def cgroup_of(folder: Path) -> str:
    """Unlike that of a namesake of another user, or with another XDG_RUNTIME_DIR."""
    return f"paddle-operator-testbed-{hashlib.sha256(str(folder).encode()).hexdigest()[:12]}"


def _find(program: str) -> str | None:
    return shutil.which(program, path=processes.PATH)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, env={"PATH": processes.PATH})


def _namespaced_pids(pid: int) -> Sequence[str]:
    """Its pid in each namespace that it is in, from the outermost."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return ()
    return next(line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:"))


def _remove_cgroup(group: Path) -> None:
    """From the leaves; a group that was just left by its last process may be busy for a moment."""
    with suppress(FileNotFoundError):
        for child in [one for one in group.iterdir() if one.is_dir()]:
            _remove_cgroup(child)
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while True:
        try:
            group.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return
