"""How fast a job starts on a real kubelet: 4 workers, PodIP, from apply until all containers run.

    python -m benchmarks.startup [--runs 5] [--paddle]   (needs root: it starts a real node of its own)

`with` is the operator as it is: it patches an annotation onto each pod once the config map is there, so that
the kubelet looks again at once. `without` leaves that out: the old way, in which the kubelet looks again by
itself after 10 to 15 seconds. The runs of both take turns. The bar: the median with the patch is at most a
quarter of the median without. `--paddle` also times example 02 from apply to its first ten training steps.
"""

import argparse
import asyncio
import os
import signal
import statistics
import subprocess
import sys
import time
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec

from paddle_operator.api.core import Pod
from paddle_operator.api.crd import paddle_job_crd
from paddle_operator.api.meta import Key
from paddle_operator.api.resources import PADDLE_JOBS, PODS, Target
from paddle_operator.cluster import NotFound, Scope, Throttled
from paddle_operator.kube.client import KubeCluster, path
from paddle_operator.kube.config import from_file
from paddle_operator.kube.transport import Transport
from testbed import images
from testbed.controlplane import ControlPlane
from testbed.node_services import PAUSE_IMAGE, Hardware

EXAMPLE = Path(__file__).parents[1] / "examples" / "02-collective" / "job.yaml"
WORKERS = 4
BAR = 0.25
WAYS = {
    "with": "",
    "without": "from paddle_operator.paddlejob import reconcile; reconcile.nudges = lambda seen: ();",
}
MANAGER = "import sys; from paddle_operator.cli import main; sys.argv[0] = 'paddle-operator'; main()"


def job(name: str) -> dict[str, Any]:
    container = {"name": "paddle", "image": PAUSE_IMAGE, "command": ["sleep", "600"]}
    template = {"spec": {"terminationGracePeriodSeconds": 0, "containers": [container]}}
    return {
        "apiVersion": PADDLE_JOBS.api_version,
        "kind": PADDLE_JOBS.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"worker": {"replicas": WORKERS, "template": template}},
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


async def seconds_to_run(cluster: KubeCluster, name: str) -> float:
    """From the creation of the job until the last of its pods was reported to run."""
    since = (await cluster.list(PODS, Scope("default"))).resource_version
    started = time.monotonic()
    made = await cluster.create(PADDLE_JOBS, job(name))
    running: set[str] = set()
    async with aclosing(cluster.watch(PODS, Scope("default"), since)) as changes:
        async for change in changes:
            pod = change.object
            if isinstance(pod, Pod) and pod.metadata.name.startswith(name) and pod.status.phase == "Running":
                running.add(pod.metadata.name)
            if len(running) == WORKERS:
                break
    seconds = time.monotonic() - started
    await cluster.delete(Target(PADDLE_JOBS, Key("default", name), made.metadata.uid))
    while await pods_of(cluster, name):  # noqa: ASYNC110 (a benchmark has time)
        await asyncio.sleep(0.1)
    return seconds


async def pods_of(cluster: KubeCluster, name: str) -> list[str]:
    listing = await cluster.list(PODS, Scope("default"))
    return [pod.metadata.name for pod in listing.items if pod.metadata.name.startswith(name)]


def start_manager(plane: ControlPlane, patch: str) -> "subprocess.Popen[bytes]":
    words = ["manager", f"--kubeconfig={plane.kubeconfig}", "--namespace=default", "--log-level=error"]
    return subprocess.Popen([sys.executable, "-c", patch + MANAGER, *words])


async def measure(plane: ControlPlane, runs: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    async with Transport(from_file(plane.kubeconfig)) as transport:
        await install_kind(transport)
        for run in range(runs):
            for way, patch in WAYS.items():
                with start_manager(plane, patch) as manager:
                    await asyncio.sleep(1.5)  # it has listed everything by then
                    found[way].append(await seconds_to_run(KubeCluster(transport), f"{way}-{run}"))
                    os.kill(manager.pid, signal.SIGKILL)
                print(f"{way:<8} {found[way][-1]:6.2f} s", flush=True)
    return found


def seconds_to_train(plane: ControlPlane) -> float:
    """From apply until rank 0 has told of its first steps; imports of Paddle and the rendezvous included."""
    kubectl = [str(plane.kubectl), f"--kubeconfig={plane.kubeconfig}"]
    started = time.monotonic()
    subprocess.run([*kubectl, "apply", "-f", str(EXAMPLE)], check=True, capture_output=True)
    while True:
        done = subprocess.run([*kubectl, "logs", "collective-worker-0"], check=False, capture_output=True)
        if b"step=10 " in done.stdout:
            return time.monotonic() - started
        time.sleep(0.2)


def time_paddle(plane: ControlPlane) -> None:
    plane.node.import_image(images.ensure(images.PADDLE))
    with start_manager(plane, "") as manager:
        time.sleep(1.5)
        print(f"example 02, 2 workers: first ten steps {seconds_to_train(plane):.1f} s after apply")
        manager.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the start of a job on a real kubelet.")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--paddle", action="store_true", help="time a real training as well")
    options = parser.parse_args()
    with ControlPlane(f"startup-{os.getpid()}", node=Hardware()) as plane:
        found = asyncio.run(measure(plane, options.runs))
        if options.paddle:
            time_paddle(plane)
    medians = {way: statistics.median(times) for way, times in found.items()}
    for way, times in found.items():
        print(f"{way:<8} median {medians[way]:6.2f} s, from {min(times):.2f} to {max(times):.2f}")
    ratio = medians["with"] / medians["without"]
    print(f"ratio {ratio:.2f}, bar {BAR}: {'met' if ratio <= BAR else 'MISSED'}")


if __name__ == "__main__":
    main()
