"""Process 1 of a node's box: makes mounts of its own, then buries the dead for ever.

Started by `unshare` in new namespaces; everything in them ends with it. Stands alone: no site-packages.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

# The programs of a node write here whatever they are told. Empty in the box, so nothing is left on the host.
OWN_FOLDERS = ("/run", "/var/lib", "/var/log")
# The kubelet sets these, and no namespace keeps them from the host. What it reads here is what it wants.
SETTINGS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}


def main(folder: str, ready: str) -> None:
    instance = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    mount("-t", "proc", "proc", "/proc")
    for place in OWN_FOLDERS:
        mount("-t", "tmpfs", "tmpfs", place)
    if not Path(folder).exists():  # it lies in one of those
        Path(folder).mkdir(parents=True)
        mount("--bind", f"/proc/1/fd/{instance}", folder)
    for name, value in SETTINGS.items():
        decoy = Path("/run", name.replace("/", "-"))
        decoy.write_text(f"{value}\n")
        mount("--bind", str(decoy), f"/proc/sys/{name}")
    # Of this network namespace alone.
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    # `kubectl exec` and pods with shared mounts want the root to be shared among those in here.
    mount("--make-rshared", "/")
    # Blocked, it waits for us instead of coming between two lines.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    Path(ready).touch()
    while True:
        bury_the_dead()
        signal.sigwait([signal.SIGCHLD])


def mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


def bury_the_dead() -> None:
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
