"""What a large cluster costs the operator's memory: it keeps only what is ours, and of that a little."""

import asyncio
import gc
import tracemalloc

import make
import msgspec
import pytest
from loopback import json_answer, serving
from scripted import running, wall_clock

from paddle_operator.api.crd import paddle_job_schema
from paddle_operator.api.meta import Manifest
from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS, SERVICES, AnyResource
from paddle_operator.app import PaddleJobManager
from paddle_operator.cluster import Scope
from paddle_operator.kube.client import KubeCluster
from paddle_operator.kube.config import Credentials
from paddle_operator.kube.transport import Transport
from paddle_operator.memory.cluster import MemoryCluster

MOST_BYTES_OF_A_POD = 1500
PODS_IN_CACHE = 500


def of_somebody_else(resource: AnyResource, number: int) -> Manifest:
    metadata = {"name": f"web-{number}", "namespace": "team", "labels": {"app": "web"}}
    more: Manifest = {"spec": {"containers": [make.container()]}} if resource == PODS else {}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **more}


@pytest.mark.looptime
async def test_of_what_belongs_to_others_nothing_is_kept() -> None:
    memory = MemoryCluster(wall_clock, {PADDLE_JOBS: paddle_job_schema()})
    for resource in (PODS, SERVICES, CONFIG_MAPS):
        for number in range(5):
            await memory.create(resource, of_somebody_else(resource, number))
    job = make.manifest(workers=2, intranet="Service")
    job["metadata"]["namespace"] = "team"
    manager = PaddleJobManager(memory, "team", wall_clock)
    async with running(manager.run()):
        await memory.create(PADDLE_JOBS, job)
        await asyncio.sleep(10)
    kept = {one.resource.plural: len(one.store) for one in manager._informers}
    assert kept == {"paddlejobs": 1, "pods": 2, "services": 2, "configmaps": 1}


def as_a_server_stores_it() -> Manifest:
    """A pod of usual size: most of it says who wrote which field."""
    job = make.paddlejob()
    pod: Manifest = msgspec.to_builtins(make.pod(job, phase="Running"))
    variables = [{"name": f"VARIABLE_{number}", "value": "value" * 10} for number in range(20)]
    fields: Manifest = {"f:spec": {f"f:field-{number}": {} for number in range(150)}}
    pod["metadata"]["managedFields"] = [{"manager": "kubelet", "fieldsV1": fields}] * 2
    pod["spec"]["containers"] = [make.container(env=variables, command=["python", "train.py"])]
    pod["spec"]["tolerations"] = [{"key": f"node.kubernetes.io/{number}"} for number in range(10)]
    return pod


async def test_of_a_pod_little_is_kept() -> None:
    """As memory, beside many of its kind: what all of them say is there once."""
    usual = as_a_server_stores_it()
    pods = []
    for number in range(PODS_IN_CACHE):
        metadata = {**usual["metadata"], "name": f"resnet-worker-{number}", "uid": f"uid-of-pod-{number:04}"}
        pods.append({**usual, "metadata": metadata})
    assert len(msgspec.json.encode(usual)) > 4 * MOST_BYTES_OF_A_POD
    async with serving() as server, Transport(Credentials(server.address, None)) as transport:
        server.say(json_answer({"metadata": {"resourceVersion": "9"}, "items": pods}))
        server.say(json_answer({"metadata": {"resourceVersion": "9"}, "items": pods}))
        cluster = KubeCluster(transport)
        scope = Scope(keep=PaddleJobManager(cluster)._pods.store.keep)
        await cluster.list(PODS, scope)  # what is shared, and what is made but once, is there from now on
        tracemalloc.start()
        try:
            kept = (await cluster.list(PODS, scope)).items
            gc.collect()
            traced, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert {pod.metadata.name for pod in kept} == {pod["metadata"]["name"] for pod in pods}
    assert traced <= PODS_IN_CACHE * MOST_BYTES_OF_A_POD
