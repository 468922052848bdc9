"""A namespace of a cluster with a real node, seen as users see it: through kubectl."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import make
import yaml
from world import NO_ADDRESSES, OPERATOR, PATIENCE_SECONDS, World

from paddle_operator.api.core import Pod
from paddle_operator.api.meta import Manifest

ACCELERATOR = "accelerator=nvidia-tesla-p100"
"""The label that the seeds' examples select."""
TINY = "paddle-operator/tiny:1"
# The manager as it is, but with less patience: ten restarts alone would be 13 minutes of pauses.
HASTY_MANAGER = """
from datetime import timedelta
from paddle_operator.cli import main
from paddle_operator.paddlejob import restarts, waiting

restarts.LONGEST_BACKOFF_SECONDS = 1
waiting.SLOW_AFTER = timedelta(seconds=5)
main()
"""
NFS = Path(__file__).parents[1] / "testbed" / "nfs.yaml"


def pod(name: str, script: str, **spec: Any) -> Manifest:
    container = {"name": "main", "image": TINY, "command": ["sh", "-c", script], **spec.pop("container", {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"restartPolicy": "Never", "containers": [container], **spec},
    }


def tiny_job(
    name: str,
    script: str,
    *,
    workers: int = 2,
    container: Manifest | None = None,
    pod: Manifest | None = None,
    **spec: Any,
) -> Manifest:
    """Workers that run a script of the shell; with more fields of container, pod and job."""
    made = make.container(image=TINY, command=["sh", "-c", script]) | (container or {})
    template = make.template(made, restartPolicy="Never", terminationGracePeriodSeconds=1, **(pod or {}))
    return make.manifest(name, workers, pod=template, **spec)


def service(name: str, app: str, **spec: Any) -> Manifest:
    ports = [{"port": 80, "targetPort": 8080}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": app}, "ports": ports, **spec},
    }


def nfs(folder: Path) -> list[Manifest]:
    """The volume `nfs-pv` and the claim `nfs-pvc` of the seeds; the volume is this folder of the node.

    Volumes have no namespace: a test that makes this one has to delete it.
    """
    volume, claim = yaml.safe_load_all(NFS.read_text())
    volume["spec"]["hostPath"]["path"] = str(folder)
    return [volume, claim]


@dataclass(frozen=True)
class Cluster:
    """A namespace of a whole cluster, seen as users see it: through kubectl."""

    world: World

    @property
    def _kubectl(self) -> list[str]:
        plane, namespace = self.world.plane, self.world.namespace
        return [str(plane.kubectl), f"--kubeconfig={plane.kubeconfig}", f"--namespace={namespace}"]

    def kubectl(self, *words: str, stdin: str = "") -> str:
        done = subprocess.run(
            [*self._kubectl, *words], input=stdin, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done
        return done.stdout

    def apply(self, *documents: dict[str, Any]) -> None:
        self.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(documents))

    @property
    def folder(self) -> Path:
        """Of this namespace alone, for volumes: on this machine and on the node, and gone with the node."""
        return self.world.plane.folder / "node" / "volumes" / self.world.namespace

    @contextmanager
    def followed(self, pods: Sequence[str], folder: Path) -> Iterator[list[Path]]:
        """Files with all that the pods print. Whole when the block is left, which waits for them to end."""
        logs = [folder / f"{pod}.log" for pod in pods]
        followers = []
        for pod, log in zip(pods, logs, strict=True):
            with log.open("wb") as output:
                followers.append(subprocess.Popen([*self._kubectl, "logs", "--follow", pod], stdout=output))
        try:
            yield logs
            for follower in followers:
                assert follower.wait(30) == 0
        finally:
            for follower in followers:
                follower.kill()
                follower.wait()

    def logs(self, pod: str) -> str:
        return self.kubectl("logs", pod)

    async def said(self, pod: str, what: str | Callable[[str], bool]) -> str:
        """The first line of a running pod's log that has these words, or is as wanted; once it is printed."""
        holds = what if callable(what) else lambda line: what in line
        lines = []
        try:
            async with asyncio.timeout(PATIENCE_SECONDS), aclosing(self._lines_of(pod)) as printed:
                async for line in printed:
                    lines.append(line)
                    if holds(line):
                        return line
        except TimeoutError:
            pass
        raise AssertionError(f"{pod} did not say {what!r}, but {''.join(lines)}")

    async def _lines_of(self, pod: str) -> AsyncGenerator[str, None]:
        follower = await asyncio.create_subprocess_exec(
            *self._kubectl, "logs", "--follow", pod, stdout=asyncio.subprocess.PIPE
        )
        assert follower.stdout is not None
        try:
            async for line in follower.stdout:
                yield line.decode(errors="replace")
        finally:
            with suppress(ProcessLookupError):
                follower.kill()
            await follower.wait()

    def start_hasty_manager(self) -> "subprocess.Popen[bytes]":
        """As `World.start_manager`, with less patience."""
        world = self.world
        log = world.plane.audit_log.with_name(f"manager-{world.namespace}-{len(world.managers)}.log")
        options = [f"--kubeconfig={world.plane.kubeconfig_for(OPERATOR)}", f"--namespace={world.namespace}"]
        options += NO_ADDRESSES
        with log.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-c", HASTY_MANAGER, "manager", *options, "--log-format=json"], stderr=file
            )
        world.managers.append(process)
        world.logs.append(log)
        return process


def processes_of(pod: Pod) -> dict[int, str]:
    """What runs in the containers of a pod: command lines by pid, both as this machine sees them."""
    found = {}
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with suppress(OSError):
                if f"/pod{pod.metadata.uid}/" in (process / "cgroup").read_text():
                    words = (process / "cmdline").read_bytes().split(b"\0")
                    found[int(process.name)] = b" ".join(words).decode(errors="replace").strip()
    return found


def kill(pod: Pod, command: str, number: int = signal.SIGKILL) -> None:
    """The process of the pod with this command line: the first, as what it forks has it too for a moment."""
    os.kill(min(pid for pid, words in processes_of(pod).items() if words == command), number)
