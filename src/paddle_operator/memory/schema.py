"""What a server does to a document before it stores it: drop what the schema does not know, add defaults."""

from typing import Any

from paddle_operator.api.schema_check import Schema


def pruned(value: Any, schema: Schema) -> Any:
    """The value without the fields that the schema does not have, and without nulls."""
    if isinstance(value, list) and "items" in schema:
        return [pruned(item, schema["items"]) for item in value]
    if not isinstance(value, dict) or not ("properties" in schema or "additionalProperties" in schema):
        return value
    known = {name: _schema_of(name, schema) for name in value}
    return {
        name: pruned(item, inner)
        for name, item in value.items()
        if (inner := known[name]) is not None and (item is not None or inner.get("nullable"))
    }


def with_defaults(value: Any, schema: Schema) -> Any:
    """The value with the schema's defaults where a field is left out; a missing object gets none."""
    if isinstance(value, list) and "items" in schema:
        return [with_defaults(item, schema["items"]) for item in value]
    if not isinstance(value, dict):
        return value
    filled = {name: with_defaults(item, _schema_of(name, schema) or {}) for name, item in value.items()}
    defaults = {
        name: inner["default"]
        for name, inner in schema.get("properties", {}).items()
        if "default" in inner and name not in filled
    }
    return {**filled, **defaults}


def _schema_of(name: str, schema: Schema) -> Schema | None:
    found: Schema | None = schema.get("properties", {}).get(name) or schema.get("additionalProperties")
    return found
