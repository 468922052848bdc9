"""The fake node as a process of its own, whose patience with missing config maps can be set.

python -m benchmarks.node --kubeconfig FILE --namespace NAME [--retry-seconds 10 15]
"""

import argparse
import asyncio
from pathlib import Path

from testbed.node import FakeNode
from testbed.node_client import Server

READY = "plays pods"


async def play(kubeconfig: Path, namespace: str, retry_seconds: tuple[float, float]) -> None:
    """Until killed, or broken: then what broke it is raised."""
    server = Server.of_kubeconfig(kubeconfig)
    async with FakeNode(
        url=server.url,
        token=server.token,
        ca_pem=server.ca_pem,
        namespace=namespace,
        retry_seconds=retry_seconds,
    ) as node:
        print(READY, flush=True)
        await node.broken()


def main() -> None:
    parser = argparse.ArgumentParser(description="Plays the pods of a namespace.")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--retry-seconds", type=float, nargs=2, default=(10.0, 15.0))
    options = parser.parse_args()
    asyncio.run(play(options.kubeconfig, options.namespace, tuple(options.retry_seconds)))


if __name__ == "__main__":
    main()
