"""Whom we measure: how each is started, what its jobs look like, and what it follows once it is ready."""

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.cluster import MANAGER, SERVES_NOTHING
from benchmarks.floor import NAME
from benchmarks.workloads import (
    FLOOR,
    GO,
    KUBEFLOW,
    OURS,
    POD_IP,
    SERVER,
    SERVICE,
    TUNED,
    Workload,
    kubeflow_job,
    paddle_job,
)
from paddle_operator.api.resources import PADDLE_JOBS
from testbed import binaries

KUBEFLOW_CRD = Path("manifests/base/crds/kubeflow.org_paddlejobs.yaml")
# The fake node plays no init containers. That of the Go operator keeps a pod back until all names resolve
# and for 2 s more; then the config map is there. Without it a pod would look for the map after 10 to 15 s.
BEHIND_AN_INIT_CONTAINER = (2.0, 3.0)
AS_A_KUBELET = (10.0, 15.0)
# Where no map will ever come, to look for it again would only be a load.
NEVER = (3600.0, 3600.0)


@dataclass(frozen=True)
class Place:
    """Where an operator is started: what it needs to know of the cluster, and a folder for its files."""

    kubeconfig: Path
    folder: Path
    namespace: str


@dataclass(frozen=True)
class Operator:
    key: str
    title: str
    command: Callable[[Place, Workload, str], list[str]]
    job: Callable[[Workload, str, str, str], dict[str, Any]] = paddle_job
    api_version: str = PADDLE_JOBS.api_version
    follows: tuple[str, ...] = ("paddlejobs", "pods", "services", "configmaps")
    """It is ready when it has begun to watch these."""
    modes: tuple[str, ...] = (POD_IP, SERVICE)
    retry_seconds: tuple[float, float] = AS_A_KUBELET
    only_creates: bool = False
    """It makes the pods of a job, and that is all."""
    needs: tuple[Callable[[], Path], ...] = ()
    """Programs and files of others, to be had before the first measurement: the first build takes minutes."""

    def jobs_path(self, namespace: str) -> str:
        return f"/apis/{self.api_version}/namespaces/{namespace}/paddlejobs"


def _floor(place: Place, workload: Workload, mode: str) -> list[str]:
    job = place.folder / "floor-job.json"
    job.write_bytes(msgspec.json.encode(paddle_job(workload, mode, place.namespace, NAME.decode())))
    module = [sys.executable, "-m", "benchmarks.floor"]
    return [*module, f"--kubeconfig={place.kubeconfig}", f"--job={job}"]


def _server(place: Place, workload: Workload, mode: str) -> list[str]:
    return [*_floor(place, workload, mode), "--only-pods"]


def _ours(place: Place, _workload: Workload, _mode: str) -> list[str]:
    return [sys.executable, "-c", MANAGER, "manager", f"--kubeconfig={place.kubeconfig}", *SERVES_NOTHING]


def _go(place: Place, _workload: Workload, _mode: str) -> list[str]:
    """As it comes, with the default init image, which nobody pulls here."""
    return [str(_go_program()), f"--kubeconfig={place.kubeconfig}", *SERVES_NOTHING]


def _kubeflow(place: Place, _workload: Workload, _mode: str) -> list[str]:
    return [str(_kubeflow_program()), f"--kubeconfig={place.kubeconfig}", *SERVES_NOTHING]


def _tuned(place: Place, workload: Workload, mode: str) -> list[str]:
    tuning = ["--kube-api-qps=1000", "--kube-api-burst=1000", "--controller-threads=8"]
    return [*_kubeflow(place, workload, mode), *tuning]


@functools.cache
def _go_program() -> Path:
    return binaries.ensure_program(binaries.PROGRAMS["go-paddle-operator"])


@functools.cache
def _kubeflow_program() -> Path:
    return binaries.ensure_program(binaries.PROGRAMS["training-operator"])


@functools.cache
def kubeflow_crd() -> Path:
    return binaries.source_folder(binaries.TRAINING_OPERATOR) / KUBEFLOW_CRD


_KUBEFLOW = {
    "job": kubeflow_job,
    "api_version": "kubeflow.org/v1",
    "follows": ("paddlejobs", "pods", "services"),
    "modes": (SERVICE,),
    "needs": (_kubeflow_program, kubeflow_crd),
}
OPERATORS = {
    one.key: one
    for one in (
        Operator(FLOOR, "floor", _floor, follows=("paddlejobs", "pods")),
        Operator(OURS, "ours", _ours),
        Operator(
            SERVER,
            "the pods alone",
            _server,
            follows=("paddlejobs",),
            retry_seconds=NEVER,
            only_creates=True,
        ),
        Operator(GO, "Go paddle-operator", _go, retry_seconds=BEHIND_AN_INIT_CONTAINER, needs=(_go_program,)),
        Operator(KUBEFLOW, "training-operator", _kubeflow, **_KUBEFLOW),  # type: ignore[arg-type]
        Operator(TUNED, "training-operator, 1000 qps, 8 threads", _tuned, **_KUBEFLOW),  # type: ignore[arg-type]
    )
}
