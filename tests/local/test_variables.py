"""The environment of a container, as a kubelet resolves it."""

from base64 import b64encode
from datetime import UTC, datetime
from typing import Any

import pytest

from paddle_operator.api.meta import Key, Manifest
from paddle_operator.api.resources import CONFIG_MAPS
from paddle_operator.local.supplies import NotYet, Supplies
from paddle_operator.local.variables import Surroundings, environment, expand
from paddle_operator.memory.cluster import MemoryCluster

NOT_TEXT = b"\xff\xfe"
METADATA = {
    "name": "mnist-worker-1",
    "namespace": "team",
    "uid": "uid-1",
    "labels": {"app": "mnist", "a.b/c": "dotted"},
    "annotations": {"note": "two words"},
}
MAP = {
    "data": {"HOST": "127.0.1.1", "EMPTY": "", "with.dot": "x"},
    "binaryData": {"PICTURE": b64encode(NOT_TEXT).decode()},
}
SECRET = {
    "data": {"token": b64encode("gräben".encode()).decode(), "raw": b64encode(NOT_TEXT).decode()},
    "stringData": {"word": "plain"},
}


async def resolved(env: list[Manifest], sources: tuple[Manifest, ...] = (), **fields: Any) -> dict[str, str]:
    """What `env` and `envFrom` become where there are one config map `map` and one secret `secret`."""
    memory = MemoryCluster(lambda: datetime(2026, 11, 18, tzinfo=UTC), {})
    await memory.create(CONFIG_MAPS, {"metadata": {"name": "map", "namespace": "team"}, **MAP})
    container = {"name": "paddle", "env": env, "envFrom": list(sources), **fields}
    neighbour = {"name": "neighbour", "resources": {"limits": {"cpu": "3"}}}
    early = {"name": "early", "resources": {"limits": {"cpu": "5"}}}
    around = Surroundings(
        pod={"metadata": METADATA, "spec": {"containers": [container, neighbour], "initContainers": [early]}},
        address="127.0.1.2",
        node="localhost",
        node_address="127.0.0.1",
        capacity={"cpu": "8", "memory": str(16 * 2**30)},
        supplies=Supplies(memory, {Key("team", "secret"): SECRET}),
    )
    return environment(container, around)


def plain(**values: str) -> list[Manifest]:
    return [{"name": name, "value": value} for name, value in values.items()]


def taken(**source: Manifest) -> list[Manifest]:
    return [{"name": "IT", "valueFrom": source}]


def from_map(**ref: Any) -> Manifest:
    return {"configMapRef": {"name": "map", **ref}}


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("plain", "plain"),
        ("", ""),
        ("$(A)", "1"),
        ("$(A)$(B)/$(A)", "12/1"),
        ("$(NOBODY)", "$(NOBODY)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$$$$", "$$"),
        ("$", "$"),
        ("a$", "a$"),
        ("$A ${A} $5", "$A ${A} $5"),
        ("$(A", "$(A"),
        ("$()", "$()"),
        ("$(A) costs $$5", "1 costs $5"),
        ("$($(A))", "$($(A))"),
        ("$(NESTED)", "$(A)"),
        ("$(DO.T-TED)", "3"),
    ],
)
def test_references(text: str, result: str) -> None:
    assert expand(text, {"A": "1", "B": "2", "NESTED": "$(A)", "DO.T-TED": "3"}) == result


@pytest.mark.parametrize(
    ("env", "result"),
    [
        ([], {}),
        (plain(A="1"), {"A": "1"}),
        (plain(A=""), {"A": ""}),
        ([{"name": "A"}], {"A": ""}),
        (plain(A="1", B="$(A)2"), {"A": "1", "B": "12"}),
        # Only what stands above is known.
        (plain(B="$(A)2", A="1"), {"B": "$(A)2", "A": "1"}),
        (plain(A="$(A)"), {"A": "$(A)"}),
        (plain(A="x:$(PATH)"), {"A": "x:$(PATH)"}),
        ([*plain(A="1"), *plain(A="$(A)2")], {"A": "12"}),
        (plain(A="1", B="$$(A)", C="$(B)"), {"A": "1", "B": "$(A)", "C": "$(A)"}),
    ],
)
async def test_values(env: list[Manifest], result: dict[str, str]) -> None:
    assert await resolved(env) == result


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "mnist-worker-1"),
        ("metadata.namespace", "team"),
        ("metadata.uid", "uid-1"),
        ("metadata.labels['app']", "mnist"),
        ("metadata.labels['a.b/c']", "dotted"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations['note']", "two words"),
        ("metadata.annotations['app']", ""),
        ("spec.nodeName", "localhost"),
        ("spec.serviceAccountName", "default"),
        ("status.hostIP", "127.0.0.1"),
        ("status.hostIPs", "127.0.0.1"),
        ("status.podIP", "127.0.1.2"),
        ("status.podIPs", "127.0.1.2"),
    ],
)
async def test_fields(path: str, value: str) -> None:
    assert await resolved(taken(fieldRef={"fieldPath": path})) == {"IT": value}


async def test_a_field_can_be_referred_to() -> None:
    env = [*taken(fieldRef={"fieldPath": "status.podIP"}), *plain(URL="http://$(IT):80")]
    assert (await resolved(env))["URL"] == "http://127.0.1.2:80"


@pytest.mark.parametrize(
    "path", ["status.phase", "spec.containers", "metadata.labels", "metadata.labels['']"]
)
async def test_no_such_field(path: str) -> None:
    with pytest.raises(NotYet, match=r"is no field that a pod can tell; known are metadata.name, "):
        await resolved(taken(fieldRef={"fieldPath": path}))


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ({"configMapKeyRef": {"name": "map", "key": "HOST"}}, {"IT": "127.0.1.1"}),
        ({"configMapKeyRef": {"name": "map", "key": "EMPTY"}}, {"IT": ""}),
        ({"configMapKeyRef": {"name": "map", "key": "none", "optional": True}}, {}),
        ({"configMapKeyRef": {"name": "none", "key": "HOST", "optional": True}}, {}),
        # A kubelet takes no variable from binaryData.
        ({"configMapKeyRef": {"name": "map", "key": "PICTURE", "optional": True}}, {}),
        ({"secretKeyRef": {"name": "secret", "key": "token"}}, {"IT": "gräben"}),
        ({"secretKeyRef": {"name": "secret", "key": "word"}}, {"IT": "plain"}),
        ({"secretKeyRef": {"name": "secret", "key": "none", "optional": True}}, {}),
        ({"secretKeyRef": {"name": "none", "key": "word", "optional": True}}, {}),
    ],
)
async def test_entries_of_config_maps_and_secrets(source: Manifest, result: dict[str, str]) -> None:
    assert await resolved(taken(**source)) == result


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"configMapKeyRef": {"name": "none", "key": "HOST"}}, 'configmap "none" not found'),
        ({"secretKeyRef": {"name": "none", "key": "word"}}, 'secret "none" not found'),
        ({"secretKeyRef": {"name": "map", "key": "HOST"}}, 'secret "map" not found'),
        ({"configMapKeyRef": {"name": "map", "key": "none"}}, "couldn't find key none in ConfigMap team/map"),
        ({"secretKeyRef": {"name": "secret", "key": "none"}}, "couldn't find key none in Secret team/secret"),
    ],
)
async def test_a_missing_one_holds_the_container_back_in_the_kubelets_words(
    source: Manifest, words: str
) -> None:
    with pytest.raises(NotYet) as caught:
        await resolved(taken(**source))
    assert (str(caught.value), caught.value.reason) == (words, "CreateContainerConfigError")


@pytest.mark.parametrize(
    ("env", "sources"),
    [
        (taken(secretKeyRef={"name": "secret", "key": "raw"}), ()),
        ([], ({"secretRef": {"name": "secret"}},)),
    ],
)
async def test_bytes_that_are_no_text_become_no_variable(
    env: list[Manifest], sources: tuple[Manifest, ...]
) -> None:
    with pytest.raises(NotYet, match=r"key raw is no UTF-8 text.* mount it") as caught:
        await resolved(env, sources)
    assert caught.value.reason == "CreateContainerError"


WHOLE_MAP = {"HOST": "127.0.1.1", "EMPTY": "", "with.dot": "x"}
PREFIXED = {"P_HOST": "127.0.1.1", "P_EMPTY": "", "P_with.dot": "x"}
PREFIX = {"prefix": "P_"}


@pytest.mark.parametrize(
    ("sources", "env", "result"),
    [
        ((from_map(),), [], WHOLE_MAP),
        ((PREFIX | from_map(),), [], PREFIXED),
        ((from_map(), PREFIX | from_map()), [], WHOLE_MAP | PREFIXED),
        ((from_map(),), plain(HOST="mine"), WHOLE_MAP | {"HOST": "mine"}),
        ((from_map(),), plain(URL="http://$(HOST)"), WHOLE_MAP | {"URL": "http://127.0.1.1"}),
        ((PREFIX | from_map(),), plain(URL="$(P_HOST) $(HOST)"), PREFIXED | {"URL": "127.0.1.1 $(HOST)"}),
        ((from_map(name="none", optional=True),), plain(A="1"), {"A": "1"}),
        (({"secretRef": {"name": "none", "optional": True}},), [], {}),
    ],
)
async def test_whole_sources(
    sources: tuple[Manifest, ...], env: list[Manifest], result: dict[str, str]
) -> None:
    assert await resolved(env, sources) == result


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (from_map(name="none"), 'configmap "none" not found'),
        ({"secretRef": {"name": "none"}}, 'secret "none" not found'),
    ],
)
async def test_a_missing_source_holds_the_container_back(source: Manifest, words: str) -> None:
    with pytest.raises(NotYet) as caught:
        await resolved([], (source,))
    assert (str(caught.value), caught.value.reason) == (words, "CreateContainerConfigError")


@pytest.mark.parametrize(
    ("resources", "ref", "value"),
    [
        ({"limits": {"cpu": "1500m"}}, {"resource": "limits.cpu"}, "2"),
        ({"limits": {"cpu": "1500m"}}, {"resource": "limits.cpu", "divisor": "1m"}, "1500"),
        ({"limits": {"cpu": 2}}, {"resource": "limits.cpu", "divisor": "0"}, "2"),
        ({"limits": {"memory": "1Gi"}}, {"resource": "limits.memory"}, str(2**30)),
        ({"limits": {"memory": "1Gi"}}, {"resource": "limits.memory", "divisor": "1Mi"}, "1024"),
        ({"limits": {"memory": "1Gi"}}, {"resource": "limits.memory", "divisor": "1Gi"}, "1"),
        # Not set, or 0: the whole machine.
        ({}, {"resource": "limits.cpu"}, "8"),
        (None, {"resource": "limits.memory", "divisor": "1Gi"}, "16"),
        ({"requests": {"cpu": "1"}}, {"resource": "limits.cpu"}, "8"),
        ({"limits": {"cpu": "0"}}, {"resource": "limits.cpu"}, "8"),
        # A request that is not set is the limit, as the server would fill it in.
        ({"requests": {"cpu": "250m"}, "limits": {"cpu": "4"}}, {"resource": "requests.cpu"}, "1"),
        ({"limits": {"cpu": "4"}}, {"resource": "requests.cpu"}, "4"),
        ({"requests": {"cpu": "0"}, "limits": {"cpu": "4"}}, {"resource": "requests.cpu"}, "0"),
        ({}, {"resource": "requests.cpu"}, "0"),
        ({"limits": {"ephemeral-storage": "1G"}}, {"resource": "limits.ephemeral-storage"}, str(10**9)),
        ({"limits": {"cpu": "1"}}, {"resource": "limits.cpu", "containerName": "neighbour"}, "3"),
        ({"limits": {"cpu": "1"}}, {"resource": "limits.cpu", "containerName": "early"}, "5"),
        ({"limits": {"cpu": "1"}}, {"resource": "limits.cpu", "containerName": "paddle"}, "1"),
    ],
)
async def test_resources(resources: Manifest | None, ref: Manifest, value: str) -> None:
    assert await resolved(taken(resourceFieldRef=ref), resources=resources) == {"IT": value}


async def test_resources_of_nobody() -> None:
    with pytest.raises(NotYet, match="container nobody not found"):
        await resolved(taken(resourceFieldRef={"resource": "limits.cpu", "containerName": "nobody"}))
