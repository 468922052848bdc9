"""deploy/v1beta1 against the shapes that Kubernetes 1.11 published: kubectl refuses a field it does not know.

kubernetes-1.11.json is made of them by dev/manifests/published.py, which also says where they come from.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dev.manifests.__main__ import current_files
from dev.manifests.v1beta1 import crd, plain
from paddle_operator.api.crd import paddle_job_crd
from paddle_operator.api.meta import Manifest

SHAPES = json.loads(Path(__file__).with_name("kubernetes-1.11.json").read_text(encoding="utf-8"))
FILES = current_files()
OBJECTS = [
    *yaml.safe_load_all(FILES["deploy/v1beta1/crd.yaml"]),
    *yaml.safe_load_all(FILES["deploy/v1beta1/operator.yaml"]),
]
TYPES = {"string": str, "integer": int, "boolean": bool, "object": dict, "array": list, "number": int | float}
# What kubectl apply can store in its annotation.
MOST_BYTES = 262_144


def faults(value: Any, shape: dict[str, Any], where: str) -> Iterator[str]:
    """Where the value is not of the shape: fields that it does not know, lacks, or that have another type."""
    if "$ref" in shape:
        yield from faults(value, SHAPES[shape["$ref"]], where)
        return
    if shape.get("format") == "int-or-string":
        if not isinstance(value, int | str):
            yield f"{where}: neither a number nor a text"
        return
    kind = shape.get("type", "object" if "properties" in shape else "")
    if kind and not isinstance(value, TYPES[kind]):
        yield f"{where}: no {kind}"
        return
    properties = shape.get("properties", {})
    yield from (f"{where}.{name}: missing" for name in shape.get("required", ()) if name not in value)
    match value:
        case dict() if properties or "additionalProperties" in shape:
            for name, inner in value.items():
                known = properties.get(name, shape.get("additionalProperties"))
                if known is None:
                    yield f"{where}.{name}: unknown"
                else:
                    yield from faults(inner, known, f"{where}.{name}")
        case list():
            for index, inner in enumerate(value):
                yield from faults(inner, shape["items"], f"{where}[{index}]")


def shape_of(manifest: Manifest) -> dict[str, Any]:
    group, _, version = manifest["apiVersion"].rpartition("/")
    shape: dict[str, Any] = SHAPES[f"{group.partition('.')[0] or 'core'}.{version}.{manifest['kind']}"]
    return shape


@pytest.mark.parametrize(
    "manifest", OBJECTS, ids=[f"{one['kind']}-{one['metadata']['name']}" for one in OBJECTS]
)
def test_an_object_has_the_shape_that_1_11_published(manifest: Manifest) -> None:
    assert [*faults(manifest, shape_of(manifest), manifest["kind"])] == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"validation": {"openAPIV3Schema": {"nullable": True}}}, "nullable: unknown"),
        ({"validation": {"openAPIV3Schema": {"items": {"properties": {"a": {"x": 1}}}}}}, "x: unknown"),
        ({"additionalPrinterColumns": [{"name": "A", "jsonPath": ".a"}]}, "jsonPath: unknown"),
        ({"additionalPrinterColumns": [{"name": "A", "type": "string"}]}, "JSONPath: missing"),
        ({"preserveUnknownFields": False}, "preserveUnknownFields: unknown"),
        ({"scope": 1}, "scope: no string"),
    ],
)
def test_what_1_11_does_not_know_is_found(change: Manifest, fault: str) -> None:
    whole = crd()
    found = [*faults({**whole, "spec": whole["spec"] | change}, shape_of(whole), "crd")]
    assert [one for one in found if one.endswith(fault)], found


def test_the_manifests_of_today_are_not_for_1_11() -> None:
    today = [*yaml.safe_load_all(FILES["deploy/v1/operator.yaml"])]
    found = [fault for one in today for fault in faults(one, shape_of(one), one["kind"])]
    assert {fault.rpartition(".")[2] for fault in found} == {
        "seccompProfile: unknown",
        "topologySpreadConstraints: unknown",
    }


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    yield schema
    for inner in schema.get("properties", {}).values():
        yield from nodes(inner)
    for keyword in ("items", "additionalProperties"):
        if keyword in schema:
            yield from nodes(schema[keyword])


def test_the_schema_says_the_same_as_that_of_today_in_the_words_of_the_time() -> None:
    (today,) = paddle_job_crd()["spec"]["versions"]
    modern, old = today["schema"]["openAPIV3Schema"], crd()["spec"]["validation"]["openAPIV3Schema"]
    assert old["properties"]["spec"]["required"] == ["worker"]
    assert old["properties"]["spec"]["properties"]["worker"]["properties"]["replicas"]["minimum"] == 1
    assert len([*nodes(old)]) == len([*nodes(modern)])
    newer = {keyword for node in nodes(modern) for keyword in node} - {
        keyword for node in nodes(old) for keyword in node
    }
    assert newer == {
        "default",
        "nullable",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-validations",
    }


def test_a_number_or_a_text_is_still_one_of_both() -> None:
    int_or_string = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
    assert plain(int_or_string) == {"anyOf": [{"type": "integer"}, {"type": "string"}]}


def test_what_may_be_null_has_no_type_because_a_type_refuses_null() -> None:
    assert plain({"type": "string", "nullable": True}) == {}


def test_a_field_may_be_called_as_a_keyword() -> None:
    assert plain({"properties": {"default": {"type": "string", "default": "a"}}}) == {
        "properties": {"default": {"type": "string"}}
    }


def test_kubectl_shows_and_scales_as_today() -> None:
    (today,) = paddle_job_crd()["spec"]["versions"]
    old = crd()["spec"]
    assert old["subresources"] == today["subresources"]
    assert [column["JSONPath"] for column in old["additionalPrinterColumns"]] == [
        column["jsonPath"] for column in today["additionalPrinterColumns"]
    ]
    assert (old["version"], old["versions"]) == ("v1", [{"name": "v1", "served": True, "storage": True}])


def test_it_fits_the_annotation_of_kubectl_apply() -> None:
    assert len(json.dumps(crd(), separators=(",", ":"))) < MOST_BYTES
