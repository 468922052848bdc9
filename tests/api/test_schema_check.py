"""The check against a structural schema, keyword by keyword."""

from typing import Any

import pytest

from paddle_operator.api.schema_check import Problem, check

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
QUANTITY = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
    "pattern": r"^[0-9]+(Mi|Gi)?$",
}
SCHEMA = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 5},
        "count": {"type": "integer", "minimum": 0, "maximum": 9},
        "share": {"type": "number"},
        "on": {"type": "boolean"},
        "policy": {"type": "string", "enum": ["", "Never", "Always"]},
        "size": QUANTITY,
        "port": {"anyOf": QUANTITY["anyOf"], "x-kubernetes-int-or-string": True},
        "since": {"type": "string", "format": "date-time", "nullable": True},
        "labels": {"type": "object", "additionalProperties": TEXT},
        "items": {"type": "array", "items": {"type": "object", "properties": {"id": NUMBER}}},
        "closed": {"type": "object"},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


def found(**fields: Any) -> list[str]:
    return [str(problem) for problem in check({"name": "a", **fields}, SCHEMA, "")]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "abcde"),
        ("count", 0),
        ("count", 9),
        ("share", 1),
        ("share", 1.5),
        ("on", False),
        ("policy", ""),
        ("policy", "Never"),
        ("size", 4),
        ("size", "4Gi"),
        ("port", "http"),
        ("port", -1),
        ("since", "2026-11-18T12:00:00Z"),
        ("since", "2026-11-18t12:00:00.123+08:00"),
        ("labels", {}),
        ("labels", {"any name/at.all": "x"}),
        ("items", []),
        ("items", [{}, {"id": 1}]),
        ("open", {"whatever": {"it": ["holds"]}}),
        *[(name, None) for name in SCHEMA["properties"] if name != "name"],
        ("labels", {"a": None}),
        ("items", [{"id": None}]),
    ],
)
def test_what_the_server_takes_is_taken(field: str, value: Any) -> None:
    assert found(**{field: value}) == []


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("name", "", "name: must not be empty"),
        ("name", "abcdef", "name: must be at most 5 characters long, not 6"),
        ("name", 7, "name: must be text, not 7; write it in quotes"),
        ("name", False, "name: must be text, not false; write it in quotes"),
        ("name", None, "name: is required; add it"),
        ("count", -1, "count: must be at least 0, not -1"),
        ("count", 10, "count: must be at most 9, not 10"),
        ("count", 1.5, "count: must be a whole number, not 1.5"),
        ("count", "1", "count: must be a whole number, not '1'; remove the quotes"),
        ("count", True, "count: must be a whole number, not true"),
        ("share", "1", "share: must be a number, not '1'; remove the quotes"),
        ("on", "yes", "on: must be true or false, not 'yes'"),
        ("on", 1, "on: must be true or false, not 1"),
        ("policy", "never", "policy: 'never' is not known; use one of 'Never', 'Always'"),
        ("size", "4GB", "size: '4GB' is not a quantity; write for example 2, 500m or 4Gi"),
        ("size", "4\n", "size: '4\\n' is not a quantity; write for example 2, 500m or 4Gi"),
        ("size", 0.5, "size: must be a whole number or text, not 0.5; write it in quotes"),
        ("port", True, "port: must be a whole number or text, not true; write it in quotes"),
        ("since", "noon", "since: 'noon' is not a time; write for example 2026-01-31T12:00:00Z"),
        ("since", "2026-11-18", "since: '2026-11-18' is not a time; write for example 2026-01-31T12:00:00Z"),
        ("labels", [], "labels: must be an object, not a list"),
        ("labels", {"a b": 1}, "labels[a b]: must be text, not 1; write it in quotes"),
        ("labels", {"a\nb": 1}, "labels['a\\nb']: must be text, not 1; write it in quotes"),
        ("items", {}, "items: must be a list, not an object"),
        ("items", [None], "items[0]: must be an object, not empty"),
        ("items", [{}, {"id": "x"}], "items[1].id: must be a whole number, not 'x'"),
        ("items", [{"ids": 1}], "items[0].ids: no such field; did you mean id?"),
        ("closed", {"a": 1}, "closed.a: no such field; remove it or correct its name"),
        ("lables", {}, "lables: no such field; did you mean labels?"),
        ("xyz", None, "xyz: no such field; remove it or correct its name"),
    ],
)
def test_what_the_server_refuses_is_refused_in_words(field: str, value: Any, message: str) -> None:
    assert found(**{field: value}) == [message]


@pytest.mark.parametrize(("number", "count"), [(2**63 - 1, 0), (-(2**63), 0), (2**63, 1), (-(2**63) - 1, 1)])
def test_a_whole_number_has_64_bits(number: int, count: int) -> None:
    assert len([*check(number, NUMBER, "x")]) == count
    assert len([*check(number, {"x-kubernetes-int-or-string": True}, "x")]) == count


def test_the_document_itself_may_be_of_the_wrong_type() -> None:
    assert [*check([], SCHEMA, "spec")] == [Problem("spec", "must be an object, not a list")]


def test_no_message_is_longer_than_a_screen_or_moves_the_cursor() -> None:
    for text in ("x" * 10_000, "\x1b[2J", "a\nb"):
        (message,) = found(policy=text)
        assert message.isprintable()
        assert len(message) < 160


def test_a_name_that_is_nothing_like_a_field_gets_no_guess() -> None:
    (message,) = found(trainer={})
    assert "did you mean" not in message


def test_a_field_that_stands_one_level_too_high_is_shown_its_place() -> None:
    inner = {"type": "object", "properties": {"limit": NUMBER}}
    schema = {"type": "object", "properties": {"limits": TEXT, "policy": inner}}
    assert [str(problem) for problem in check({"limit": 1}, schema, "")] == [
        "limit: no such field; it belongs in policy"
    ]
