"""One way as plain processes, with the variables that an operator would set; without Kubernetes.

Each process stands for a pod, and has an address of its own on loopback, unless pods share a node.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import laptop
import make
import plain_processes

from paddle_operator.api.names import HOST_PORTS, PORTS_PER_POD
from paddle_operator.api.paddlejob import Role
from paddle_operator.paddlejob.endpoints import Endpoint, Slot, port_of
from paddle_operator.paddlejob.environment import pod_variables, shared_variables

from .ways import PODS, SCRIPTS, Process, Way, read_results

SECONDS = 45.0
"""Whoever trains is done in 5; on a busy machine in 20. Then it is said to hang."""
# A pod's own view: its peers' names lead to their addresses, and the host is called like the pod.
_AS_A_POD = 'mount --bind "$HOSTS" /etc/hosts && hostname "$NAME" && exec sh -c "$0"'
_ISOLATED = ("unshare", "--map-root-user", "--mount", "--uts", "sh", "-c", _AS_A_POD)
_HOSTFILE = "hostfile"

Environments = list[dict[str, str]]


class Played(NamedTuple):
    processes: list[Process]
    codes: list[int | None]
    """None: it hangs."""
    seconds: float
    text: str


def go_operator(intranet: str, folder: Path) -> Environments:
    """As v0.3.5 of the original operator has it: one port for all, and in Service mode bare names."""
    addresses, (port,) = _addresses(shared=intranet == "Host"), plain_processes.free_ports(1)
    names = [f"launchers-worker-{rank}" for rank in range(PODS)]
    hosts = names if intranet == "Service" else addresses
    shared = {
        "TRAINER_PORTS_NUM": "20",
        "PADDLE_PORT": str(port),
        "PADDLE_TRAINER_ENDPOINTS": ",".join(f"{host}:{port}" for host in hosts),
        "PADDLE_TRAINERS": ",".join(hosts),
        "PADDLE_TRAINERS_NUM": str(PODS),
    }
    if intranet == "Service":
        shared["HOSTS"] = str(_hosts_file(folder, names, addresses))
    return [
        shared
        | {"POD_IP": host, "PADDLE_TRAINER_ID": str(rank), "NAME": name}
        | dict.fromkeys(("TRAINING_ROLE", "PADDLE_TRAINING_ROLE"), "TRAINER")
        for rank, (host, name) in enumerate(zip(hosts, names, strict=True))
    ]


def on_two_nodes(_intranet: str, folder: Path) -> Environments:
    """Ours on the host network, where each pod has a node of its own: no machine of the tests has two."""
    job = make.paddlejob(workers=PODS, intranet="Host", status={"hostPort": _free_block()})
    slots = [Slot(Role.WORKER, rank) for rank in range(PODS)]
    addresses = _addresses()
    endpoints = [Endpoint(host, port_of(job, slot)) for host, slot in zip(addresses, slots, strict=True)]
    told = shared_variables(job, {Role.WORKER: endpoints})
    (folder / _HOSTFILE).write_text("".join(f"{address}\n" for address in addresses))
    return [
        told
        | {
            one["name"]: one.get("value", "$(POD_IP)").replace("$(POD_IP)", address)
            for one in pod_variables(job, slot, {})
        }
        for slot, address in zip(slots, addresses, strict=True)
    ]


def play(
    way: Way,
    intranet: str,
    folder: Path,
    environments: Callable[[str, Path], Environments],
    *,
    python: str | Path = sys.executable,
    seconds: float = SECONDS,
) -> Played:
    results = folder / "results"
    results.mkdir()
    common = {
        "SCRIPTS": str(SCRIPTS),
        "RESULTS": str(results),
        "PYTHON": str(python),
        # Not there under the original operator, which writes none.
        "HOSTFILE": str(folder / _HOSTFILE),
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
    }
    told = [common | one for one in environments(intranet, folder)]
    logs = [folder / f"pod-{rank}" / "log.txt" for rank in range(len(told))]
    for log in logs:
        log.parent.mkdir()
    command = [*(_ISOLATED if "HOSTS" in told[0] else ("sh", "-c")), way.command]
    begun = time.monotonic()
    try:
        with plain_processes.started(command, told, logs) as processes:
            codes = _wait(processes, begun + seconds)
    finally:
        _end(str(results))
    text = "".join(f"\n{log}:\n{log.read_text(errors='replace')[-3000:]}" for log in logs)
    return Played(read_results(results), codes, time.monotonic() - begun, text)


def _wait(processes: "Sequence[subprocess.Popen[bytes]]", deadline: float) -> list[int | None]:
    for process in processes:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, deadline - time.monotonic()))
    return [process.poll() for process in processes]


def _end(marker: str) -> None:
    """The launcher's own, which are in sessions of their own, and whoever else has our variables."""
    for pid in laptop.processes(marker):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _addresses(*, shared: bool = False) -> list[str]:
    # `paddle-operator run` takes 127.0 to 127.200; several of these may run side by side, too.
    network = f"127.{random.randrange(201, 255)}.{random.randrange(255)}"
    return [f"{network}.{1 if shared else rank + 1}" for rank in range(PODS)]


def _free_block() -> int:
    """Ports for all pods, as a job on the host network has them."""
    last = HOST_PORTS[-1] - PODS * PORTS_PER_POD
    return random.choice([port for port in HOST_PORTS if port < last])


def _hosts_file(folder: Path, names: Sequence[str], addresses: Sequence[str]) -> Path:
    lines = ["127.0.0.1 localhost", *(f"{one} {name}" for one, name in zip(addresses, names, strict=True))]
    file = folder / "hosts"
    file.write_text("\n".join([*lines, ""]))
    return file
