"""The fake node's parts that need no API server: pure functions, and the client against canned answers."""

import asyncio
from typing import Any

import msgspec
import pytest

from testbed.node_client import ApiClient, Follower, Server
from testbed.node_life import Addresses, Life
from testbed.node_pods import (
    Behaviour,
    ConfigError,
    Container,
    Downward,
    EnvFrom,
    EnvSource,
    EnvVar,
    FieldRef,
    MapKeyRef,
    MapRef,
    Meta,
    Pod,
    PodSpec,
    PodStatus,
    behaviour_of_annotations,
    environment,
    expand,
    fingerprint,
)


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("plain", "plain"),
        ("$(A)-$(B)", "1-2"),
        ("$(UNKNOWN)", "$(UNKNOWN)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$A $", "$A $"),
        ("$(A", "$(A"),
        ("$()", "$()"),
        ("$($(A)", "$($(A)"),
    ],
)
def test_references_expand_as_in_a_kubelet(text: str, expanded: str) -> None:
    assert expand(text, {"A": "1", "B": "2"}) == expanded


def a_pod(container: Container, **meta: Any) -> Pod:
    return Pod(Meta(name="job-worker-0", namespace="team", uid="u-1", **meta), PodSpec([container]))


def told(container: Container, maps: dict[str, dict[str, str]]) -> dict[str, str]:
    pod = a_pod(container, labels={"role": "worker"})
    return environment(container, Downward(pod, "fake-node", "198.18.1.1", Addresses.HOST), maps)


def of_field(path: str) -> EnvSource:
    return EnvSource(field_ref=FieldRef(path))


def of_key(key: str, *, optional: bool = False) -> EnvSource:
    return EnvSource(config_map_key_ref=MapKeyRef(key, "peers", optional))


FROM_PEERS = EnvFrom(config_map_ref=MapRef("peers"))


@pytest.mark.parametrize(
    ("env", "env_from", "expected"),
    [
        ([EnvVar("A", "1"), EnvVar("B", "$(A)2")], [], {"A": "1", "B": "12"}),
        ([EnvVar("B", "$(A)2"), EnvVar("A", "1")], [], {"A": "1", "B": "$(A)2"}),
        ([EnvVar("N", "5")], [FROM_PEERS], {"N": "5"}),
        ([EnvVar("M", "$(N)!")], [FROM_PEERS], {"N": "2", "M": "2!"}),
        ([], [EnvFrom("P_", MapRef("peers"))], {"P_N": "2"}),
        ([], [EnvFrom(config_map_ref=MapRef("absent", optional=True))], {}),
        ([], [EnvFrom()], {}),
        ([EnvVar("IP", value_from=of_field("status.podIP"))], [], {"IP": "198.18.1.1"}),
        ([EnvVar("ME", value_from=of_field("metadata.name"))], [], {"ME": "job-worker-0"}),
        ([EnvVar("NS", value_from=of_field("metadata.namespace"))], [], {"NS": "team"}),
        ([EnvVar("R", value_from=of_field("metadata.labels['role']"))], [], {"R": "worker"}),
        ([EnvVar("K", value_from=of_key("N"))], [], {"K": "2"}),
        ([EnvVar("K", value_from=of_key("X", optional=True))], [], {}),
        ([EnvVar("EMPTY")], [], {"EMPTY": ""}),
        ([EnvVar("SECRET", value_from=EnvSource())], [], {}),
    ],
)
def test_environment(env: list[EnvVar], env_from: list[EnvFrom], expected: dict[str, str]) -> None:
    assert told(Container("paddle", env=env, env_from=env_from), {"peers": {"N": "2"}}) == expected


@pytest.mark.parametrize(
    ("container", "message"),
    [
        (Container("c", env_from=[EnvFrom(config_map_ref=MapRef("job"))]), 'configmap "job" not found'),
        (
            Container("c", env=[EnvVar("K", value_from=of_key("X"))]),
            "couldn't find key X in ConfigMap team/peers",
        ),
        (
            Container("c", env=[EnvVar("K", value_from=EnvSource(config_map_key_ref=MapKeyRef("X", "job")))]),
            'configmap "job" not found',
        ),
    ],
)
def test_what_is_missing_is_said_in_the_kubelets_words(container: Container, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        told(container, {"peers": {"N": "2"}})
    assert str(caught.value) == message


def test_fingerprint_sees_changes_of_users_and_not_of_status() -> None:
    pod = a_pod(Container("paddle", "one"), resource_version="1")
    assert fingerprint(pod) == fingerprint(
        msgspec.structs.replace(
            pod,
            metadata=msgspec.structs.replace(pod.metadata, resource_version="2"),
            spec=msgspec.structs.replace(pod.spec, node_name="fake-node"),
            status=PodStatus("Pending", "198.18.1.1"),
        )
    )
    others = [
        a_pod(Container("paddle", "two")),
        a_pod(Container("paddle", "one"), annotations={"nudge": "1"}),
        a_pod(Container("paddle", "one"), labels={"attempt": "1"}),
        msgspec.structs.replace(pod, spec=PodSpec(pod.containers, active_deadline_seconds=1)),
    ]
    assert all(fingerprint(other) != fingerprint(pod) for other in others)


def test_annotations_script_a_pod() -> None:
    assert behaviour_of_annotations({"other": "1"}) == Behaviour()
    assert behaviour_of_annotations(
        {
            "fake-node/run-seconds": "inf",
            "fake-node/exit-code": "137",
            "fake-node/reason": "OOMKilled",
            "fake-node/start-seconds": "1.5",
            "fake-node/termination-seconds": "2",
        }
    ) == Behaviour(float("inf"), 137, "OOMKilled", 1.5, 2.0)


@pytest.mark.parametrize(
    ("behaviour", "grace", "end"),
    [
        (Behaviour(runs_for_ever=True), 30, (100.0, 143)),
        (Behaviour(runs_for_ever=True, termination_seconds=5), 30, (105.0, 143)),
        (Behaviour(runs_for_ever=True, termination_seconds=50), 30, (130.0, 137)),
        (Behaviour(run_seconds=3, exit_code=7, termination_seconds=50), 30, (103.0, 7)),
        (Behaviour(runs_for_ever=True, termination_exit_code=0), 30, (100.0, 0)),
    ],
)
def test_end_of_a_deleted_pod(behaviour: Behaviour, grace: int, end: tuple[float, int]) -> None:
    meta = {"deletion_timestamp": "now", "deletion_grace_period_seconds": grace}
    life = Life(a_pod(Container("paddle"), **meta), behaviour=behaviour)
    life.begin_to_run(100.0, "then")
    life.note_orders_to_stop(100.0)
    assert (life.ending().at, life.ending().exit_code) == end


def test_addresses_are_unique_and_come_back() -> None:
    addresses = Addresses()
    taken = [addresses.take() for _ in range(600)]
    assert len(set(taken)) == 600
    assert not any(address.endswith((".0", ".255")) for address in taken)
    addresses.give_back(taken[0])
    assert addresses.take() not in taken


class CannedServer:
    """Gives one answer after the other, whatever is asked, and notes the first line of each question."""

    def __init__(self, *answers: str) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []
        self.is_exhausted = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while question := await reader.readline():
                await reader.readuntil(b"\r\n\r\n")
                self.asked.append(question.decode().split()[1])
                if not self._answers:
                    self.is_exhausted.set()
                    return
                writer.write(self._answers.pop(0).encode())
        finally:
            writer.close()


def plain(body: str, status: int = 200) -> str:
    return f"HTTP/1.1 {status} OK\r\nContent-Length: {len(body)}\r\n\r\n{body}"


def chunked(*chunks: str) -> str:
    parts = "".join(f"{len(chunk):x}\r\n{chunk}\r\n" for chunk in (*chunks, ""))
    return f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{parts}"


def listed(version: str) -> str:
    return plain(f'{{"metadata":{{"resourceVersion":"{version}"}},"items":[]}}')


def event(kind: str, version: str) -> str:
    return f'{{"type":"{kind}","object":{{"metadata":{{"name":"p","resourceVersion":"{version}"}}}}}}\n'


GONE = '{"type":"ERROR","object":{"kind":"Status","metadata":{},"code":410}}\n'


@pytest.mark.parametrize(
    ("answers", "asked", "told"),
    [
        pytest.param(
            [listed("5"), chunked(event("ADDED", "7"))], ["", "5", "7"], ["7"], id="closed: resumed"
        ),
        pytest.param([listed("5"), chunked(event("BOOKMARK", "9"))], ["", "5", "9"], [], id="bookmark"),
        pytest.param(
            [listed("5"), chunked(GONE), listed("8")], ["", "5", "", "8"], [], id="410 in the stream"
        ),
        pytest.param([listed("5"), plain("{}", 410), listed("8")], ["", "5", "", "8"], [], id="410 at once"),
        pytest.param(
            [listed("5"), chunked(event("ADDED", "6")[:9], event("ADDED", "6")[9:] + event("DELETED", "7"))],
            ["", "5", "7"],
            ["6", "7"],
            id="lines in pieces",
        ),
        pytest.param([listed("5"), plain("{}", 500)], ["", "5", "5"], [], id="error: tried again"),
    ],
)
async def test_a_follower_stays_true(answers: list[str], asked: list[str], told: list[str]) -> None:
    canned, seen = CannedServer(*answers), list[str]()
    async with await asyncio.start_server(canned, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        client = ApiClient(Server(f"http://127.0.0.1:{port}", "token", None))
        follower = Follower(
            client,
            "/pods",
            Pod,
            replace=lambda _pods: None,
            apply=lambda _change, pod: seen.append(pod.metadata.resource_version),
        )
        task = asyncio.create_task(follower.follow())
        async with asyncio.timeout(10):
            await canned.is_exhausted.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await client.close()
    assert [path.partition("resourceVersion=")[2] for path in canned.asked] == asked
    assert seen == told


async def test_a_broken_answer_is_a_connection_error() -> None:
    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort")
        await reader.readline()
        writer.close()

    async with await asyncio.start_server(cut, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        client = ApiClient(Server(f"http://127.0.0.1:{port}", "token", None))
        with pytest.raises(ConnectionError):
            await client.send("GET", "/pods")
        await client.close()
