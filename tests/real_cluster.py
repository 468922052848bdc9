"""A namespace of a cluster with a real node, seen as users see it: through kubectl."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from world import World

from paddle_operator.api.meta import Manifest

ACCELERATOR = "accelerator=nvidia-tesla-p100"
"""The label that the seeds' examples select."""
TINY = "paddle-operator/tiny:1"
NFS = Path(__file__).parents[1] / "testbed" / "nfs.yaml"


def pod(name: str, script: str, **spec: Any) -> Manifest:
    container = {"name": "main", "image": TINY, "command": ["sh", "-c", script], **spec.pop("container", {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"restartPolicy": "Never", "containers": [container], **spec},
    }


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
