"""The fake node on a real API server."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pytest

from testbed.node import FakeNode
from testbed.node_client import ApiClient, Server
from testbed.node_pods import Behaviour

pytestmark = pytest.mark.apiserver

PEERS = {"envFrom": [{"configMapRef": {"name": "peers"}}]}
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
# Longer than any test may take: who starts all the same was told to.
LATE = (3600.0, 3600.0)


class ApiServer(Protocol):
    url: str
    token: str
    ca_file: Path
    kubeconfig: Path


class PodUser:
    """One namespace of the real server, as its user sees it."""

    def __init__(self, server: ApiServer, namespace: str) -> None:
        self.namespace = namespace
        self._client = ApiClient(Server(server.url, server.token, server.ca_file.read_text()))
        self._server = server

    def node(self, **options: Any) -> FakeNode:
        server = self._server
        return FakeNode(
            url=server.url, token=server.token, ca_file=server.ca_file, namespace=self.namespace, **options
        )

    async def close(self) -> None:
        await self._client.close()

    async def call(self, method: str, path: str, body: Any = None, media: str = "application/json") -> Any:
        return await self.call_cluster(method, f"namespaces/{self.namespace}/{path}", body, media)

    async def call_cluster(
        self, method: str, path: str, body: Any = None, media: str = "application/json"
    ) -> Any:
        content = b"" if body is None else msgspec.json.encode(body)
        status, answer = await self._client.send(method, f"/api/v1/{path}", content, media)
        assert status < 300, answer
        return msgspec.json.decode(answer)

    async def make_pod(
        self, name: str, container: Any = None, *, spec: Any = None, **annotations: str
    ) -> str:
        """The pod's UID; annotations without their prefix and with underscores."""
        meta = {f"fake-node/{key.replace('_', '-')}": value for key, value in annotations.items()}
        containers = [{"name": "paddle", "image": "none"} | (container or {})]
        body = {
            "metadata": {"name": name, "annotations": meta},
            "spec": {"restartPolicy": "Never", "containers": containers} | (spec or {}),
        }
        pod = await self.call("POST", "pods", body)
        return str(pod["metadata"]["uid"])

    async def make_map(self, name: str, **data: str) -> None:
        await self.call("POST", "configmaps", {"metadata": {"name": name}, "data": data})

    async def patch_pod(self, name: str, body: Any) -> None:
        await self.call("PATCH", f"pods/{name}", body, MERGE)

    async def pod(self, name: str) -> Any:
        return await self.call("GET", f"pods/{name}")

    async def until(self, name: str, holds: Callable[[Any], bool], since: str = "0") -> Any:
        """The pod as it is when the condition first holds, or as it was when it went away."""

        def look(line: bytes) -> None:
            event = msgspec.json.decode(line)
            if event["type"] == "DELETED" or holds(event["object"]):
                raise _SeenError(event)

        query = f"watch=1&resourceVersion={since}&fieldSelector=metadata.name={name}"
        try:
            async with asyncio.timeout(30):
                await self._client.lines(f"/api/v1/namespaces/{self.namespace}/pods?{query}", look)
        except _SeenError as seen:
            return seen.event["object"]
        raise AssertionError(f"the watch of {name} ended")

    async def until_phase(self, name: str, phase: str) -> Any:
        return await self.until(name, lambda pod: pod["status"]["phase"] == phase)

    async def until_gone(self, pod: Any) -> Any:
        """The pod as it was in the end; `pod` as it was seen when it still existed."""
        meta = pod["metadata"]
        gone = await self.until(meta["name"], lambda _pod: False, meta["resourceVersion"])
        assert gone["metadata"]["uid"] == meta["uid"]
        return gone

    async def until_waiting(self, name: str, message: str) -> Any:
        def waits(pod: Any) -> bool:
            states = [each["state"] for each in pod["status"].get("containerStatuses", [])]
            return any(message in state.get("waiting", {}).get("message", "") for state in states)

        return await self.until(name, waits)


class _SeenError(Exception):
    def __init__(self, event: Any) -> None:
        super().__init__()
        self.event = event


@pytest.fixture
async def user(apiserver: ApiServer, namespace: str) -> AsyncIterator[PodUser]:
    user = PodUser(apiserver, namespace)
    yield user
    await user.close()


def end_of(pod: Any) -> Any:
    return pod["status"]["containerStatuses"][0]["state"]["terminated"]


@asynccontextmanager
async def a_running_pod(user: PodUser, **annotations: str) -> AsyncIterator[FakeNode]:
    async with user.node() as node:
        await user.make_pod("p", run_seconds="inf", **annotations)
        await user.until_phase("p", "Running")
        yield node


@pytest.mark.parametrize(
    ("annotations", "phase", "code", "reason"),
    [
        ({}, "Succeeded", 0, "Completed"),
        ({"exit_code": "3"}, "Failed", 3, "Error"),
        ({"exit_code": "137", "reason": "OOMKilled"}, "Failed", 137, "OOMKilled"),
    ],
)
async def test_a_pod_is_bound_addressed_runs_and_ends(
    user: PodUser, annotations: dict[str, str], phase: str, code: int, reason: str
) -> None:
    async with user.node():
        await user.make_pod("p", **annotations)
        running = await user.until_phase("p", "Running")
        assert running["spec"]["nodeName"] == "fake-node"
        assert running["status"]["podIP"].startswith(("198.18.", "198.19."))
        assert running["status"]["podIPs"] == [{"ip": running["status"]["podIP"]}]
        assert running["status"]["containerStatuses"][0]["ready"]
        conditions = {each["type"]: each["status"] for each in running["status"]["conditions"]}
        assert conditions == dict.fromkeys(
            ("PodScheduled", "Initialized", "ContainersReady", "Ready"), "True"
        )
        ended = await user.until_phase("p", phase)
        assert (end_of(ended)["exitCode"], end_of(ended)["reason"]) == (code, reason)


async def test_start_takes_its_time_without_an_address(user: PodUser) -> None:
    async with user.node():
        await user.make_pod("p", start_seconds="0.5")
        creating = await user.until("p", lambda pod: "containerStatuses" in pod["status"])
        state = creating["status"]["containerStatuses"][0]["state"]
        assert state == {"waiting": {"reason": "ContainerCreating"}}
        assert "podIP" not in creating["status"]
        assert (await user.until_phase("p", "Running"))["status"]["podIP"]


async def test_a_missing_config_map_is_seen_again_only_when_the_pod_changes(user: PodUser) -> None:
    async with user.node(retry_seconds=LATE) as node:
        uid = await user.make_pod("first", PEERS)
        waiting = await user.until_waiting("first", 'configmap "peers" not found')
        assert waiting["status"]["podIP"]
        reason = waiting["status"]["containerStatuses"][0]["state"]["waiting"]["reason"]
        assert reason == "CreateContainerConfigError"
        await user.make_map("peers", PADDLE_TRAINERS_NUM="2")
        # Another pod sees the map and ends: the first had every occasion to start as well.
        await user.make_pod("witness", PEERS)
        await user.until_phase("witness", "Succeeded")
        assert (await user.pod("first"))["status"]["phase"] == "Pending"
        await user.patch_pod("first", {"metadata": {"annotations": {"nudge": "1"}}})
        await user.until_phase("first", "Succeeded")
        assert node.environment[user.namespace, "first", uid] == {"paddle": {"PADDLE_TRAINERS_NUM": "2"}}


async def test_a_missing_config_map_is_seen_again_after_a_while(user: PodUser) -> None:
    async with user.node(retry_seconds=(0.1, 0.2)):
        await user.make_pod("p", PEERS)
        await user.until_waiting("p", "not found")
        await user.make_map("peers")
        await user.until_phase("p", "Succeeded")


async def test_the_first_look_can_be_denied(user: PodUser) -> None:
    await user.make_map("peers")
    async with user.node(retry_seconds=LATE, deny_first_lookup=1):
        await user.make_pod("p", PEERS)
        await user.until_waiting("p", 'configmaps "peers" is forbidden')
        await user.make_pod("other", PEERS)
        await user.until_phase("other", "Succeeded")
        await user.patch_pod("p", {"metadata": {"annotations": {"nudge": "1"}}})
        await user.until_phase("p", "Succeeded")


async def test_environment_is_recorded_as_each_container_sees_it(user: PodUser) -> None:
    await user.make_map("peers", N="2")
    env = [
        {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "ENDPOINT", "value": "$(POD_IP):2379/$(N)"},
    ]
    async with user.node() as node:
        uid = await user.make_pod("p", PEERS | {"env": env})
        address = (await user.until_phase("p", "Running"))["status"]["podIP"]
        variables = node.environment[user.namespace, "p", uid]["paddle"]
        assert variables == {"N": "2", "POD_IP": address, "ENDPOINT": f"{address}:2379/2"}


async def test_a_deleted_pod_ends_and_goes(user: PodUser) -> None:
    async with a_running_pod(user, termination_seconds="0.2"):
        running = await user.pod("p")
        await user.call("DELETE", "pods/p")
        since = running["metadata"]["resourceVersion"]
        ended = await user.until("p", lambda pod: pod["status"]["phase"] == "Failed", since)
        assert end_of(ended)["exitCode"] == 143
        await user.until_gone(ended)


async def test_how_a_deleted_pod_ended_can_be_seen_while_its_node_cleans_up(user: PodUser) -> None:
    async with user.node() as node:
        node.script(lambda _: Behaviour(runs_for_ever=True, cleanup_seconds=0.5))
        await user.make_pod("p")
        running = await user.until_phase("p", "Running")
        await user.call("DELETE", "pods/p")
        since = running["metadata"]["resourceVersion"]
        ended = await user.until("p", lambda pod: pod["status"]["phase"] == "Failed", since)
        seen_at = asyncio.get_running_loop().time()
        await user.until_gone(ended)
        assert asyncio.get_running_loop().time() - seen_at >= 0.3


async def test_a_finished_pod_goes_at_once_when_deleted(user: PodUser) -> None:
    async with user.node():
        await user.make_pod("p")
        ended = await user.until_phase("p", "Succeeded")
        await user.call("DELETE", "pods/p")
        assert end_of(await user.until_gone(ended))["exitCode"] == 0


async def test_conditions_of_others_survive(user: PodUser) -> None:
    async with a_running_pod(user) as node:
        disruption = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
        body = {"status": {"conditions": [disruption]}}
        await user.call("PATCH", "pods/p/status", body, STRATEGIC)
        node.finish(user.namespace, "p", 1)
        failed = await user.until_phase("p", "Failed")
        assert "DisruptionTarget" in {each["type"] for each in failed["status"]["conditions"]}


async def test_deadline_ends_a_running_pod_and_keeps_it(user: PodUser) -> None:
    async with a_running_pod(user):
        await user.patch_pod("p", {"spec": {"activeDeadlineSeconds": 1}})
        failed = await user.until_phase("p", "Failed")
        assert failed["status"]["reason"] == "DeadlineExceeded"
        assert end_of(failed)["exitCode"] == 143


async def test_deadline_ends_a_waiting_pod(user: PodUser) -> None:
    async with user.node(retry_seconds=LATE):
        await user.make_pod("p", PEERS, spec={"activeDeadlineSeconds": 1})
        await user.until_waiting("p", "not found")
        failed = await user.until_phase("p", "Failed")
        assert failed["status"]["reason"] == "DeadlineExceeded"
        assert end_of(failed)["reason"] == "ContainerStatusUnknown"


async def test_an_unschedulable_pod_says_so_until_it_is_not(user: PodUser) -> None:
    async with user.node():
        await user.make_pod("p", unschedulable="true")
        pod = await user.until("p", lambda pod: "conditions" in pod["status"])
        (condition,) = pod["status"]["conditions"]
        assert (condition["type"], condition["status"]) == ("PodScheduled", "False")
        assert condition["reason"] == "Unschedulable"
        assert condition["message"].startswith("0/1 nodes are available")
        await user.patch_pod("p", {"metadata": {"annotations": {"fake-node/unschedulable": None}}})
        await user.until_phase("p", "Succeeded")


async def test_a_script_in_python_and_an_ordered_end(user: PodUser) -> None:
    async with user.node() as node:
        node.script(lambda pod: Behaviour(runs_for_ever=True) if pod.metadata.name == "ps" else None)
        await user.make_pod("ps")
        await user.make_pod("worker", exit_code="1")
        await user.until_phase("worker", "Failed")
        assert (await user.until_phase("ps", "Running"))["status"]["phase"] == "Running"
        node.finish(user.namespace, "ps", 2)
        assert end_of(await user.until_phase("ps", "Failed"))["exitCode"] == 2


async def test_a_held_node_moves_nothing_until_released(user: PodUser) -> None:
    async with user.node() as node, user.node(name="witness") as witness:
        witness.script(lambda _pod: Behaviour(runs_for_ever=True))
        node.hold()
        witness.hold()
        await user.make_pod("p")
        # The other node is let go and plays the pod: the held one had every occasion to be first.
        witness.release()
        pod = await user.until_phase("p", "Running")
        assert pod["spec"]["nodeName"] == "witness"


async def test_a_released_node_goes_on(user: PodUser) -> None:
    async with user.node() as node:
        node.hold()
        await user.make_pod("p")
        node.release()
        await user.until_phase("p", "Succeeded")


async def test_the_node_object_is_ready(user: PodUser) -> None:
    async with user.node(name="some-node"):
        pass
    async with user.node(name="some-node"):
        node = await user.call_cluster("GET", "nodes/some-node")
    ready = {each["type"]: each["status"] for each in node["status"]["conditions"]}["Ready"]
    assert ready == "True"
    assert node["status"]["capacity"]["pods"] == "1M"


async def test_a_second_node_takes_over_what_the_first_left(user: PodUser) -> None:
    async with a_running_pod(user):
        address = (await user.pod("p"))["status"]["podIP"]
    async with user.node() as node:
        node.finish(user.namespace, "p")
        ended = await user.until_phase("p", "Succeeded")
        assert ended["status"]["podIP"] == address
