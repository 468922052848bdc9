"""A namespace of a cluster with a real node, seen as users see it: through kubectl."""

import subprocess
from dataclasses import dataclass
from typing import Any

import yaml
from world import World

from paddle_operator.api.meta import Manifest

ACCELERATOR = "accelerator=nvidia-tesla-p100"
"""The label that the seeds' examples select."""
TINY = "paddle-operator/tiny:1"


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


@dataclass(frozen=True)
class Cluster:
    """A namespace of a whole cluster, seen as users see it: through kubectl."""

    world: World

    def kubectl(self, *words: str, stdin: str = "") -> str:
        plane = self.world.plane
        command = [
            str(plane.kubectl),
            f"--kubeconfig={plane.kubeconfig}",
            f"--namespace={self.world.namespace}",
        ]
        done = subprocess.run(
            [*command, *words], input=stdin, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done
        return done.stdout

    def apply(self, *documents: dict[str, Any]) -> None:
        self.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(documents))

    def logs(self, pod: str) -> str:
        return self.kubectl("logs", pod)
