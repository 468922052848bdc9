"""What the operator costs when there is nothing to do, beside 50 jobs that have ended: requests, CPU, memory.

    python -m benchmarks.idle [--seconds 600] [--jobs 50] [--process]

As users have it: the Deployment of deploy/v1, in the operator's own image on a real node, with the kubelet's
probes (needs root). With `--process` the manager of this checkout is a process beside an API server, and a
fake node plays the pods: less true, and less to build.

Requests are those of its user in the server's audit log. The lease is renewed and watches are begun anew, for
ever; there must be no other request at all. CPU and memory are what the kernel says of its processes.
"""

import argparse
import asyncio
import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.audit import requests_in
from benchmarks.cluster import SERVES_NOTHING, install_kind, kubectl, manager_command, tiny_job, verdict
from benchmarks.processes import cpu_seconds, resident_mib
from paddle_operator.api.names import LABEL_RES_TYPE
from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.api.resources import PADDLE_JOBS, PODS
from paddle_operator.cluster import Scope
from paddle_operator.kube.client import KubeCluster
from paddle_operator.kube.config import from_file
from paddle_operator.kube.transport import Transport
from testbed import images
from testbed.controlplane import ControlPlane
from testbed.node import FakeNode
from testbed.node_services import Hardware

MANIFESTS = Path(__file__).parents[1] / "deploy" / "v1"
DEPLOYMENT = "deployment/paddle-controller-manager"
CPU_BAR_PERCENT = 0.2
SETTLE_SECONDS = 10
"""After which the last job's last event is told."""


@dataclass(frozen=True)
class Operator:
    user: str
    """As the audit log has it."""
    namespace: str
    processes: frozenset[int]


@dataclass(frozen=True)
class Idle:
    seconds: float
    cpu_seconds: float
    resident_mib: float
    requests: Counter[str]

    @property
    def cpu_percent(self) -> float:
        return 100 * self.cpu_seconds / self.seconds

    @property
    def watches(self) -> int:
        return sum(count for request, count in self.requests.items() if request.startswith("watch "))

    @property
    def lease(self) -> int:
        return sum(count for request, count in self.requests.items() if request.endswith(" leases"))

    @property
    def others(self) -> int:
        return self.requests.total() - self.watches - self.lease


@contextmanager
def deployed() -> Iterator[tuple[ControlPlane, Operator]]:
    archive = images.ensure(images.OPERATOR)
    with ControlPlane(f"idle-{os.getpid()}", node=Hardware()) as plane:
        plane.node.import_image(archive)
        kubectl(plane, "apply", "--server-side", "-f", str(MANIFESTS / "crd.yaml"))
        kubectl(plane, "apply", "-f", str(MANIFESTS / "operator.yaml"))
        namespace = "--namespace=paddle-system"
        # It is ready when it has listed all jobs, so the kind is served by then.
        kubectl(plane, "rollout", "status", DEPLOYMENT, namespace, "--timeout=120s")
        where = "jsonpath={.items[*].status.containerStatuses[*].containerID}"
        said = kubectl(plane, "get", "pods", namespace, "-l=control-plane=controller-manager", "-o", where)
        container = said.removeprefix("containerd://")
        user = "system:serviceaccount:paddle-system:paddle-manager-sa"
        yield plane, Operator(user, "paddle-system", processes_of(container))


@contextmanager
def as_a_process() -> Iterator[tuple[ControlPlane, Operator]]:
    user, namespace = "paddle-operator", "default"
    with ControlPlane(f"idle-{os.getpid()}") as plane:
        asyncio.run(_install_kind(plane))
        kubectl(
            plane, "create", "clusterrolebinding", "operator", "--clusterrole=cluster-admin", f"--user={user}"
        )
        leading = ["--leader-elect", f"--lease-namespace={namespace}"]
        command = manager_command(plane, f"--namespace={namespace}", *leading, *SERVES_NOTHING, user=user)
        with subprocess.Popen(command) as process:
            try:
                yield plane, Operator(user, namespace, frozenset({process.pid}))
            finally:
                process.kill()


async def _install_kind(plane: ControlPlane) -> None:
    async with Transport(from_file(plane.kubeconfig)) as transport:
        await install_kind(transport)


async def end_jobs(plane: ControlPlane, namespace: str, count: int) -> None:
    """Jobs of one tiny pod each, until all are Completed and their pods are gone."""
    async with Transport(from_file(plane.kubeconfig)) as transport:
        cluster = KubeCluster(transport)
        since = (await cluster.list(PADDLE_JOBS, Scope(namespace))).resource_version
        for number in range(count):
            await cluster.create(PADDLE_JOBS, tiny_job(f"job-{number}", namespace, ["true"], 1, "PodIP"))
        ended: set[str] = set()
        async with aclosing(cluster.watch(PADDLE_JOBS, Scope(namespace), since)) as changes:
            async for change in changes:
                job = change.object
                if isinstance(job, PaddleJob) and job.status.phase == "Completed":
                    ended.add(job.metadata.name)
                if len(ended) == count:
                    break
        pods = Scope(namespace, LABEL_RES_TYPE)
        while (await cluster.list(PODS, pods)).items:  # noqa: ASYNC110 (a benchmark has time)
            await asyncio.sleep(0.1)


async def end_jobs_on_a_fake_node(plane: ControlPlane, namespace: str, count: int) -> None:
    token = plane.token_for("fake-node")
    async with FakeNode(url=plane.url, token=token, ca_file=plane.ca_file, namespace=namespace):
        await end_jobs(plane, namespace, count)


def watch_idle(plane: ControlPlane, operator: Operator, seconds: float) -> Idle:
    logged = plane.audit_log.stat().st_size
    began, used = time.monotonic(), cpu_seconds(operator.processes)
    time.sleep(seconds)
    return Idle(
        seconds=time.monotonic() - began,
        cpu_seconds=cpu_seconds(operator.processes) - used,
        resident_mib=resident_mib(operator.processes),
        requests=requests_in(plane.audit_log, logged, operator.user),
    )


def processes_of(container: str) -> frozenset[int]:
    """As this machine sees them: each is in a control group that is called like its container."""
    found = set()
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with suppress(OSError):
                if container in (process / "cgroup").read_text():
                    found.add(int(process.name))
    assert found, f"no process is in the container {container}"
    return frozenset(found)


def print_table(jobs: int, idle: Idle) -> None:
    cpu = f"{CPU_BAR_PERCENT} %: {verdict(idle.cpu_percent, CPU_BAR_PERCENT)}"
    rows = (
        ("jobs, all Completed", f"{jobs}", ""),
        ("idle for", f"{idle.seconds:.0f} s", ""),
        ("requests for the lease", f"{idle.lease}", ""),
        ("watches begun anew", f"{idle.watches}", ""),
        ("other requests", f"{idle.others}", f"0: {verdict(idle.others, 0)}"),
        ("CPU", f"{idle.cpu_percent:.3f} % of a core", cpu),
        ("resident memory", f"{idle.resident_mib:.1f} MiB", ""),
    )
    print("| idle operator | | bar |\n|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    if idle.others:
        print(f"all requests: {dict(idle.requests)}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the operator while nothing happens.")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--jobs", type=int, default=50)
    parser.add_argument("--process", action="store_true", help="no Deployment: a process, and a fake node")
    options = parser.parse_args()
    where, work = (as_a_process, end_jobs_on_a_fake_node) if options.process else (deployed, end_jobs)
    with where() as (plane, operator):
        asyncio.run(work(plane, operator.namespace, options.jobs))
        time.sleep(SETTLE_SECONDS)
        idle = watch_idle(plane, operator, options.seconds)
    print_table(options.jobs, idle)


if __name__ == "__main__":
    main()
