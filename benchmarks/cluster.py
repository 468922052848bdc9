"""What benchmarks on a real API server share: the kind, a manager of ours, tiny jobs."""

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from paddle_operator.api.crd import paddle_job_crd
from paddle_operator.api.resources import PADDLE_JOBS
from paddle_operator.cluster import NotFound, Throttled
from paddle_operator.kube.client import path
from paddle_operator.kube.transport import Transport
from testbed.controlplane import ControlPlane
from testbed.node_services import PAUSE_IMAGE

MANAGER = "import sys; from paddle_operator.cli import main; sys.argv[0] = 'paddle-operator'; main()"
SERVES_NOTHING = ("--metrics-bind-address=0", "--health-probe-bind-address=0")
# As restricted namespaces want it.
CONFINED_POD = {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}}
CONFINED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def tiny_job(
    name: str, namespace: str, command: Sequence[str], workers: int, intranet: str
) -> dict[str, Any]:
    container = {
        "name": "paddle",
        "image": PAUSE_IMAGE,
        "command": list(command),
        "securityContext": CONFINED,
    }
    pod = {
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "securityContext": CONFINED_POD,
        "containers": [container],
    }
    return {
        "apiVersion": PADDLE_JOBS.api_version,
        "kind": PADDLE_JOBS.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"intranet": intranet, "worker": {"replicas": workers, "template": {"spec": pod}}},
    }


async def install_kind(transport: Transport) -> None:
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await transport.request("POST", crds, body=msgspec.json.encode(paddle_job_crd()))
    while True:
        try:
            await transport.request("GET", path(PADDLE_JOBS, "default"))
        except (NotFound, Throttled):
            await asyncio.sleep(0.1)
        else:
            return


def manager_command(plane: ControlPlane, *words: str, user: str = "admin", patch: str = "") -> list[str]:
    """A manager of this checkout; `patch` is Python that is run before it."""
    connection = f"--kubeconfig={plane.kubeconfig_for(user)}"
    return [sys.executable, "-c", patch + MANAGER, "manager", connection, "--log-level=error", *words]


def kubectl(plane: ControlPlane, *words: str) -> str:
    command = [str(plane.kubectl), f"--kubeconfig={plane.kubeconfig}", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"kubectl {' '.join(words)}: {done.stderr}")
    return done.stdout


def verdict(figure: float, bar: float) -> str:
    return "met" if figure <= bar else "MISSED"
