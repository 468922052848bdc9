"""Jobs at random: good ones with one to three fields changed, as the schema knows them. By seed."""

import copy
import random
from collections.abc import Iterator
from typing import Any

import make

from paddle_operator.api.crd import Schema, paddle_job_schema

ROLES = ("worker", "ps", "heter")
NUMBERS = (
    -1,
    0,
    1,
    2,
    3,
    63,
    1500,
    1501,
    6000,
    6001,
    65535,
    65536,
    2**31,
    2**63 - 1,
    2**63,
    2.5,
    10**30,
)
TEXTS = (
    "", "a", "A", "-", "a-b", "paddle", "a b", "飞桨", "1", "0.5", "-1", "4Gi", "1e3", "1e2.5", "4 GB",
    "true", "Never", "Always", "PodIP", "Service", "Host", "http", "2026-11-18T12:00:00Z", "x" * 63, "x" * 64,
    "x" * 254, "a\nb", "$(A)", "../..", "example.com/a",
)  # fmt: skip
NAMES = ("resnet", "a", "1abc", "a.b", "A", "r" * 54, "r" * 55, "r" * 63, "a-", "a--b")
OTHERS: tuple[Any, ...] = (None, True, False, [], {}, [None], {"a": None}, ["a"], {"a": "b"})


def mutants(seed: int) -> Iterator[dict[str, Any]]:
    """Documents without end."""
    chance = random.Random(seed)
    while True:
        document = _good_job(chance)
        for _ in range(chance.randint(1, 3)):
            _change(chance, document["spec"], paddle_job_schema()["properties"]["spec"])
        if chance.random() < 0.2:
            document["metadata"]["name"] = chance.choice(NAMES)
        yield document


def _good_job(chance: random.Random) -> dict[str, Any]:
    spec: dict[str, Any] = {"intranet": chance.choice(("", "PodIP", "Service", "Host", "HostNetwork"))}
    if chance.random() < 0.3:
        spec["schedulingPolicy"] = {"minAvailable": chance.randint(1, 3)}
    if chance.random() < 0.5:
        spec["ps"] = {"replicas": chance.randint(0, 2), "template": _template(chance)}
    job = make.manifest(workers=chance.randint(1, 3), pod=_template(chance), **spec)
    return copy.deepcopy(job)


def _template(chance: random.Random) -> dict[str, Any]:
    ports = [{"containerPort": chance.choice((80, 8080)), "hostPort": chance.choice((0, 80, 8080))}]
    mounts = [{"name": chance.choice(("data", "shm")), "mountPath": "/data"}]
    resources = {
        "requests": {"cpu": chance.choice(("500m", "1"))},
        "limits": {"cpu": chance.choice(("1", "1k"))},
    }
    container = make.container(ports=ports, volumeMounts=mounts, resources=resources, env=[{"name": "A"}])
    volumes: list[dict[str, Any]] = [{"name": name, "emptyDir": {}} for name in ("data", "shm")]
    sidecar = make.container(name=chance.choice(("sidecar", "paddle-2")))
    return make.template(container, sidecar, volumes=volumes, metadata={"labels": {"team": "vision"}})


def _change(chance: random.Random, value: Any, schema: Schema) -> None:
    """One place in an object: walk down to it, then set, remove or misspell a field of the schema."""
    known = schema.get("properties") or {}
    present = [name for name, inner in value.items() if isinstance(inner, dict | list) and name in known]
    if present and chance.random() < 0.8:
        name = chance.choice(present)
        inner, below = value[name], known[name]
        if isinstance(inner, list) and inner and isinstance(inner[0], dict):
            inner, below = chance.choice(inner), below["items"]
        if isinstance(inner, dict) and below.get("properties"):
            _change(chance, inner, below)
            return
    _set(chance, value, known or {"a": schema.get("additionalProperties", {})})


def _set(chance: random.Random, value: dict[str, Any], known: Schema) -> None:
    name = chance.choice(sorted({*known, *value}))
    match chance.randrange(8):
        case 0:
            value.pop(name, None)
        case 1:
            value[name + "s"] = value.get(name)
        case 2 if isinstance(value.get(name), list):
            value[name] = [*value[name], *value[name]]
        case _:
            value[name] = _value(chance, known.get(name, {}))


def _value(chance: random.Random, schema: Schema) -> Any:
    """Mostly of the type that the schema wants."""
    if chance.random() < 0.2:
        return copy.deepcopy(chance.choice((*OTHERS, *NUMBERS, *TEXTS)))
    match schema.get("type"):
        case "integer" | "number":
            return chance.choice(NUMBERS)
        case "boolean":
            return chance.choice((True, False))
        case "array":
            return [_value(chance, schema["items"]) for _ in range(chance.randint(0, 2))]
        case "object":
            return _object(chance, schema)
    return chance.choice(TEXTS)


def _object(chance: random.Random, schema: Schema) -> dict[str, Any]:
    known = schema.get("properties")
    if not known:
        return {chance.choice(TEXTS): _value(chance, schema.get("additionalProperties", {}))}
    chosen = [*schema.get("required", ()), *chance.sample(sorted(known), min(2, len(known)))]
    return {name: _value(chance, known[name]) for name in chosen}
