"""What befalls a cluster while real training runs on it: nothing is lost, done twice or counted wrong.

What each fault came to is printed at the end of the run. SEED=1 repeats a run of what draws lots.
"""

import asyncio
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import training_jobs
from audit import Request, tally
from fault_proxy import Close, Fault, FaultProxy, some
from real_cluster import Cluster, kill, processes_of
from training_jobs import (
    DISRUPTED_ONCE,
    FAILED_ONCE,
    MANY_STEPS,
    TRAINER,
    PodDiary,
    Training,
    checkpoint,
    completed,
    of_all_modes,
    servers,
    single,
)
from world import OPERATOR, OPERATOR_RULES, PATIENCE_SECONDS, SECOND_OPERATOR, World

from testbed import images
from testbed.components import API_SERVER, ETCD
from testbed.controlplane import ControlPlane

pytestmark = pytest.mark.node

EVERYWHERE = "everywhere"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
KILLS = 20
OUTAGE_SECONDS = 5
BAD_SECONDS = 60.0
BAD_DAY = [
    Fault(answer=500),
    Fault(answer=503),
    Fault(answer=429, retry_after="1"),
    Fault(close=Close.BEFORE),
    Fault(close=Close.AFTER),
]


@pytest.fixture(autouse=True, scope="module")
def _paddle(apiserver: ControlPlane) -> None:
    apiserver.node.import_image(images.ensure(images.PADDLE))
    training_jobs.learn_here()


def lots() -> tuple[int, random.Random]:
    seed = int(os.environ.get("SEED", str(time.time_ns() % 10**6)))
    print(f"SEED={seed}")
    return seed, random.Random(seed)


async def learning(cluster: Cluster, training: Training) -> None:
    """In the middle of it."""
    await cluster.world.phase(training.name, "Running")
    await cluster.said(training.workers[0], "step=100 ")


def is_calm(world: World, trainings: list[Training], *, interruptions: int, operators: int = 1) -> str:
    """No hot loop: requests are a few for each pod and try, and for each interruption; so are lines of log.

    The log also tells of what never came to the server.
    """
    requests = tally(world.requests(OPERATOR)) + tally(world.requests(SECOND_OPERATOR))
    lines = sum(len(log.read_bytes().splitlines()) for log in world.logs)
    pods = sum(len(one.pods) * (one.due.attempt + 1) for one in trainings)
    tries = sum(one.due.attempt + 1 for one in trainings)
    most = operators * (6 * pods + 25 * tries) + 10 * interruptions
    assert requests.total() <= most, (most, requests)
    assert lines <= most, (most, world.logs)
    return (
        f"{len(trainings)} jobs right; {requests.total()} requests and {lines} lines of log, at most {most}"
    )


async def test_an_operator_that_is_killed_twenty_times(cluster: Cluster, outcomes: dict[str, str]) -> None:
    seed, chance = lots()
    world, trainings = cluster.world, of_all_modes(cluster.folder)
    async with PodDiary(world) as diary:
        manager = world.start_manager()
        for count in range(KILLS):
            if count % 4 == 0 and count // 4 < len(trainings):
                cluster.apply(trainings[count // 4].manifest)
            await asyncio.sleep(chance.uniform(0, 4))
            world.kill(manager)
            manager = world.start_manager()
        await completed(cluster, trainings)
    diary.check(trainings)
    told = is_calm(world, trainings, interruptions=KILLS)
    outcomes[f"fault: operator killed {KILLS} times"] = f"{told}; SEED={seed}"


@pytest.mark.parametrize("component", [API_SERVER, ETCD])
@pytest.mark.alone
async def test_a_control_plane_without(cluster: Cluster, outcomes: dict[str, str], component: str) -> None:
    """One job fails, one ends and one goes on while nobody can be told."""
    world, fails = cluster.world, checkpoint(cluster.folder, due=FAILED_ONCE, steps=MANY_STEPS)
    trainings = [fails, servers(), single()]
    manager = world.start_manager()
    async with PodDiary(world) as diary:
        cluster.apply(fails.manifest)
        await learning(cluster, fails)
        cluster.apply(*(one.manifest for one in trainings[1:]))
        await world.phase("single", "Running")
        victim = (await world.pods())[fails.workers[1]]
        with world.plane.without(component):
            kill(victim, TRAINER)
            await asyncio.sleep(OUTAGE_SECONDS)
        await completed(cluster, trainings)
    diary.check(trainings)
    assert manager.poll() is None
    told = is_calm(world, trainings, interruptions=1)
    outcomes[f"fault: no {component}"] = told


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds():  # noqa: ASYNC110 (nothing tells)
            await asyncio.sleep(0.1)


async def test_two_operators_that_both_act(cluster: Cluster, outcomes: dict[str, str]) -> None:
    world, trainings = cluster.world, of_all_modes(cluster.folder)
    async with PodDiary(world) as diary:
        for user in (OPERATOR, SECOND_OPERATOR):
            world.start_manager(user=user)
        # Else the first has made everything before the second looks.
        await until(lambda: all('"ready"' in log.read_text() for log in world.logs))
        cluster.apply(*(one.manifest for one in trainings))
        await completed(cluster, trainings)
    diary.check(trainings)
    made = [len(training_jobs.creates_of_pods(world, user)) for user in (OPERATOR, SECOND_OPERATOR)]
    assert all(made), "each has tried"
    told = is_calm(world, trainings, interruptions=0, operators=2)
    outcomes["fault: two operators act"] = f"{told}; creates {made[0]}+{made[1]}"


async def test_a_leader_that_is_stopped_past_its_lease(cluster: Cluster, outcomes: dict[str, str]) -> None:
    """It wakes up while another one leads, and does nothing more; until that one hands over."""
    world, trainings = cluster.world, of_all_modes(cluster.folder)
    elect = ["--leader-elect", f"--lease-namespace={world.namespace}"]
    async with PodDiary(world) as diary:
        first = world.start_manager(options=elect)
        leader = await world.leader()
        second = world.start_manager(user=SECOND_OPERATOR, options=elect)
        cluster.apply(*(one.manifest for one in trainings))
        await world.pod_until("checkpoint-worker-0", lambda _: True)
        first.send_signal(signal.SIGSTOP)
        new_leader = await world.leader(other_than=leader)
        trainings.append(single("killed", due=FAILED_ONCE, backoffLimit=1))
        cluster.apply(trainings[-1].manifest)
        await world.phase("killed", "Running")
        # A restart is due, and for a moment nobody but the old one could write it down.
        second.send_signal(signal.SIGSTOP)
        kill((await world.pods())["killed-worker-0"], "python train_single.py")
        await world.pod_until("killed-worker-0", lambda pod: pod.status.phase == "Failed")
        first.send_signal(signal.SIGCONT)
        await logged(world.logs[0], "leads no longer")
        second.send_signal(signal.SIGCONT)
        await completed(cluster, trainings)
        world.kill(second, signal.SIGTERM)
        await world.leader(other_than=new_leader)
        trainings.append(single("after"))
        cluster.apply(trainings[-1].manifest)
        await completed(cluster, trainings[-1:])
    diary.check(trainings)
    of_first, of_second = accepted_writes(world, OPERATOR), accepted_writes(world, SECOND_OPERATOR)
    began, ended = of_second[0].at, of_second[-1].at
    assert [one for one in of_first if began < one.at < ended] == []
    assert of_first[-1].at > ended
    told = f"writes {len(of_first)}+{len(of_second)}, of one at a time"
    outcomes["fault: leader stopped"] = f"{len(trainings)} jobs right; {told}"


async def logged(log: Path, words: str) -> None:
    """Nobody tells when a file grows."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while words not in log.read_text():  # noqa: ASYNC110, ASYNC240
            await asyncio.sleep(0.05)


def accepted_writes(world: World, user: str) -> list[Request]:
    """In their order."""
    writes = [one for one in world.requests(user) if one.is_accepted_write]
    return sorted(writes, key=lambda one: one.at)


@pytest.mark.alone
async def test_a_node_that_loses_its_power(cluster: Cluster, outcomes: dict[str, str]) -> None:
    world = cluster.world
    once = {"maxDisruptions": 1}
    trainings = [
        checkpoint(cluster.folder, due=DISRUPTED_ONCE, steps=MANY_STEPS, runPolicy=once),
        servers(due=DISRUPTED_ONCE),
        single(due=DISRUPTED_ONCE),
    ]
    manager = world.start_manager()
    async with PodDiary(world) as diary:
        cluster.apply(trainings[0].manifest)
        await learning(cluster, trainings[0])
        cluster.apply(*(one.manifest for one in trainings[1:]))
        await world.phase("servers", "Running")
        await world.phase("single", "Running")
        pods = (await world.pods()).values()
        with world.plane.node.without_power():
            # They were killed; the kernel may still be at it.
            await until(lambda: not any(processes_of(pod) for pod in pods))
            await asyncio.sleep(OUTAGE_SECONDS)
        await completed(cluster, trainings)
    diary.check(trainings)
    assert manager.poll() is None
    outcomes["fault: node without power"] = is_calm(world, trainings, interruptions=1)


async def test_a_server_that_is_slow_and_fails_for_a_minute(
    cluster: Cluster, outcomes: dict[str, str]
) -> None:
    seed, _ = lots()
    world, trainings = cluster.world, of_all_modes(cluster.folder)
    slow = Fault(delay_seconds=0.2)
    rule = some(seed, 0.05, BAD_DAY, otherwise=slow)
    async with FaultProxy(world.plane.kubeconfig_for(OPERATOR), rule) as proxy, PodDiary(world) as diary:
        began = asyncio.get_running_loop().time()
        manager = world.start_manager(options=[f"--kubeconfig={proxy.kubeconfig}"])
        cluster.apply(*(one.manifest for one in trainings))
        while asyncio.get_running_loop().time() < began + BAD_SECONDS:
            another = single(f"single-{len(trainings)}")
            trainings.append(another)
            cluster.apply(another.manifest)
            await world.phase(another.name, "Completed", "Failed")
        proxy.rule = lambda _: None
        await completed(cluster, trainings)
        diary.check(trainings)
        assert manager.poll() is None
        slow_ones = proxy.met.pop(str(slow))
        told = is_calm(world, trainings, interruptions=proxy.met.total())
    met = ", ".join(f"{fault} {count}" for fault, count in sorted(proxy.met.items()))
    outcomes["fault: server slow and failing"] = f"{told}; slow {slow_ones}, {met}; SEED={seed}"


async def test_a_namespace_that_is_deleted(cluster: Cluster, outcomes: dict[str, str]) -> None:
    """Its jobs end without a trace; those of another namespace are served as before."""
    world, lasting = cluster.world, [checkpoint(cluster.folder), single()]
    doomed = Cluster(World(world.plane, f"{world.namespace}-doomed", world.transport))
    await world.post("/api/v1/namespaces", {"metadata": {"name": doomed.world.namespace}})
    await allow_everywhere(world)
    try:
        manager = world.start_manager(namespace="")
        async with PodDiary(world) as diary:
            cluster.apply(lasting[0].manifest)
            ends = checkpoint(doomed.folder)
            doomed.apply(ends.manifest, servers().manifest)
            await learning(doomed, ends)
            cluster.kubectl("delete", "namespace", doomed.world.namespace, "--timeout=60s")
            before = tally(doomed.world.requests())
            cluster.apply(lasting[1].manifest)
            await completed(cluster, lasting)
        diary.check(lasting)
        assert manager.poll() is None
        assert tally(doomed.world.requests()) == before, "nobody asks for what is gone"
        assert before.total() <= 100, before
    finally:
        # Its binding then grants nothing to anybody.
        cluster.kubectl("delete", "clusterrole", EVERYWHERE)
    told = f"gone after {before.total()} requests"
    outcomes["fault: namespace deleted"] = f"{told}; {len(lasting)} jobs of another one right"


async def allow_everywhere(world: World) -> None:
    await world.post(f"{RBAC}/clusterroles", {"metadata": {"name": EVERYWHERE}, "rules": OPERATOR_RULES})
    binding = {
        "metadata": {"name": EVERYWHERE},
        "subjects": [{"kind": "User", "name": OPERATOR}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": EVERYWHERE},
    }
    await world.post(f"{RBAC}/clusterrolebindings", binding)
