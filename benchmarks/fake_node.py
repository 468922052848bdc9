"""What one status patch costs the fake node in CPU time of its own, at full load on a real API server.

    python -m benchmarks.fake_node [--pods 500] [--kubeconfig FILE]

The pods are made by another process, so that the figure is the node's alone: process CPU time (watches,
bindings and all) divided by status patches. The namespace is the run's own and is deleted at the end.
"""

import argparse
import asyncio
import os
import sys
import time
from pathlib import Path

import msgspec

from testbed.controlplane import ControlPlane
from testbed.node import FakeNode
from testbed.node_client import ApiClient, Server

GOAL_MS = 0.6


def pod(name: str) -> bytes:
    container = {"name": "paddle", "image": "none", "envFrom": [{"configMapRef": {"name": "peers"}}]}
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": "benchmark"}},
            "spec": {
                "restartPolicy": "Never",
                "automountServiceAccountToken": False,
                "containers": [container],
            },
        }
    )


async def make_pods(server: Server, namespace: str, count: int) -> None:
    client = ApiClient(server)
    numbers = iter(range(count))

    async def make_some() -> None:
        for number in numbers:
            body = pod(f"pod-{number}")
            status, answer = await client.send("POST", f"/api/v1/namespaces/{namespace}/pods", body)
            assert status == 201, answer

    await asyncio.gather(*(make_some() for _ in range(16)))
    await client.close()


async def wait_for_service_account(client: ApiClient, namespace: str) -> None:
    """A server with the ServiceAccount admission refuses pods before; one without never has the account."""
    probe = f"/api/v1/namespaces/{namespace}/pods?dryRun=All"
    for _ in range(100):
        status, _answer = await client.send("POST", probe, pod("probe"))
        if status == 201:
            return
        await asyncio.sleep(0.1)
    raise TimeoutError(f"no pod can be made in {namespace}")


async def measure(kubeconfig: Path, count: int) -> None:
    server, namespace = Server.of_kubeconfig(kubeconfig), f"fake-node-{os.getpid()}"
    client = ApiClient(server)
    new = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    await client.send("POST", "/api/v1/namespaces", msgspec.json.encode(new))
    peers = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "peers"},
        "data": {"PADDLE_TRAINERS_NUM": str(count)},
    }
    await client.send("POST", f"/api/v1/namespaces/{namespace}/configmaps", msgspec.json.encode(peers))
    await wait_for_service_account(client, namespace)
    try:
        await run(server, kubeconfig, namespace, count)
    finally:
        await client.send("DELETE", f"/api/v1/namespaces/{namespace}/pods?gracePeriodSeconds=0")
        await client.send("DELETE", f"/api/v1/namespaces/{namespace}")
        await client.close()


async def run(server: Server, kubeconfig: Path, namespace: str, count: int) -> None:
    async with FakeNode(
        url=server.url, token=server.token, ca_pem=server.ca_pem, namespace=namespace
    ) as node:
        arguments = ["--kubeconfig", str(kubeconfig), "--pods", str(count), "--only-make-in", namespace]
        begin, cpu = time.perf_counter(), time.process_time()
        maker = await asyncio.create_subprocess_exec(sys.executable, "-m", "benchmarks.fake_node", *arguments)
        # The default script: one patch to Running and one to Succeeded for each pod.
        while node.status_patches < 2 * count:  # noqa: ASYNC110  a counter on the hot path stays a plain number
            await asyncio.sleep(0.05)
        wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
        assert await maker.wait() == 0
        patches = node.status_patches
    print(f"| pods | status patches | patches/s | CPU ms per patch (goal < {GOAL_MS}) | wall s |")
    print("|---|---|---|---|---|")
    print(f"| {count} | {patches} | {patches / wall:.0f} | {1000 * cpu / patches:.3f} | {wall:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kubeconfig", type=Path, help="default: a control plane for this run alone")
    parser.add_argument("--pods", type=int, default=500)
    parser.add_argument("--only-make-in", metavar="NAMESPACE", help="used by the benchmark itself")
    options = parser.parse_args()
    if options.only_make_in:
        asyncio.run(make_pods(Server.of_kubeconfig(options.kubeconfig), options.only_make_in, options.pods))
    elif options.kubeconfig:
        asyncio.run(measure(options.kubeconfig, options.pods))
    else:
        with ControlPlane(f"benchmark-{os.getpid()}") as plane:
            asyncio.run(measure(plane.kubeconfig, options.pods))


if __name__ == "__main__":
    main()
