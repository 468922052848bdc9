"""The Node object of the fake node, and the lease that keeps it alive."""

import asyncio
from datetime import UTC, datetime
from typing import Any

from testbed.node_client import ApiClient, ApiError
from testbed.node_life import Addresses
from testbed.node_status import STRATEGIC, condition, encode, timestamp

_HEARTBEAT_SECONDS = 10
_PAUSE_AFTER_FAILURE = 0.2
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


async def register(client: ApiClient, name: str) -> None:
    """Afterwards the Node object exists and is Ready; one that stood there before is kept."""
    node = _node(name)
    status, _ = await client.send("POST", "/api/v1/nodes", encode(node))
    if status == 409:
        body = encode({"status": node["status"]})
        status, _ = await client.send("PATCH", f"/api/v1/nodes/{name}/status", body, STRATEGIC)
    if status >= 300:
        raise ApiError(status, "the Node object")


async def keep_alive(client: ApiClient, name: str) -> None:
    """Renews the lease for ever: without it the node controller would evict the pods."""
    while True:
        body = encode(_lease(name))
        try:
            status, _ = await client.send("PATCH", f"{_LEASES}/{name}", body, "application/merge-patch+json")
            if status == 404:
                status, _ = await client.send("POST", _LEASES, body)
        except ConnectionError:
            status = 503
        await asyncio.sleep(_HEARTBEAT_SECONDS if status < 300 else _PAUSE_AFTER_FAILURE)


def _node(name: str) -> dict[str, Any]:
    now = timestamp()
    room = {"cpu": "100k", "memory": "1Pi", "pods": "1M", "ephemeral-storage": "1Pi"}
    ready = condition("Ready", "True", now, reason="KubeletReady", message="fake node is ready")
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "type": "fake-node"}},
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [ready | {"lastHeartbeatTime": now}],
            "addresses": [
                {"type": "InternalIP", "address": Addresses.HOST},
                {"type": "Hostname", "address": name},
            ],
        },
    }


def _lease(name: str) -> dict[str, Any]:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now},
    }
