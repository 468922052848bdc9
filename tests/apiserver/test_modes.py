"""Every combination of mode, network, gloo and clean-up on a real API server; what is special to each."""

import itertools
from collections import Counter
from typing import Any

import make
import msgspec
import pytest
from audit import tally
from tally import TALLY
from world import World

from paddle_operator.api.core import Pod
from paddle_operator.api.meta import Manifest, find_condition
from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.api.resources import PADDLE_JOBS, PODS, SERVICES
from paddle_operator.cluster import Scope
from testbed.node import FakeNode
from testbed.node_pods import Behaviour
from testbed.node_pods import Pod as PlayedPod

pytestmark = pytest.mark.apiserver

MODES = {"PS": (2, 2), "Collective": (0, 2), "Single": (0, 1)}
INTRANETS = ("", "PodIP", "Service", "Host", "HostNetwork")
GLOO = (None, 0, 1, 2)
POLICIES = ("", "Always", "Never", "OnFailure", "OnCompletion")
COMBINATIONS = [*itertools.product(MODES, INTRANETS, GLOO, POLICIES)]


def manifest(name: str, servers: int, workers: int, **spec: Any) -> Manifest:
    roles = {"ps": make.role(servers)} if servers else {}
    wanted = {field: value for field, value in spec.items() if value not in {None, ""}}
    return make.manifest(name, workers, **roles, **wanted)


def as_paddle_does(pod: PlayedPod) -> Behaviour | None:
    """Parameter servers never end by themselves."""
    return Behaviour(runs_for_ever=True) if "-ps-" in pod.metadata.name else None


def kept(policy: str) -> bool:
    return policy in {"Never", "OnFailure"}


async def test_every_combination_completes_and_is_cleaned_as_asked(world: World, node: FakeNode) -> None:
    node.script(as_paddle_does)
    world.start_manager()
    jobs = {f"c{number}": wanted for number, wanted in enumerate(COMBINATIONS)}
    for name, (mode, intranet, gloo, policy) in jobs.items():
        wanted = manifest(name, *MODES[mode], intranet=intranet, withGloo=gloo, cleanPodPolicy=policy)
        await world.submit(wanted)
    for name, (mode, intranet, _, _) in jobs.items():
        job = await world.phase(name, "Completed", "Failed")
        assert (job.status.phase, job.status.mode) == ("Completed", mode), (name, jobs[name])
        assert bool(job.status.host_port) == intranet.startswith("Host")
    for name, (mode, _, _, policy) in jobs.items():
        servers, workers = MODES[mode]
        if not kept(policy):
            for rank in range(workers):
                await world.gone(PODS, f"{name}-worker-{rank}")
        for rank in range(servers):
            if kept(policy):
                stopped = await world.pod_until(f"{name}-ps-{rank}", lambda pod: pod.status.phase == "Failed")
                assert stopped.status.reason == "DeadlineExceeded"
            else:
                await world.gone(PODS, f"{name}-ps-{rank}")
    left = Counter(name.split("-")[0] for name in await world.pods())
    assert left == {name: sum(MODES[mode]) for name, (mode, _, _, policy) in jobs.items() if kept(policy)}
    services = await world.cluster.list(SERVICES, Scope(world.namespace))
    served = {
        name for name, (_, intranet, _, policy) in jobs.items() if intranet == "Service" and kept(policy)
    }
    assert {service.metadata.name.split("-")[0] for service in services.items} == served
    TALLY["combinations of mode, intranet, withGloo and cleanPodPolicy"] += len(jobs)


async def test_no_two_host_jobs_share_a_port_however_quickly_they_come(world: World, node: FakeNode) -> None:
    node.script(lambda _: Behaviour(runs_for_ever=True))
    world.start_manager()
    names = [f"host-{number}" for number in range(12)]
    for name in names:
        await world.submit(manifest(name, 1, 2, intranet="Host"))
    jobs = [await world.phase(name, "Running", "Failed") for name in names]
    blocks = [port for job in jobs for port in range(job.status.host_port, job.status.host_port + 60)]
    assert len(set(blocks)) == len(names) * 60
    pods = await world.pods()
    assert {pod.status.pod_ip for pod in pods.values()} == {"198.18.0.2"}
    told = [variables["paddle"] for variables in node.environment.values()]
    assert len({(one["POD_IP"], one["PADDLE_PORT"]) for one in told}) == len(pods)

    await world.delete(PADDLE_JOBS, jobs[3])
    await world.gone(PADDLE_JOBS, "host-3")
    await world.submit(manifest("next", 1, 2, intranet="Host"))
    job = await world.phase("next", "Running")
    assert job.status.host_port == jobs[3].status.host_port


async def test_service_mode_costs_a_pod_and_a_service_for_each_worker(world: World, node: FakeNode) -> None:
    workers = 64
    world.start_manager()
    await world.submit(manifest("resnet", 0, workers, intranet="Service", cleanPodPolicy="Never"))
    await world.phase("resnet", "Completed")
    world.stop_managers()
    counts = tally(world.requests())
    print("\nrequests of 1x64 in Service mode:", dict(sorted(counts.items())), "in all", counts.total())
    assert (counts["create pods"], counts["create services"], counts["patch pods"]) == (workers, workers, 0)
    assert counts.total() <= 2 * workers + 15


async def test_servers_are_made_before_workers(world: World, node: FakeNode) -> None:
    world.start_manager()
    node.script(as_paddle_does)
    await world.submit(manifest("resnet", 8, 8, cleanPodPolicy="Never"))
    await world.phase("resnet", "Completed")
    made = [request.name for request in world.requests() if str(request) == "create pods"]
    assert max(made.index(name) for name in made if "-ps-" in name) < min(
        made.index(name) for name in made if "-worker-" in name
    )


@pytest.mark.parametrize(("code", "reason"), [(0, "ServerEnded"), (3, "PodFailed")])
async def test_a_server_that_ends_before_the_workers_fails_the_job(
    world: World, node: FakeNode, code: int, reason: str
) -> None:
    node.script(lambda _: Behaviour(runs_for_ever=True))
    world.start_manager()
    await world.submit(manifest("resnet", 2, 2))
    await world.phase("resnet", "Running")
    node.finish(world.namespace, "resnet-ps-1", code)
    job = await world.phase("resnet", "Completed", "Failed")
    failed = find_condition(job.status.conditions, "Failed")
    assert failed is not None
    assert (failed.reason, job.status.failure and job.status.failure.pod) == (reason, "resnet-ps-1")
    for survivor in ("resnet-ps-0", "resnet-worker-0", "resnet-worker-1"):
        await world.pod_until(survivor, _was_stopped)


def _was_stopped(pod: Pod) -> bool:
    return pod.status.reason == "DeadlineExceeded"


async def test_a_manager_killed_at_any_moment_keeps_a_host_jobs_ports(world: World, node: FakeNode) -> None:
    node.script(lambda _: Behaviour(runs_for_ever=True))
    manager = world.start_manager()
    await world.submit(manifest("resnet", 2, 2, intranet="Host"))
    job = await world.job_until("resnet", lambda seen: bool(seen.status.host_port))
    world.kill(manager)
    world.start_manager()
    again: PaddleJob = await world.phase("resnet", "Running")
    assert again.status.host_port == job.status.host_port
    told = {variables["paddle"]["PADDLE_PSERVERS_IP_PORT_LIST"] for variables in node.environment.values()}
    first = job.status.host_port
    assert told == {f"198.18.0.2:{first},198.18.0.2:{first + 20}"}


async def test_the_init_container_is_let_into_a_restricted_namespace(world: World) -> None:
    path = f"/api/v1/namespaces/{world.namespace}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    await world.transport.request(
        "PATCH",
        path,
        body=msgspec.json.encode({"metadata": {"labels": labels}}),
        content_type="application/merge-patch+json",
    )
    modest = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    world.start_manager(options=("--initImage=alpine:3.10",))
    pod = make.template(make.container(securityContext=modest))
    await world.submit(make.manifest(pod=pod, intranet="Service"))
    await world.condition("resnet", "Created", "True")
    assert len(await world.pods()) == 2
