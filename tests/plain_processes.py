"""A training with parameter servers as plain processes, without any operator: what a job is held against.

Each process has an address of its own on loopback, and the variables that Paddle's documentation asks for.
"""

import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

WIDE_AND_DEEP = Path(__file__).parents[1] / "examples" / "04-wide-and-deep" / "train.py"
DONE = re.compile(r"^done step=(\d+) loss=(\S+) \(first epoch: (\S+)\)$", re.MULTILINE)


@dataclass(frozen=True)
class Ended:
    code: int
    """As subprocess has it: a signal is negative."""
    log: str

    @property
    def losses(self) -> tuple[float, float]:
        """The mean of the first epoch, and that of the last."""
        match = DONE.search(self.log)
        assert match, self.log
        return float(match[3]), float(match[2])


@dataclass(frozen=True)
class Training:
    servers: list[Ended]
    workers: list[Ended]


def train(
    folder: Path,
    *,
    script: Path = WIDE_AND_DEEP,
    servers: int = 2,
    workers: int = 2,
    python: str | Path = sys.executable,
    seconds: float = 120.0,
) -> Training:
    """Ends the servers when all workers have ended, which is what Paddle leaves to others."""
    environments = _environments(servers, workers)
    logs = [folder / f"{environment['POD_IP']}.log" for environment in environments]
    with started([str(python), str(script)], environments, logs) as processes:
        deadline = time.monotonic() + seconds
        for worker in processes[servers:]:
            worker.wait(max(0.0, deadline - time.monotonic()))
        for server in processes[:servers]:
            server.terminate()
            server.wait(10)
    ended = [Ended(process.returncode, log.read_text()) for process, log in zip(processes, logs, strict=True)]
    return Training(ended[:servers], ended[servers:])


def _environments(servers: int, workers: int) -> list[dict[str, str]]:
    """Servers first."""
    # `paddle-operator run` takes 127.0 to 127.200; two of these may run side by side, too.
    network = f"127.{random.randrange(201, 255)}.{random.randrange(255)}"
    addresses = [f"{network}.{number}" for number in range(1, servers + workers + 1)]
    port, gloo_port = free_ports(2)
    shared = {
        "FLAGS_enable_pir_api": "0",
        "OMP_NUM_THREADS": "1",
        "PADDLE_PORT": str(port),
        "PADDLE_TRAINERS_NUM": str(workers),
        "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(f"{address}:{port}" for address in addresses[:servers]),
        "PADDLE_WITH_GLOO": "1",
        "PADDLE_GLOO_RENDEZVOUS": "3",
        "PADDLE_GLOO_HTTP_ENDPOINT": f"{addresses[0]}:{gloo_port}",
    }
    roles = [("PSERVER", index) for index in range(servers)] + [
        ("TRAINER", index) for index in range(workers)
    ]
    return [
        shared | {"POD_IP": address, "TRAINING_ROLE": role, "PADDLE_TRAINER_ID": str(index)}
        for address, (role, index) in zip(addresses, roles, strict=True)
    ]


def free_ports(count: int) -> list[int]:
    """On all addresses: gloo's rendezvous listens on all."""
    holders = [socket.create_server(("", 0)) for _ in range(count)]
    ports = [holder.getsockname()[1] for holder in holders]
    for holder in holders:
        holder.close()
    return ports


@contextmanager
def started(
    command: Sequence[str], environments: Sequence[dict[str, str]], logs: Sequence[Path]
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Each in the folder of its log. None is left running, whatever happens: each is a group, as server 0 has
    a child for the rendezvous.
    """
    processes = []
    try:
        for environment, log in zip(environments, logs, strict=True):
            with log.open("wb") as output:
                processes.append(
                    subprocess.Popen(
                        command,
                        env=os.environ | environment,
                        stdout=output,
                        stderr=output,
                        cwd=log.parent,
                        start_new_session=True,
                    )
                )
        yield processes
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
