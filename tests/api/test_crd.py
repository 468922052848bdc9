"""The CRD as the server and kubectl want it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import inspect

from paddle_operator.api.crd import Schema, paddle_job_crd, paddle_job_schema, pod_template_schema, schema_of

# What `kubectl apply` can store in its annotation.
MOST_BYTES = 262_144
# The keywords that schema_check.check knows, or may pass over.
CHECKED = {
    "type", "properties", "additionalProperties", "items", "required", "enum", "minimum", "maximum",
    "minItems", "minLength", "maxLength", "pattern", "format", "nullable", "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
}  # fmt: skip
PASSED_OVER = {
    "description", "default", "anyOf", "x-kubernetes-validations", "x-kubernetes-list-type",
}  # fmt: skip

Node = tuple[str, Schema]


def nodes(schema: Schema, field: str = "") -> Iterator[Node]:
    yield field, schema
    for name, inner in schema.get("properties", {}).items():
        yield from nodes(inner, f"{field}.{name}".lstrip("."))
    for keyword in ("items", "additionalProperties"):
        if keyword in schema:
            yield from nodes(schema[keyword], f"{field}[]")


ALL = [*nodes(paddle_job_schema())]
# Without the pod templates, whose schema is Kubernetes' own.
OWN = [(field, node) for field, node in ALL if ".template." not in field]
OWN_FIELDS = [
    (field, node) for field, node in OWN if field.startswith(("spec", "status")) and field[-1] != "]"
]
BY_FIELD = dict(ALL)


def version() -> Any:
    (only,) = paddle_job_crd()["spec"]["versions"]
    return only


def test_every_node_has_one_type_or_is_int_or_string() -> None:
    bare = [field for field, node in ALL if ("type" in node) == ("x-kubernetes-int-or-string" in node)]
    assert bare == []
    assert {node["type"] for _, node in ALL if "type" in node} <= {
        *("object", "array", "string", "integer", "number", "boolean")
    }


def test_every_list_says_what_it_holds() -> None:
    assert [field for field, node in ALL if (node.get("type") == "array") != ("items" in node)] == []


def test_only_the_metadata_is_left_to_the_server() -> None:
    empty = [
        field
        for field, node in ALL
        if node.get("type") == "object" and not node.get("properties") and "additionalProperties" not in node
    ]
    assert empty == []
    assert [*BY_FIELD["metadata"]["properties"]] == ["name"]


def test_no_keyword_is_used_that_our_own_check_does_not_know() -> None:
    assert {keyword for _, node in ALL for keyword in node} <= CHECKED | PASSED_OVER


def test_every_pattern_is_anchored_because_our_check_takes_it_whole() -> None:
    patterns = {node["pattern"] for _, node in ALL if "pattern" in node}
    assert patterns
    assert all(pattern[0] == "^" and pattern[-1] == "$" for pattern in patterns)


@pytest.mark.parametrize(("field", "node"), OWN_FIELDS, ids=[field for field, _ in OWN_FIELDS])
def test_every_field_of_ours_says_what_it_is_for(field: str, node: Schema) -> None:
    words = node.get("description", "")
    assert words.endswith("."), f"{field} has no description; give it one in its struct"


def test_every_text_that_a_user_writes_is_bounded() -> None:
    texts = [(field, node) for field, node in OWN_FIELDS if node.get("type") == "string"]
    assert [
        field for field, node in texts if field.startswith("spec") and not {"maxLength", "enum"} & node.keys()
    ] == []


def test_every_number_that_a_user_writes_is_bounded_below() -> None:
    numbers = [(field, node) for field, node in OWN_FIELDS if node.get("type") == "integer"]
    assert len(numbers) > 10
    assert [field for field, node in numbers if field.startswith("spec") and "minimum" not in node] == []


def test_the_crd_fits_the_annotation_of_kubectl_apply() -> None:
    assert len(json.dumps(paddle_job_crd(), separators=(",", ":"))) < MOST_BYTES


def at(path: str) -> Schema:
    """The schema of the field that a JSON path such as .status.failure.class points at."""
    return BY_FIELD[path.lstrip(".")]


def test_kubectl_shows_status_mode_and_age() -> None:
    columns = [column for column in version()["additionalPrinterColumns"] if "priority" not in column]
    assert [(column["name"], column["jsonPath"]) for column in columns] == [
        ("Status", ".status.phase"),
        ("Mode", ".status.mode"),
        ("Age", ".metadata.creationTimestamp"),
    ]


def test_kubectl_shows_restarts_and_failure_when_asked_for_more() -> None:
    columns = [column for column in version()["additionalPrinterColumns"] if column.get("priority") == 1]
    assert [(column["name"], column["jsonPath"]) for column in columns] == [
        ("Restarts", ".status.restarts"),
        ("Failure", ".status.failure.class"),
    ]


def test_every_column_shows_a_field_that_there_is() -> None:
    for column in version()["additionalPrinterColumns"]:
        if column["type"] != "date":
            assert at(column["jsonPath"])["type"] == column["type"]


def test_kubectl_scale_speaks_of_the_workers() -> None:
    """And of pods that there are, not of those that are wanted: an autoscaler compares the two."""
    scale = version()["subresources"]["scale"]
    assert scale == {
        "specReplicasPath": ".spec.worker.replicas",
        "statusReplicasPath": ".status.worker.replicas",
    }
    assert {at(path)["type"] for path in scale.values()} == {"integer"}


@pytest.mark.parametrize(
    ("field", "least", "most"),
    [
        ("backoffLimit", 0, 1000),
        ("maxDisruptions", 0, 1000),
        ("activeDeadlineSeconds", 1, 2**31 - 1),
        ("startDeadlineSeconds", 1, 2**31 - 1),
        ("ttlSecondsAfterFinished", 0, 2**31 - 1),
        ("forceDeleteAfterSeconds", 0, 2**31 - 1),
    ],
)
def test_what_a_run_policy_counts_is_bounded(field: str, least: int, most: int) -> None:
    node = BY_FIELD[f"spec.runPolicy.{field}"]
    assert (node["type"], node["minimum"], node["maximum"]) == ("integer", least, most)
    # Left out is not zero: it is what docs/en/paddlejob.md says.
    assert "default" not in node


def test_a_run_policy_may_be_left_out_whole_and_in_part() -> None:
    assert "required" not in BY_FIELD["spec.runPolicy"]
    assert BY_FIELD["spec"]["required"] == ["worker"]
    assert BY_FIELD["spec.runPolicy.suspend"]["type"] == "boolean"


def test_the_names_are_those_of_the_contract() -> None:
    crd = paddle_job_crd()
    assert crd["metadata"]["name"] == "paddlejobs.batch.paddlepaddle.org"
    assert crd["spec"]["scope"] == "Namespaced"
    assert crd["spec"]["names"] == {
        "kind": "PaddleJob",
        "listKind": "PaddleJobList",
        "plural": "paddlejobs",
        "singular": "paddlejob",
        "shortNames": ["pdj"],
    }


def test_v1_is_served_and_stored_and_has_a_status_of_its_own() -> None:
    assert (version()["name"], version()["served"], version()["storage"]) == ("v1", True, True)
    assert set(version()["subresources"]) == {"status", "scale"}
    assert version()["subresources"]["status"] == {}


def test_a_job_has_at_least_one_worker_and_any_number_of_servers() -> None:
    assert BY_FIELD["spec"]["required"] == ["worker"]
    assert BY_FIELD["spec.worker.replicas"]["minimum"] == 1
    assert BY_FIELD["spec.worker.replicas"]["default"] == 1
    assert BY_FIELD["spec.ps.replicas"]["minimum"] == 0
    assert BY_FIELD["spec.heter.replicas"]["minimum"] == 0


@pytest.mark.parametrize("role", ["ps", "worker", "heter"])
def test_a_template_keeps_its_labels_and_annotations(role: str) -> None:
    for field in ("labels", "annotations"):
        node = BY_FIELD[f"spec.{role}.template.metadata.{field}"]
        assert node == {"type": "object", "additionalProperties": {"type": "string"}}


@pytest.mark.parametrize("role", ["ps", "worker", "heter"])
def test_a_template_is_a_whole_pod_template(role: str) -> None:
    template = BY_FIELD[f"spec.{role}.template"]
    assert template["properties"] == pod_template_schema()["properties"]
    assert template["required"] == ["spec"]
    assert BY_FIELD[f"spec.{role}.template.spec"]["required"] == ["containers"]


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("cleanPodPolicy", ["", "Always", "Never", "OnFailure", "OnCompletion"]),
        ("cleanPolicy", ["", "Always", "Never", "OnFailure", "OnCompletion"]),
        ("intranet", ["", "PodIP", "Service", "Host", "HostNetwork"]),
    ],
)
def test_the_words_of_the_seeds_are_allowed(field: str, words: list[str]) -> None:
    assert BY_FIELD[f"spec.{field}"]["enum"] == words


def test_conditions_are_merged_by_type() -> None:
    conditions = BY_FIELD["status.conditions"]
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]
    assert conditions["items"]["required"] == ["type", "status"]


def test_changing_the_answer_does_not_change_the_next_one() -> None:
    before = json.dumps(paddle_job_crd())
    paddle_job_crd()["spec"]["names"]["kind"] = "Other"
    assert json.dumps(paddle_job_crd()) == before


def test_a_type_without_a_schema_is_an_error_and_not_a_hole() -> None:
    with pytest.raises(TypeError, match="no structural schema"):
        schema_of(inspect.type_info(bytes))
