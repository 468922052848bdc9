"""The node of a laptop: pods become processes, and what happens to them is told as a kubelet tells it."""

import asyncio
import time
from collections.abc import AsyncIterator
from functools import partial
from itertools import groupby
from pathlib import Path

import pytest
from local.bench import (
    PEERS,
    POLITE,
    STUBBORN,
    TEAM,
    Laptop,
    is_missing,
    is_waiting,
    only,
    powered,
    remade,
    until,
)

from paddle_operator.api.core import ENDED_PHASES
from paddle_operator.api.meta import Key
from paddle_operator.api.names import LABEL_ATTEMPT
from paddle_operator.api.resources import CONFIG_MAPS, Target
from paddle_operator.local import pod_life
from paddle_operator.local.node import NODE
from paddle_operator.local.process import can_isolate


@pytest.fixture
async def laptop(tmp_path: Path) -> AsyncIterator[Laptop]:
    async with powered(Laptop(tmp_path)) as laptop:
        yield laptop


@pytest.fixture
async def apart(tmp_path: Path) -> AsyncIterator[Laptop]:
    """One whose containers have namespaces."""
    probe = tmp_path / "probe"
    probe.mkdir()
    if not await can_isolate(probe):
        pytest.skip("this kernel gives us no namespaces")
    async with powered(Laptop(tmp_path, isolates=True)) as laptop:
        yield laptop


# From birth to end.


async def test_a_pod_that_ends_well(laptop: Laptop) -> None:
    pod = await laptop.run("echo hello; echo world >&2")
    done = await laptop.until_phase(pod, "Succeeded")
    assert (done.spec.node_name, done.status.pod_ip) == (NODE, "127.7.1.1")
    assert [one.ip for one in done.status.pod_ips] == ["127.7.1.1"]
    ended = only(done).state.terminated
    assert ended is not None
    assert (ended.exit_code, ended.reason, only(done).restart_count) == (0, "Completed", 0)
    assert laptop.log(pod) == "hello\nworld\n"


@pytest.mark.parametrize(
    ("script", "code", "phases"),
    [
        ("exit 0", 0, ["Pending", "Running", "Succeeded"]),
        ("exit 3", 3, ["Pending", "Running", "Failed"]),
        ("kill -KILL $$$$", 137, ["Pending", "Running", "Failed"]),
    ],
)
async def test_phases_in_their_order(laptop: Laptop, script: str, code: int, phases: list[str]) -> None:
    pod = await laptop.run(script)
    states = await laptop.seen(pod, lambda one: one is not None and one.status.phase == phases[-1])
    seen = [phase for phase, _ in groupby(state.status.phase for state in states if state is not None)]
    assert seen == phases
    assert laptop.stored(pod)["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == code


async def test_a_command_that_is_not_there(laptop: Laptop) -> None:
    pod = await laptop.create({"name": "paddle", "image": "any", "command": ["no-such-program"]})
    failed = await laptop.until_phase(pod, "Failed")
    ended = only(failed).state.terminated
    assert ended is not None
    assert (ended.exit_code, ended.reason) == (127, "StartError")
    assert laptop.log(pod) == "no-such-program: cannot be run: No such file or directory: no-such-program\n"


async def test_what_a_container_is_told(laptop: Laptop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_THE_USER", "kept")
    monkeypatch.setenv("PADDLE_TRAINER_ID", "9")
    env = [
        {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "URL", "value": "http://$(POD_IP)"},
    ]
    script = "echo $0 $URL $OF_THE_USER [$PADDLE_TRAINER_ID] $(pwd)"
    command = ["sh", "-c", script.replace("$(pwd)", "$$(pwd)"), "$(URL)/$(NOBODY)"]
    pod = await laptop.create({"name": "paddle", "image": "any", "command": command, "env": env})
    await laptop.until_phase(pod, "Succeeded")
    url = "http://127.7.1.1"
    assert laptop.log(pod) == f"{url}/$(NOBODY) {url} kept [] {laptop.folder}\n"


async def test_every_pod_has_an_address_of_its_own(laptop: Laptop) -> None:
    pods = [await laptop.run("sleep 100; :", name=f"pod-{number}") for number in range(3)]
    running = [await laptop.until_phase(pod, "Running") for pod in pods]
    assert [one.status.pod_ip for one in running] == ["127.7.1.1", "127.7.1.2", "127.7.1.3"]
    assert all(only(one).ready for one in running)


async def test_a_namesake_is_another_pod(laptop: Laptop) -> None:
    first = await laptop.run(POLITE)
    await laptop.until_ready(first)
    await laptop.memory.delete(first)
    await laptop.until_gone(first)
    second = await laptop.run("exit 0")
    assert only(await laptop.until_phase(second, "Succeeded")).restart_count == 0
    assert laptop.stored(second)["metadata"]["uid"] == second.uid != first.uid


def holds(file: Path, text: str) -> bool:
    return text in file.read_text()


async def test_the_log_goes_on_under_the_same_name_and_says_where_each_try_begins(laptop: Laptop) -> None:
    for attempt, script in enumerate(("printf 'no end'; exit 3", "exit 3", "echo third")):
        pod = await remade(laptop, script, attempt)
        await laptop.until(pod, lambda one: one.status.phase in ENDED_PHASES)
        await laptop.memory.delete(pod)
        await laptop.until_gone(pod)
    assert laptop.log(pod) == "no end\n[try 1 begins]\n[try 2 begins]\nthird\n"


async def test_the_last_words_are_those_of_this_run_alone(laptop: Laptop) -> None:
    """The operator looks for Paddle's words in them: those of an earlier try would mislead it."""
    for attempt, script in enumerate(("echo old; exit 3", "echo new; exit 3")):
        pod = await remade(laptop, script, attempt)
        end = only(await laptop.until_phase(pod, "Failed")).state.terminated
        await laptop.memory.delete(pod)
    assert end is not None
    assert end.message == "new\n"


async def test_a_pod_that_is_made_anew_has_a_new_address_and_nothing_of_the_old_one(apart: Laptop) -> None:
    mount = {"name": "own", "mountPath": "/mnt"}
    container = apart.container("ls /mnt; touch /mnt/file; uname -n", volumeMounts=[mount])
    addresses = []
    for attempt in range(2):
        labels = {LABEL_ATTEMPT: str(attempt)}
        pod = await apart.create(container, labels=labels, volumes=[{"name": "own", "emptyDir": {}}])
        addresses.append((await apart.until_phase(pod, "Succeeded")).status.pod_ip)
        await apart.memory.delete(pod)
        await until(partial(is_missing, apart.folder / "pods" / pod.uid))
    assert addresses == ["127.7.1.1", "127.7.1.2"]
    assert apart.log(pod) == "mnist-worker-0\n[try 1 begins]\nmnist-worker-0\n"


async def test_a_name_leads_to_the_new_pod_and_to_nobody_in_between(apart: Laptop) -> None:
    await apart.create_service("mnist-worker-1")
    looker = await apart.run("sleep 100")
    await apart.until_phase(looker, "Running")
    hosts = apart.folder / "pods" / looker.uid / "hosts"
    for attempt in range(2):
        pod = await apart.run("sleep 100", name="mnist-worker-1", labels={LABEL_ATTEMPT: str(attempt)})
        address = f"127.7.1.{attempt + 2}"
        await until(partial(holds, hosts, f"{address} mnist-worker-1"))
        await apart.memory.delete(pod)
        await until(lambda: not holds(hosts, "mnist-worker-1"))


async def test_of_a_pod_that_is_deleted_by_force_nothing_stays_and_its_namesake_does(laptop: Laptop) -> None:
    first = await laptop.run(STUBBORN, terminationGracePeriodSeconds=600)
    await laptop.until_ready(first)
    await laptop.memory.delete(first)
    await laptop.until_it_says(first, "no")
    await laptop.memory.delete(first, force=True)
    await until(lambda: laptop.processes() == [])
    second = await remade(laptop, "echo again; sleep 100", 1)
    await laptop.until_it_says(second, "again")
    assert laptop.stored(second)["metadata"]["uid"] == second.uid


async def test_of_a_pod_that_is_deleted_by_force_without_warning_nothing_stays(laptop: Laptop) -> None:
    pod = await laptop.run(STUBBORN)
    await laptop.until_ready(pod)
    await laptop.memory.delete(pod, force=True)
    await until(lambda: laptop.processes() == [])


async def test_a_config_map_that_is_made_anew_is_what_new_pods_read(laptop: Laptop) -> None:
    container = laptop.container("echo $WORLD", envFrom=[PEERS])
    for attempt, world in enumerate("12"):
        pod = await laptop.create(container, labels={LABEL_ATTEMPT: str(attempt)})
        await laptop.until(pod, is_waiting)
        await laptop.create_map("peers", WORLD=world)
        await laptop.until_phase(pod, "Succeeded")
        await laptop.memory.delete(pod)
        await laptop.memory.delete(Target(CONFIG_MAPS, Key(TEAM, "peers"), uid=""))
    assert laptop.log(pod) == "1\n[try 1 begins]\n2\n"


# What it waits for.


async def test_a_missing_config_map_holds_the_container_back(laptop: Laptop) -> None:
    container = laptop.container("echo $WORLD", envFrom=[PEERS])
    pod = await laptop.create(container)
    held = await laptop.until(pod, is_waiting)
    waits = only(held).state.waiting
    assert waits is not None
    assert (held.status.phase, waits.reason) == ("Pending", "CreateContainerConfigError")
    assert waits.message == 'configmap "peers" not found'
    assert held.status.pod_ip == "127.7.1.1"
    await laptop.create_map("others", WORLD="no")
    await asyncio.sleep(0.05)
    assert "waiting" in laptop.stored(pod)["status"]["containerStatuses"][0]["state"]
    await laptop.create_map("peers", WORLD="2 workers")
    await laptop.until_phase(pod, "Succeeded")
    assert laptop.log(pod) == "2 workers\n"


async def test_a_pod_that_waits_is_deleted_at_once(laptop: Laptop) -> None:
    container = laptop.container("true", envFrom=[PEERS])
    pod = await laptop.create(container, terminationGracePeriodSeconds=30)
    await laptop.until(pod, is_waiting)
    await laptop.memory.delete(pod)
    assert await laptop.until_gone(pod) < 5


# Starting again.


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_life, "FIRST_PAUSE", 0.02)


def flaky(file: Path, failures: int) -> str:
    """Fails so many times, then ends well."""
    return f"echo try >> {file}; n=$(wc -l < {file}); echo try $n; [ $n -gt {failures} ] || exit 3"


async def test_on_failure_a_container_is_started_again(laptop: Laptop, hurry: None, tmp_path: Path) -> None:
    pod = await laptop.run(flaky(tmp_path / "tries", 3), restartPolicy="OnFailure")
    crashed = await laptop.until(pod, is_waiting)
    waits = only(crashed).state.waiting
    assert waits is not None
    assert (crashed.status.phase, waits.reason, only(crashed).ready) == ("Running", "CrashLoopBackOff", False)
    states = await laptop.seen(pod, lambda one: one is not None and one.status.phase == "Succeeded")
    counts = [one.restart_count for state in states if state for one in state.status.container_statuses]
    assert [count for count, _ in groupby(counts)] == [0, 1, 2, 3]
    before = laptop.stored(pod)["status"]["containerStatuses"][0]["lastState"]["terminated"]
    assert (before["exitCode"], before["reason"]) == (3, "Error")
    first, *later = laptop.log(pod).splitlines()
    assert first == "try 1"
    assert later == [line for n in (1, 2, 3) for line in (f"[restart in place {n} begins]", f"try {n + 1}")]


async def test_a_pause_can_be_cut_short_by_deletion(laptop: Laptop, tmp_path: Path) -> None:
    """The second restart comes after ten seconds."""
    pod = await laptop.run("exit 3", restartPolicy="OnFailure", terminationGracePeriodSeconds=30)
    await laptop.until(pod, lambda one: is_waiting(one) and only(one).restart_count == 1)
    await laptop.memory.delete(pod)
    assert await laptop.until_gone(pod) < 5


async def test_never_means_never(laptop: Laptop, hurry: None, tmp_path: Path) -> None:
    pod = await laptop.run(flaky(tmp_path / "tries", 1))
    assert only(await laptop.until_phase(pod, "Failed")).restart_count == 0
    await asyncio.sleep(0.1)
    assert laptop.log(pod) == "try 1\n"


# Several containers.


async def test_init_containers_run_first_and_in_their_order(laptop: Laptop, tmp_path: Path) -> None:
    file = tmp_path / "order"
    early = [laptop.container(f"sleep 0.05; echo {name} >> {file}", name=name) for name in ("one", "two")]
    pod = await laptop.create(laptop.container(f"echo main >> {file}"), initContainers=early)
    done = await laptop.until_phase(pod, "Succeeded")
    assert file.read_text() == "one\ntwo\nmain\n"
    assert [one.name for one in done.status.init_container_statuses] == ["one", "two"]


async def test_an_init_container_that_fails_fails_the_pod(laptop: Laptop) -> None:
    early = [laptop.container("exit 4", name="one"), laptop.container("echo no", name="two")]
    pod = await laptop.create(laptop.container("echo no"), initContainers=early)
    failed = await laptop.until_phase(pod, "Failed")
    first, second = failed.status.init_container_statuses
    assert first.state.terminated is not None
    assert first.state.terminated.exit_code == 4
    assert not second.has_started
    assert not only(failed).has_started
    await asyncio.sleep(0.05)
    assert (laptop.log(pod), laptop.log(pod, "two")) == ("", "")


async def test_an_init_container_is_started_again_on_failure(
    laptop: Laptop, hurry: None, tmp_path: Path
) -> None:
    early = [laptop.container(flaky(tmp_path / "tries", 1), name="one")]
    pod = await laptop.create(laptop.container("echo main"), initContainers=early, restartPolicy="OnFailure")
    done = await laptop.until_phase(pod, "Succeeded")
    assert done.status.init_container_statuses[0].restart_count == 1
    assert laptop.log(pod) == "main\n"


async def test_two_containers_run_at_once_and_both_count(laptop: Laptop, tmp_path: Path) -> None:
    """Each waits for a sign of the other."""
    here, there = tmp_path / "here", tmp_path / "there"
    pod = await laptop.create(
        laptop.container(f": > {here}; until [ -e {there} ]; do sleep 0.02; done; echo one"),
        laptop.container(
            f": > {there}; until [ -e {here} ]; do sleep 0.02; done; echo two; exit 5", name="b"
        ),
    )
    failed = await laptop.until_phase(pod, "Failed")
    codes = [
        one.state.terminated.exit_code for one in failed.status.container_statuses if one.state.terminated
    ]
    assert codes == [0, 5]
    assert (laptop.log(pod), laptop.log(pod, "b")) == ("one\n", "two\n")


# Being stopped.


async def test_deletion_asks_first(laptop: Laptop) -> None:
    pod = await laptop.run(POLITE, terminationGracePeriodSeconds=30)
    await laptop.until_ready(pod)
    await laptop.memory.delete(pod)
    assert await laptop.until_gone(pod) < 10
    assert laptop.log(pod) == "ready\nbye\n"
    assert laptop.processes() == []


async def test_after_the_grace_period_it_kills(laptop: Laptop) -> None:
    pod = await laptop.run(STUBBORN, terminationGracePeriodSeconds=1)
    await laptop.until_ready(pod)
    await laptop.memory.delete(pod)
    assert 0.9 < await laptop.until_gone(pod) < 10
    assert laptop.log(pod) == "ready\nno\n"
    assert laptop.processes() == []


async def test_a_deadline_stops_a_running_pod_and_keeps_it(laptop: Laptop) -> None:
    """So does the operator stop the pods of a job that has failed, and keeps their logs."""
    pod = await laptop.run(POLITE)
    await laptop.until_ready(pod)
    await laptop.expire(pod)
    failed = await laptop.until(pod, lambda one: one.status.reason == "DeadlineExceeded")
    ended = only(failed).state.terminated
    assert ended is not None
    assert (failed.status.phase, ended.exit_code) == ("Failed", 7)
    assert (laptop.log(pod), laptop.processes()) == ("ready\nbye\n", [])
    await laptop.memory.delete(pod)
    await laptop.until_gone(pod)


async def test_a_deadline_is_awaited(laptop: Laptop) -> None:
    pod = await laptop.run("sleep 100", activeDeadlineSeconds=1)
    begun = time.monotonic()
    await laptop.until(pod, lambda one: one.status.reason == "DeadlineExceeded")
    assert 0.9 < time.monotonic() - begun < 10


async def test_a_deadline_is_told_together_with_the_failure(laptop: Laptop) -> None:
    pod = await laptop.run(POLITE)
    await laptop.until_ready(pod)
    await laptop.expire(pod)
    assert (await laptop.until_phase(pod, "Failed")).status.reason == "DeadlineExceeded"


async def test_a_deadline_ends_a_pod_that_waits(laptop: Laptop) -> None:
    pod = await laptop.create(laptop.container("true", envFrom=[PEERS]))
    await laptop.until(pod, is_waiting)
    await laptop.expire(pod)
    assert (await laptop.until_phase(pod, "Failed")).status.reason == "DeadlineExceeded"


async def test_a_deadline_is_no_matter_to_a_pod_that_has_ended(laptop: Laptop) -> None:
    pod = await laptop.run("exit 0")
    await laptop.until_phase(pod, "Succeeded")
    await laptop.expire(pod)
    await asyncio.sleep(0.1)
    assert laptop.stored(pod)["status"]["phase"] == "Succeeded"


async def test_a_pod_can_be_deleted_while_its_deadline_stops_it(laptop: Laptop) -> None:
    pod = await laptop.run(STUBBORN)
    await laptop.until_ready(pod)
    await laptop.expire(pod)
    await laptop.until_it_says(pod, "no")
    await laptop.memory.delete(pod)
    await laptop.until_gone(pod)


async def test_with_the_job_go_its_pods_and_its_config_map(laptop: Laptop) -> None:
    await laptop.create_map("peers", WORLD="2")
    pods = [await laptop.run(POLITE, name=f"pod-{number}") for number in range(2)]
    done = await laptop.run("true", name="done")
    await laptop.until_phase(done, "Succeeded")
    for pod in pods:
        await laptop.until_ready(pod)
    await laptop.memory.delete(laptop.job)
    for pod in (*pods, done):
        await laptop.until_gone(pod)
    assert [laptop.log(pod) for pod in pods] == ["ready\nbye\n"] * 2
    assert laptop.memory.manifest(CONFIG_MAPS, Key(TEAM, "peers")) is None
    assert laptop.processes() == []


async def test_a_node_that_is_stopped_leaves_no_process(tmp_path: Path) -> None:
    """Whatever its pods are at: running, not heeding SIGTERM, being deleted, waiting, pausing."""
    async with powered(Laptop(tmp_path)) as laptop:
        stubborn = [await laptop.run(STUBBORN, name=f"pod-{number}") for number in range(2)]
        waits = await laptop.create(laptop.container("true", envFrom=[PEERS]), name="waits")
        pauses = await laptop.run("exit 3", name="pauses", restartPolicy="OnFailure")
        for pod in stubborn:
            await laptop.until_ready(pod)
        for pod in (waits, pauses):
            await laptop.until(pod, is_waiting)
        await laptop.memory.delete(stubborn[0])
        await laptop.until_it_says(stubborn[0], "no")
        assert len(laptop.processes()) >= 2
        begun = time.monotonic()
    assert time.monotonic() - begun < 5
    assert laptop.processes() == []


# With namespaces.


async def test_containers_of_a_pod_share_its_volumes_and_its_name(apart: Laptop) -> None:
    await apart.create_map("conf", answer="42")
    mounts = [
        {"name": "shared", "mountPath": "/no-such-folder-xyz/shared"},
        {"name": "conf", "mountPath": "/no-such-folder-xyz/conf"},
    ]
    early = apart.container("echo early > /no-such-folder-xyz/shared/word", name="one", volumeMounts=mounts)
    script = "cd /no-such-folder-xyz; cat shared/word conf/answer; uname -n; tail -n 1 /etc/hosts"
    pod = await apart.create(
        apart.container(script, volumeMounts=mounts),
        initContainers=[early],
        volumes=[{"name": "shared", "emptyDir": {}}, {"name": "conf", "configMap": {"name": "conf"}}],
    )
    await apart.until_phase(pod, "Succeeded")
    assert apart.log(pod) == "early\n42mnist-worker-0\n127.7.1.1 mnist-worker-0\n"


async def test_a_volume_whose_config_map_is_missing_holds_the_container_back(apart: Laptop) -> None:
    container = apart.container("cat /mnt/answer", volumeMounts=[{"name": "conf", "mountPath": "/mnt"}])
    pod = await apart.create(container, volumes=[{"name": "conf", "configMap": {"name": "conf"}}])
    waits = only(await apart.until(pod, is_waiting)).state.waiting
    assert waits is not None
    assert (waits.reason, waits.message) == ("ContainerCreating", 'configmap "conf" not found')
    await apart.create_map("conf", answer="42")
    await apart.until_phase(pod, "Succeeded")
    assert apart.log(pod) == "42"
