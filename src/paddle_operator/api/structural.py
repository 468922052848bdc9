"""Checks a document against a structural schema, as the API server does under strict field validation.

`render` and `run` have no server to ask. The schema is the CRD's own, so both give the same verdict. Only the
keywords that our CRDs use are known; that is a closed list, and crd.py writes no other.
"""

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Schema = dict[str, Any]

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


@dataclass(frozen=True)
class Problem:
    """What is wrong, where, and what to do about it."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def check(value: Any, schema: Schema, field: str) -> Iterator[Problem]:
    if value is None and schema.get("nullable"):
        return
    if not _has_type(value, schema):
        yield Problem(field, f"must be {_expected(schema)}, not {_described(value)}")
        return
    if isinstance(value, dict):
        yield from _check_object(value, schema, field)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from check(item, schema["items"], f"{field}[{position}]")
    else:
        yield from _check_scalar(value, schema, field)


def _has_type(value: Any, schema: Schema) -> bool:
    if schema.get("x-kubernetes-int-or-string"):
        return isinstance(value, int | str) and not isinstance(value, bool)
    if isinstance(value, bool):
        return bool(schema["type"] == "boolean")
    return isinstance(value, _TYPES[schema["type"]])


def _check_object(value: dict[Any, Any], schema: Schema, field: str) -> Iterator[Problem]:
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties")
    for name in schema.get("required", ()):
        if name not in value:
            yield Problem(_join(field, name), "is required; add it")
    for name, item in value.items():
        if not isinstance(name, str):
            yield Problem(f"{field}.{name}", f"names must be text; write {str(name)!r} in quotes")
        elif name in properties:
            yield from check(item, properties[name], _join(field, name))
        elif isinstance(others, dict):
            yield from check(item, others, _join(field, name))
        elif properties:
            yield Problem(_join(field, name), "no such field" + _suggestion(name, properties))


def _check_scalar(value: str | float, schema: Schema, field: str) -> Iterator[Problem]:
    if "enum" in schema and value not in schema["enum"]:
        allowed = ", ".join(repr(one) for one in schema["enum"] if one != "")
        yield Problem(field, f"{value!r} is not known; use one of {allowed}")
    if isinstance(value, int | float):
        if value < schema.get("minimum", value):
            yield Problem(field, f"must be at least {schema['minimum']}, not {value}")
        if value > schema.get("maximum", value):
            yield Problem(field, f"must be at most {schema['maximum']}, not {value}")
    else:
        yield from _check_text(value, schema, field)


def _check_text(value: str, schema: Schema, field: str) -> Iterator[Problem]:
    if len(value) < schema.get("minLength", 0):
        yield Problem(field, "must not be empty")
    if len(value) > schema.get("maxLength", len(value)):
        yield Problem(field, f"must be at most {schema['maxLength']} characters long, not {len(value)}")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield Problem(field, f"{value!r} is not a quantity; write for example 2, 500m or 4Gi")


def _suggestion(name: str, properties: Schema) -> str:
    near = difflib.get_close_matches(name, properties, n=1)
    return f"; did you mean {near[0]}?" if near else "; remove it or correct its name"


def _expected(schema: Schema) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "a whole number or text"
    words = {"object": "an object", "array": "a list", "string": "text", "integer": "a whole number"}
    words |= {"number": "a number", "boolean": "true or false"}
    return words[schema["type"]]


def _described(value: Any) -> str:
    if value is None:
        return "empty"
    words = {dict: "an object", list: "a list", bool: f"{value!r}".lower()}
    return words.get(type(value), repr(value))


def _join(field: str, name: str) -> str:
    plain = name.isidentifier() or "-" in name
    return f"{field}.{name}".lstrip(".") if plain else f"{field}[{name}]"
