"""How fast a job starts on a real kubelet: 4 workers of a tiny image, from apply until all containers run.

    python -m benchmarks.startup [--runs 5] [--paddle]   (needs root: it starts a real node of its own)

The old way is that of the Go operator: the config map is made once all pods have an address, and nobody tells
the kubelets, which look again after 10 to 15 seconds. It is measured twice: with our manager, whose nudge of
the pods is left out, and with the Go operator itself, whose pods by default also wait in an init container
until the names of their peers resolve. The ways take turns, so that a busy moment of the machine hits them
alike. Each row has the medians until all pods were made, had an address, and ran; the ratio is to the first
row. `--paddle` also times example 02 from apply to its first ten training steps.
"""

import argparse
import asyncio
import functools
import os
import statistics
import subprocess
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks.cluster import SERVES_NOTHING, install_kind, kubectl, manager_command, tiny_job, verdict
from paddle_operator.api.core import Pod
from paddle_operator.api.meta import Key
from paddle_operator.api.resources import PADDLE_JOBS, PODS, AnyResource, Target
from paddle_operator.cluster import Scope
from paddle_operator.kube.client import KubeCluster
from paddle_operator.kube.config import from_file
from paddle_operator.kube.transport import Transport
from testbed import binaries, images
from testbed.box import NODE_ADDRESS
from testbed.controlplane import ControlPlane
from testbed.node_services import CLUSTER_DOMAIN, PAUSE_IMAGE, Hardware

EXAMPLE = Path(__file__).parents[1] / "examples" / "02-collective" / "job.yaml"
NAMESPACE = "default"
WORKERS = 4
MOST_SECONDS = 120
SETTLE_SECONDS = 3
"""After which an operator has listed everything."""
# The init container of the Go operator asks with nslookup; that of busybox fails if one domain has no answer.
ONE_DOMAIN = {
    "dnsPolicy": "None",
    "dnsConfig": {"nameservers": [NODE_ADDRESS], "searches": [f"{NAMESPACE}.svc.{CLUSTER_DOMAIN}"]},
}
NO_NUDGES = "from paddle_operator.paddlejob import reconcile; reconcile.nudges = lambda seen: ();"


def ours(plane: ControlPlane) -> list[str]:
    return manager_command(plane, f"--namespace={NAMESPACE}", *SERVES_NOTHING)


def ours_without_nudges(plane: ControlPlane) -> list[str]:
    return manager_command(plane, f"--namespace={NAMESPACE}", *SERVES_NOTHING, patch=NO_NUDGES)


def go_operator(plane: ControlPlane) -> list[str]:
    """As it comes, with the tiny image in place of alpine."""
    options = [f"--kubeconfig={plane.kubeconfig}", f"--namespace={NAMESPACE}", f"--initImage={PAUSE_IMAGE}"]
    return [str(go_program()), *options, *SERVES_NOTHING]


@functools.cache
def go_program() -> Path:
    return binaries.ensure(binaries.PEERS)["go-paddle-operator"]


def go_operator_without_init(plane: ControlPlane) -> list[str]:
    return [*go_operator(plane), "--initImage="]


@dataclass(frozen=True)
class Way:
    title: str
    command: Callable[[ControlPlane], list[str]]
    intranet: str = "PodIP"
    bar: float | None = None
    """The most that its median may be, as a part of that of the old way."""


OLD = "old"
WAYS = {
    OLD: Way("the old way, PodIP", ours_without_nudges),
    "podip": Way("PodIP", ours, bar=1 / 4),
    "service": Way("Service", ours, "Service", bar=1 / 8),
    "host": Way("Host", ours, "Host"),
    "go-podip": Way("Go operator, PodIP", go_operator),
    "go-service": Way("Go operator, Service", go_operator, "Service"),
    "go-no-init": Way("Go operator, PodIP, no init image", go_operator_without_init),
}


class Start(NamedTuple):
    """Seconds from the creation of the job until the last of its pods was seen so."""

    made: float
    addressed: float
    running: float


async def time_start(cluster: KubeCluster, name: str, intranet: str) -> Start:
    since = (await cluster.list(PODS, Scope(NAMESPACE))).resource_version
    job = tiny_job(name, NAMESPACE, ["sleep", "600"], WORKERS, intranet)
    job["spec"]["worker"]["template"]["spec"] |= ONE_DOMAIN
    made, addressed, running = (dict[str, float](), dict[str, float](), dict[str, float]())
    began = time.monotonic()
    await cluster.create(PADDLE_JOBS, job)
    async with asyncio.timeout(MOST_SECONDS), aclosing(_pods_from(cluster, name, since)) as pods:
        async for pod in pods:
            seconds, pod_name = time.monotonic() - began, pod.metadata.name
            made.setdefault(pod_name, seconds)
            if pod.status.pod_ip:
                addressed.setdefault(pod_name, seconds)
            if pod.status.phase == "Running":
                running.setdefault(pod_name, seconds)
            if len(running) == WORKERS:
                break
    return Start(*(max(seen.values()) for seen in (made, addressed, running)))


async def _pods_from(cluster: KubeCluster, job: str, since: str) -> AsyncGenerator[Pod, None]:
    async with aclosing(cluster.watch(PODS, Scope(NAMESPACE), since)) as changes:
        async for change in changes:
            if isinstance(change.object, Pod) and change.object.metadata.name.startswith(f"{job}-"):
                yield change.object


async def none_left(cluster: KubeCluster, resource: AnyResource) -> None:
    while (await cluster.list(resource, Scope(NAMESPACE))).items:  # noqa: ASYNC110 (a benchmark has time)
        await asyncio.sleep(0.1)


@asynccontextmanager
async def operator(command: list[str], settle_seconds: float) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec(*command, stderr=subprocess.DEVNULL)
    try:
        await asyncio.sleep(settle_seconds)
        yield
        assert process.returncode is None, f"{command} ended with {process.returncode}"
    finally:
        process.kill()
        await process.wait()


async def measure(plane: ControlPlane, ways: dict[str, Way], runs: int) -> dict[str, list[Start]]:
    found: dict[str, list[Start]] = {way: [] for way in ways}
    async with Transport(from_file(plane.kubeconfig)) as transport:
        cluster = KubeCluster(transport)
        await install_kind(transport)
        for run in range(runs):
            for key, way in ways.items():
                # The kubelet looks at its containers each second, and the run before ended in step with that.
                phase = SETTLE_SECONDS + run / runs
                async with operator(way.command(plane), phase):
                    found[key].append(await one_run(cluster, f"{key}-{run}", way.intranet))
                await none_left(cluster, PODS)
                print(f"{way.title:<36} {found[key][-1].running:6.2f} s", flush=True)
    return found


async def one_run(cluster: KubeCluster, name: str, intranet: str) -> Start:
    start = await time_start(cluster, name, intranet)
    job = await cluster.get(PADDLE_JOBS, Key(NAMESPACE, name))
    await cluster.delete(Target.of(PADDLE_JOBS, job))
    # As long as there is an operator: that in Go has a finalizer to take away.
    await none_left(cluster, PADDLE_JOBS)
    return start


def print_table(ways: dict[str, Way], found: dict[str, list[Start]]) -> None:
    medians = {key: Start(*map(statistics.median, zip(*found[key], strict=True))) for key in ways}
    print("| way | made | addressed | all run: median | from - to | ratio | bar |")
    print("|---|---|---|---|---|---|---|")
    for key, way in ways.items():
        times, middle = [start.running for start in found[key]], medians[key]
        ratio = middle.running / medians[OLD].running
        bar = "" if way.bar is None else f"{way.bar}: {verdict(ratio, way.bar)}"
        spread = f"{min(times):.2f} - {max(times):.2f}"
        figures = f"{middle.made:.2f} s | {middle.addressed:.2f} s | {middle.running:.2f} s | {spread} s"
        print(f"| {way.title} | {figures} | {ratio:.3f} | {bar} |")


def seconds_to_train(plane: ControlPlane) -> float:
    """From apply until rank 0 has told of its first steps; imports of Paddle and the rendezvous included."""
    started = time.monotonic()
    kubectl(plane, "apply", "-f", str(EXAMPLE))
    while True:
        command = [str(plane.kubectl), f"--kubeconfig={plane.kubeconfig}", "logs", "collective-worker-0"]
        if b"step=10 " in subprocess.run(command, check=False, capture_output=True).stdout:
            return time.monotonic() - started
        time.sleep(0.2)


async def time_paddle(plane: ControlPlane) -> None:
    plane.node.import_image(images.ensure(images.PADDLE))
    async with operator(ours(plane), SETTLE_SECONDS):
        seconds = await asyncio.to_thread(seconds_to_train, plane)
    print(f"example 02, 2 workers: first ten steps {seconds:.1f} s after apply")


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the start of a job on a real kubelet.")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--ways", nargs="+", choices=[*WAYS], default=[*WAYS], help="beside the old way")
    parser.add_argument("--paddle", action="store_true", help="time a real training as well")
    options = parser.parse_args()
    ways = {key: way for key, way in WAYS.items() if key in {OLD, *options.ways}}
    with ControlPlane(f"startup-{os.getpid()}", node=Hardware()) as plane:
        found = asyncio.run(measure(plane, ways, options.runs))
        if options.paddle:
            asyncio.run(time_paddle(plane))
    print_table(ways, found)


if __name__ == "__main__":
    main()
