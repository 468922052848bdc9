"""What is measured: how many jobs of how many pods, in which modes, by whom, how often. Only data."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from paddle_operator.api.resources import PADDLE_JOBS

POD_IP, SERVICE = "PodIP", "Service"
FLOOR, OURS, GO, KUBEFLOW, TUNED = "floor", "ours", "go", "kubeflow", "kubeflow-tuned"
SERVER = "server"
"""A script that makes the pods and does nothing else: the server's own time."""
EVERYBODY = (FLOOR, OURS, GO, KUBEFLOW, TUNED)
WE = (FLOOR, OURS)
FOREIGN_PODS = 10_000
NO_NODE = "1000x10-no-node"


@dataclass(frozen=True)
class Workload:
    name: str
    jobs: int
    workers: int
    servers: int = 0
    jobs_per_second: float = 0.0
    """0: all at once."""
    run_seconds: float = 2.0
    """Of each worker, once it runs; servers go on for as long again."""
    cleans: bool = True
    """The pods of a job that has ended are deleted."""
    foreign_pods: int = 0
    """In another namespace, half of them with a label that makes them look like ours."""
    has_node: bool = True
    """Somebody plays the pods; else they are made, and that is all."""
    is_start: bool = False
    """The job is there before the operator, whose start is measured."""
    modes: tuple[str, ...] = (POD_IP, SERVICE)
    operators: tuple[str, ...] = WE
    repeats: int = 3
    fewer: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Than `repeats`, by mode and operator: the whole run has to fit into 90 minutes."""

    def repeats_of(self, mode: str, operator: str) -> int:
        return self.fewer.get((mode, operator), self.repeats)

    @property
    def pods_per_job(self) -> int:
        return self.workers + self.servers

    @property
    def pods(self) -> int:
        return self.jobs * self.pods_per_job


_BY_ALL = Workload("", 1, 1, operators=EVERYBODY, repeats=5, fewer={(SERVICE, GO): 0})
# A minute or two each, and of that most is waiting for their own limit of 20 requests a second.
_LARGE = replace(_BY_ALL, fewer={(POD_IP, GO): 3, (SERVICE, GO): 3, (SERVICE, KUBEFLOW): 3})
WORKLOADS = (
    replace(_BY_ALL, name="1x8", workers=8),
    replace(_BY_ALL, name="4+4", workers=4, servers=4),
    replace(_BY_ALL, name="1x64", workers=64),
    replace(_LARGE, name="1x256", workers=256),
    replace(_LARGE, name="50x4", jobs=50, workers=4),
    Workload("1x256-never", 1, 256, cleans=False, operators=(OURS,)),
    Workload("200x5", 200, 5, jobs_per_second=10),
    Workload("1x1000", 1, 1000, run_seconds=5),
    # Not cleaned, so that all pods are there at once. Once, because it takes a quarter of an hour.
    Workload(
        "1000x10",
        1000,
        10,
        cleans=False,
        modes=(POD_IP,),
        operators=(SERVER, FLOOR, OURS),
        repeats=1,
    ),
    Workload(NO_NODE, 1000, 10, has_node=False, modes=(POD_IP,), operators=(SERVER, FLOOR, OURS), repeats=1),
    Workload("50x4-foreign", 50, 4, foreign_pods=FOREIGN_PODS),
    Workload("start-foreign", 1, 4, foreign_pods=FOREIGN_PODS, is_start=True, modes=(POD_IP,), repeats=5),
)
BY_NAME = {one.name: one for one in WORKLOADS}


def pod_template(run_seconds: float) -> dict[str, Any]:
    """About 2 KB, as templates of real trainings are. The annotation is for the fake node."""
    variables = [
        {"name": f"TRAINING_SETTING_{number}", "value": f"a value of ordinary length, number {number}"}
        for number in range(16)
    ]
    container = {
        "name": "paddle",
        "image": "benchmark/none:1",
        "command": ["python", "train.py"],
        "args": ["--epochs=10", "--batch-size=64", "--learning-rate=0.001"],
        "env": variables,
        "ports": [{"containerPort": 37777, "name": "master"}],
        "resources": {
            "limits": {"cpu": "4", "memory": "16Gi"},
            "requests": {"cpu": "4", "memory": "16Gi"},
        },
        "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
    }
    spec = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "containers": [container],
        "volumes": [{"name": "scratch", "emptyDir": {}}],
        "nodeSelector": {"kubernetes.io/os": "linux"},
    }
    annotations = {"fake-node/run-seconds": str(run_seconds)}
    return {"metadata": {"labels": {"team": "benchmark"}, "annotations": annotations}, "spec": spec}


def paddle_job(workload: Workload, mode: str, namespace: str, name: str) -> dict[str, Any]:
    """For our operator and for the Go one."""
    spec: dict[str, Any] = {
        "intranet": mode,
        "cleanPodPolicy": "Always" if workload.cleans else "Never",
        "worker": {"replicas": workload.workers, "template": pod_template(workload.run_seconds)},
    }
    if workload.servers:
        template = pod_template(2 * workload.run_seconds)
        spec["ps"] = {"replicas": workload.servers, "template": template}
    return {
        "apiVersion": PADDLE_JOBS.api_version,
        "kind": PADDLE_JOBS.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def kubeflow_job(workload: Workload, _mode: str, namespace: str, name: str) -> dict[str, Any]:
    """It knows but one mode, with a service for each pod; what Paddle calls servers, it calls masters."""
    seconds = workload.run_seconds
    roles = {"Worker": _kubeflow_role(workload.workers, seconds)}
    if workload.servers:
        roles["Master"] = _kubeflow_role(workload.servers, 2 * seconds)
    clean = "All" if workload.cleans else "None"
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"runPolicy": {"cleanPodPolicy": clean}, "paddleReplicaSpecs": roles},
    }


def _kubeflow_role(replicas: int, run_seconds: float) -> dict[str, Any]:
    return {"replicas": replicas, "restartPolicy": "Never", "template": pod_template(run_seconds)}
