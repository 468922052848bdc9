"""From text to JSON values and back. YAML is read as kubectl does: a file means the same here and there.

PyYAML left alone differs: dates become objects, 1:30 becomes 90, 1e3 and y stay text, of two equal names the
last one wins in silence, and a page of aliases becomes gigabytes.
"""

import math
import re
from collections.abc import Iterator
from typing import Any

import yaml

from .schema_check import Problem

# What the API server takes in one request; aliases must not make a page of text into more.
MOST_CHARACTERS = 3 * 1024 * 1024

_TAG = "tag:yaml.org,2002:"
_NULLS = {"", "~", "null", "Null", "NULL"}
_TRUE = {form(word) for word in ("y", "yes", "on", "true") for form in (str.lower, str.upper, str.title)}
_FALSE = {form(word) for word in ("n", "no", "off", "false") for form in (str.lower, str.upper, str.title)}
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_INTEGER = re.compile(r"[-+]?(0[bB][01]+|0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
# Longer ones are no integers to kubectl either.
_LONGEST_INTEGER = 70


class BadDocument(Exception):  # noqa: N818 (reads as what it is)
    """The file cannot be used; ``problems`` says what is wrong, where, and what to do."""

    def __init__(self, *found: Problem) -> None:
        super().__init__("; ".join(map(str, found)))
        self.problems = found


def read_documents(text: str) -> list[Any]:
    """The JSON value of each document of a YAML (or JSON) text; None for an empty one."""
    try:
        return [_read(node) for node in compose(text)]
    except yaml.YAMLError as error:
        raise BadDocument(_explain(error)) from error
    except RecursionError as error:
        raise BadDocument(Problem("file", "is nested too deeply; is a bracket missing?")) from error


def compose(text: str) -> Iterator[yaml.Node]:
    """The documents as nodes, which know their lines."""
    return yaml.compose_all(text, Loader=_Loader)


def entries(node: yaml.MappingNode) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
    """Name by name, with the nodes of name and value; without those that << takes in."""
    for name_node, value_node in node.value:
        if name_node.tag != _TAG + "merge":
            yield _name(name_node), name_node, value_node


class Resolver(yaml.resolver.Resolver):
    """Which plain words are text, and which are numbers, booleans or null: as kubectl decides it."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        if kind is yaml.ScalarNode and implicit[0]:
            return _TAG + _kind_of(value)
        return super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]


class _Loader(Resolver, yaml.SafeLoader):
    pass


def _kind_of(word: str) -> str:
    if word in _NULLS:
        return "null"
    if word in _TRUE or word in _FALSE:
        return "bool"
    if word == "<<":
        return "merge"
    number = word.replace("_", "")
    if word[0] in "0123456789+-." and (_FLOAT.fullmatch(number) or _INTEGER.fullmatch(number)):
        whole = _INTEGER.fullmatch(number) and len(number) <= _LONGEST_INTEGER
        return "int" if whole else "float"
    return "float" if _NOT_FINITE.fullmatch(word) else "str"


def _read(node: yaml.Node) -> Any:
    if _measure(node, {}) > MOST_CHARACTERS:
        raise _fault(
            node, f"has more than {MOST_CHARACTERS} characters once aliases are followed; shorten it"
        )
    return _value(node)


def _measure(node: yaml.Node, known: dict[int, int | None]) -> int:
    """How many characters it is once aliases are followed, about; refuses what contains itself."""
    if id(node) not in known:
        known[id(node)] = None
        match node:
            case yaml.MappingNode():
                inside = sum(_measure(part, known) for pair in node.value for part in pair)
            case yaml.SequenceNode():
                inside = sum(_measure(part, known) for part in node.value)
            case _:
                inside = len(node.value)
        known[id(node)] = inside + 1
    if (size := known[id(node)]) is None:
        raise _fault(node, "contains itself by an alias; write it out")
    return size


def _value(node: yaml.Node) -> Any:
    match node:
        case yaml.MappingNode():
            return _object(node)
        case yaml.SequenceNode():
            return [_value(item) for item in node.value]
    return _scalar(node)


def _object(node: yaml.MappingNode) -> dict[str, Any]:
    result: dict[str, Any] = {}
    merged: dict[str, Any] = {}
    for name_node, value_node in node.value:
        if name_node.tag == _TAG + "merge":
            merged |= _merged(value_node)
    for name, name_node, value_node in entries(node):
        if name in result:
            raise _fault(name_node, f"{name!r} is given twice; keep one of them")
        result[name] = _value(value_node)
    return {**merged, **result}


def _merged(node: yaml.Node) -> dict[str, Any]:
    """What stands behind <<: an object, or a list of objects of which the first wins."""
    value = _value(node)
    parts = value if isinstance(value, list) else [value]
    if not all(isinstance(part, dict) for part in parts):
        raise _fault(node, "<< takes in other objects; give it an alias of one")
    return {name: item for part in reversed(parts) for name, item in part.items()}


def _name(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode) or (value := _scalar(node)) is None:
        raise _fault(node, "the name of a field must be text; write it in quotes")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _scalar(node: yaml.Node) -> Any:
    text: str = node.value
    match node.tag.removeprefix(_TAG):
        case "null":
            return None
        case "bool" if text in _TRUE or text in _FALSE:
            return text in _TRUE
        case "int" if _kind_of(text) == "int":
            return _integer(text.replace("_", ""))
        case "int" | "float" if _FLOAT.fullmatch(text.replace("_", "")):
            return _number(node, float(text.replace("_", "")))
        case "str" | "timestamp":
            return _text(node, text)
    raise _fault(
        node, f"{text[:40]!r} is no {node.tag.removeprefix(_TAG)}; correct it, or write it in quotes"
    )


def _integer(digits: str) -> int:
    # Python wants 0o where YAML is content with 0.
    octal = re.fullmatch(r"([-+]?)0([0-7]+)", digits)
    return int(f"{octal[1]}0o{octal[2]}" if octal else digits, 0)


def _number(node: yaml.Node, value: float) -> float:
    if not math.isfinite(value):
        raise _fault(node, "the number is too large; write it in quotes if it is text")
    return int(value) if value.is_integer() else value


def _text(node: yaml.Node, text: str) -> str:
    try:
        # JSON writes some characters as two halves, which are one here; half a character is none.
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise _fault(node, "holds half a character (\\ud800 to \\udfff); remove it") from None


def _fault(node: yaml.Node, message: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=message, problem_mark=node.start_mark)


def _explain(error: yaml.YAMLError) -> Problem:
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return Problem("file", f"is not YAML: {' '.join(str(error).split())}")
    said = " ".join(part for part in (error.problem, error.context) if part)
    if "'\\t'" in said:
        said += "; indent with spaces instead of tabs"
    return Problem(f"line {error.problem_mark.line + 1}", said)


class _PlainDumper(Resolver, yaml.SafeDumper):
    """For people and simple readers: no aliases, blocks for scripts, quotes where one would misread."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        tag = super().resolve(kind, value, implicit)
        is_text = tag == self.DEFAULT_SCALAR_TAG
        if not is_text:
            return tag
        return yaml.resolver.Resolver.resolve(self, kind, value, implicit)  # type: ignore[no-untyped-call]

    def represent_text(self, text: str) -> yaml.Node:
        return self.represent_scalar(self.DEFAULT_SCALAR_TAG, text, style="|" if "\n" in text else None)


_PlainDumper.add_representer(str, _PlainDumper.represent_text)


def write_documents(documents: list[dict[str, Any]]) -> bytes:
    text: bytes = yaml.dump_all(
        documents,
        Dumper=_PlainDumper,
        sort_keys=False,
        allow_unicode=True,
        explicit_start=True,
        encoding="utf-8",
    )
    return text
