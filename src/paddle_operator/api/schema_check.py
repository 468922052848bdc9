"""Checks a document against a structural schema, as the API server does under strict field validation.

`render` and `run` have no server to ask. The schema is the CRD's own, so both give the same verdict. Only the
keywords that our CRDs use are known; that is a closed list, and crd.py writes no other. A field that is null
counts as left out: the server drops it before it looks.
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
# Beyond these the server sees no integer.
_LEAST, _MOST = -(2**63), 2**63 - 1
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[-+]\d\d:\d\d)")
_LONGEST_SHOWN = 60


@dataclass(frozen=True)
class Problem:
    """What is wrong, where, and what to do about it."""

    field: str
    message: str
    line: int = 0
    """Of the file in which the field is written, if there is one."""

    def __str__(self) -> str:
        return (
            f"line {self.line}: {self.field}: {self.message}"
            if self.line
            else f"{self.field}: {self.message}"
        )


def check(value: Any, schema: Schema, field: str) -> Iterator[Problem]:
    if not _has_type(value, schema):
        yield Problem(field, f"must be {_expected(schema)}, not {_described(value)}{_remedy(value, schema)}")
        return
    if isinstance(value, dict):
        yield from _check_object(value, schema, field)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from check(item, schema["items"], f"{field}[{position}]")
        if len(value) < schema.get("minItems", 0):
            yield Problem(field, "must not be empty; add one")
        yield from _check_keys(value, schema, field)
    else:
        yield from _check_scalar(value, schema, field)


def _has_type(value: Any, schema: Schema) -> bool:
    if schema.get("x-kubernetes-int-or-string"):
        return isinstance(value, int | str) and not isinstance(value, bool)
    if isinstance(value, bool):
        return bool(schema["type"] == "boolean")
    return isinstance(value, _TYPES[schema["type"]])


def _check_object(value: dict[str, Any], schema: Schema, field: str) -> Iterator[Problem]:
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if value.get(name) is None:
            yield Problem(join(field, name), "is required; add it")
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    for name, item in value.items():
        known = properties.get(name) or schema.get("additionalProperties")
        if not known:
            yield Problem(join(field, name), "no such field" + _suggestion(name, properties))
        elif item is not None:
            yield from check(item, known, join(field, name))


def _check_keys(value: list[Any], schema: Schema, field: str) -> Iterator[Problem]:
    """In a list that is a map to the server, no two items have the same keys."""
    keys = schema.get("x-kubernetes-list-map-keys")
    seen: set[tuple[str, ...]] = set()
    for position, item in enumerate(value if keys else ()):
        if not isinstance(item, dict):
            continue
        name = tuple(str(item.get(key)) for key in keys or ())
        if name in seen:
            yield Problem(f"{field}[{position}]", f"is a second {shown(' '.join(name))}; rename one of them")
        seen.add(name)


def _check_scalar(value: str | float, schema: Schema, field: str) -> Iterator[Problem]:
    if "enum" in schema and value not in schema["enum"]:
        allowed = ", ".join(repr(one) for one in schema["enum"] if one != "")
        yield Problem(field, f"{shown(value)} is not known; use one of {allowed}")
    if isinstance(value, int | float):
        if not _LEAST <= value <= _MOST:
            yield Problem(field, f"must be a whole number of at most 64 bits, not {shown(value)}")
        if value < schema.get("minimum", value):
            yield Problem(field, f"must be at least {schema['minimum']}, not {shown(value)}")
        if value > schema.get("maximum", value):
            yield Problem(field, f"must be at most {schema['maximum']}, not {shown(value)}")
    else:
        yield from _check_text(value, schema, field)


def _check_text(value: str, schema: Schema, field: str) -> Iterator[Problem]:
    if len(value) < schema.get("minLength", 0):
        yield Problem(field, "must not be empty")
    if len(value) > schema.get("maxLength", len(value)):
        yield Problem(field, f"must be at most {schema['maxLength']} characters long, not {len(value)}")
    if "pattern" in schema and not re.fullmatch(schema["pattern"], value):
        yield Problem(field, f"{shown(value)} {_pattern_advice(schema)}")
    if schema.get("format") == "date-time" and not _TIME.fullmatch(value):
        yield Problem(field, f"{shown(value)} is not a time; write for example 2026-01-31T12:00:00Z")


def _pattern_advice(schema: Schema) -> str:
    """Quantities and names are all that the CRDs have patterns for."""
    if schema.get("x-kubernetes-int-or-string"):
        return "is not a quantity; write for example 2, 500m or 4Gi"
    return "is no DNS label; use lower-case letters, digits and dashes, with no dash at the ends"


def _suggestion(name: str, properties: Schema) -> str:
    deeper = [one for one, schema in properties.items() if name in schema.get("properties", {})]
    if deeper:
        return f"; it belongs in {deeper[0]}"
    near = difflib.get_close_matches(name, properties, n=1, cutoff=0.75)
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
    return words.get(type(value)) or shown(value)


def _remedy(value: Any, schema: Schema) -> str:
    wanted = "string" if schema.get("x-kubernetes-int-or-string") else schema["type"]
    if wanted == "string" and isinstance(value, bool | int | float):
        return "; write it in quotes"
    if wanted in {"integer", "number"} and isinstance(value, str) and value.isdecimal():
        return "; remove the quotes"
    if wanted == "array" and isinstance(value, str) and schema["items"].get("type") == "string":
        return f"; write {shown(value.split())}"
    return ""


def shown(value: Any) -> str:
    """The value as a person may see it: on one line, and not a page of it."""
    shown = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return shown if len(shown) <= _LONGEST_SHOWN else f"{shown[:_LONGEST_SHOWN]}..."


def join(field: str, name: str) -> str:
    if re.fullmatch(r"[\w-]+", name):
        return f"{field}.{name}".lstrip(".")
    return f"{field}[{name if name.isprintable() else shown(name)}]"


def without_nulls(value: Any) -> Any:
    """The value as the server sees it: what is null is left out; in lists it takes none."""
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value
