"""Process 1 of a node's box: makes its own /proc and /run, then buries the dead for ever.

Started by `unshare` in new namespaces; everything in them ends with it. Stands alone: no site-packages.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path


def main(ready: str) -> None:
    for kind, target in (("proc", "/proc"), ("tmpfs", "/run")):
        subprocess.run(["mount", "-t", kind, kind, target], check=True)
    # Of this network namespace alone.
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    # `kubectl exec` and pods with shared mounts want the root to be shared among those in here.
    subprocess.run(["mount", "--make-rshared", "/"], check=True)
    # Blocked, it waits for us instead of coming between two lines.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    Path(ready).touch()
    while True:
        bury_the_dead()
        signal.sigwait([signal.SIGCHLD])


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
