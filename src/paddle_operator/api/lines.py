"""Where in a file a field is written. Asked only when there is something to complain about."""

from collections.abc import Iterator

import yaml

from .documents import compose, entries
from .schema_check import join

Written = tuple[int, yaml.Node]
"""The line on which something begins, and what."""


class Lines:
    """Of one document of a text, counted from 1."""

    def __init__(self, text: str, document: int) -> None:
        top = list(compose(text))[document - 1]
        self._top: Written = (top.start_mark.line + 1, top)
        self._known: dict[str, dict[str, Written]] = {}

    def of(self, field: str) -> int:
        """The line of the field; where it is missing, of the one that should hold it."""
        path, written = "", self._top
        while path != field:
            parts = self._parts(path, written[1])
            longer = next((field[:end] for end in _ends(field, len(path)) if field[:end] in parts), None)
            if longer is None:
                break
            path, written = longer, parts[longer]
        return written[0]

    def _parts(self, path: str, node: yaml.Node) -> dict[str, Written]:
        if path not in self._known:
            self._known[path] = dict(_parts_of(path, node))
        return self._known[path]


def _parts_of(path: str, node: yaml.Node) -> Iterator[tuple[str, Written]]:
    match node:
        case yaml.MappingNode():
            for name, name_node, value_node in entries(node):
                yield join(path, name), (name_node.start_mark.line + 1, value_node)
        case yaml.SequenceNode():
            for position, item in enumerate(node.value):
                yield f"{path}[{position}]", (item.start_mark.line + 1, item)


def _ends(field: str, start: int) -> Iterator[int]:
    """Where a part of the field's path may end."""
    yield from (end for end in range(start + 1, len(field)) if field[end] in ".[")
    yield len(field)
