"""What all measurements of a run share: a control plane, the operators' account, and foreign pods."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import yaml

from benchmarks.cluster import install_kind
from benchmarks.fake_node import wait_for_service_account
from benchmarks.operators import kubeflow_crd
from benchmarks.workloads import pod_template
from paddle_operator.api.names import LABEL_RES_TYPE
from paddle_operator.kube.config import from_file
from paddle_operator.kube.transport import Transport
from testbed import processes
from testbed.controlplane import ControlPlane
from testbed.node_client import ApiClient, Server

NAMESPACE, ACCOUNT, FOREIGN = "operators", "operator", "foreign"
IN_FLIGHT = 32
# All but the map with the cluster's certificate, which every namespace has.
OF_JOBS = "fieldSelector=metadata.name!=kube-root-ca.crt"
GOING_SECONDS = 300
"""So long may it take until a namespace is empty, with 10,000 pods in it."""


class Bench:
    """Operators have a service account, as in a cluster: the server queues its requests as it does there."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane = plane
        self.folder = folder
        self.user = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
        self.kubeconfig = folder / "operator.yaml"
        self._foreign_pods = 0

    @asynccontextmanager
    async def client(self) -> AsyncIterator[ApiClient]:
        client = ApiClient(Server.of_kubeconfig(self.plane.kubeconfig))
        try:
            yield client
        finally:
            await client.close()

    def components(self) -> dict[str, list[int]]:
        return {one.component: [one.pid] for one in processes.find(self.plane.folder)}

    async def prepare(self, *, kubeflow: bool) -> None:
        async with Transport(from_file(self.plane.kubeconfig)) as transport:
            await install_kind(transport)
        await self.make_namespace(NAMESPACE)
        async with self.client() as client:
            await _post(client, f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", _named(ACCOUNT))
            await _post(client, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", _all_rights())
            path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{ACCOUNT}/token"
            answer = await _post(client, path, {"spec": {"expirationSeconds": 24 * 3600}})
            self._write_kubeconfig(answer["status"]["token"])
            if kubeflow:
                crd = yaml.safe_load(await asyncio.to_thread(kubeflow_crd().read_text))
                await _post(client, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)

    def _write_kubeconfig(self, token: str) -> None:
        config = yaml.safe_load(self.plane.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token}
        self.kubeconfig.write_text(yaml.safe_dump(config))

    async def make_namespace(self, name: str) -> None:
        async with self.client() as client:
            await _post(client, "/api/v1/namespaces", _named(name))
            await wait_for_service_account(client, name)

    async def empty_namespace(self, name: str, jobs: str) -> None:
        """Returns when nothing of the jobs is left, so that their end disturbs nobody.

        The namespace itself stays: the server would wait 5 s before it took it away, and that 250 times.
        """
        core = f"/api/v1/namespaces/{name}"
        # The jobs last, or the collector of garbage would delete the same things once more.
        paths = (f"{core}/pods", f"{core}/services", f"{core}/configmaps", jobs)
        slices = f"/apis/discovery.k8s.io/v1/namespaces/{name}/endpointslices"
        async with asyncio.timeout(GOING_SECONDS), self.client() as client:
            await _release_jobs(client, jobs)
            for path in paths:
                # Of 10,000 pods the server may delete a part, before it has worked at this for too long.
                while await _has_any(client, path):
                    await client.send("DELETE", f"{path}?{OF_JOBS}&gracePeriodSeconds=0")
            while await _has_any(client, slices):  # noqa: ASYNC110 (a benchmark has time)
                await asyncio.sleep(0.1)

    async def make_foreign_pods(self, count: int) -> None:
        """On a node that nobody plays; half of them with the label by which our operator selects."""
        if self._foreign_pods >= count:
            return
        await self.make_namespace(FOREIGN)
        numbers = iter(range(count))
        async with self.client() as client:

            async def make_some() -> None:
                for number in numbers:
                    await _post(client, f"/api/v1/namespaces/{FOREIGN}/pods", _foreign_pod(number))

            await asyncio.gather(*(make_some() for _ in range(IN_FLIGHT)))
        self._foreign_pods = count


async def _has_any(client: ApiClient, path: str) -> bool:
    _, answer = await client.send("GET", f"{path}?{OF_JOBS}&limit=1")
    return bool(msgspec.json.decode(answer)["items"])


async def _release_jobs(client: ApiClient, path: str) -> None:
    """The Go operator puts a finalizer on its jobs, and is no more: nobody else would take it away."""
    _, answer = await client.send("GET", path)
    for job in msgspec.json.decode(answer)["items"]:
        if job["metadata"].get("finalizers"):
            body = b'{"metadata":{"finalizers":null}}'
            await client.send(
                "PATCH", f"{path}/{job['metadata']['name']}", body, "application/merge-patch+json"
            )


def _named(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


def _all_rights() -> dict[str, Any]:
    return {
        **_named("benchmark-operator"),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
    }


def _foreign_pod(number: int) -> dict[str, Any]:
    template = pod_template(1)
    labels = {"app": "foreign"} | ({LABEL_RES_TYPE: "worker"} if number % 2 else {})
    return {
        "metadata": {"name": f"pod-{number}", "labels": labels},
        "spec": template["spec"] | {"nodeName": "somewhere-else", "nodeSelector": None},
    }


async def _post(client: ApiClient, path: str, body: dict[str, Any]) -> Any:
    status, answer = await client.send("POST", path, msgspec.json.encode(body))
    # What a try before this one has made is there.
    if status not in {201, 409}:
        raise RuntimeError(f"POST {path}: {answer.decode()}")
    return msgspec.json.decode(answer)
