"""`--set PATH=VALUE`: a change to every PaddleJob of the file, made before it is checked."""

import re
from dataclasses import dataclass
from typing import Any, Self

from paddle_operator.api.documents import BadDocument, read_documents
from paddle_operator.api.meta import Manifest
from paddle_operator.api.schema_check import Problem

_EXAMPLE = "write for example --set spec.worker.replicas=3"
# A name, a position in a list, or a quoted name that has dots in it.
_PART = re.compile(r"(?:^|\.)([^.\[\]'=]+)|\[([0-9]+)\]|\['([^']+)'\]")


@dataclass(frozen=True)
class Setting:
    written: str
    path: tuple[str | int, ...]
    value: Any

    @classmethod
    def of(cls, written: str) -> Self:
        where, equals, text = written.partition("=")
        path = _path(where)
        if not equals or path is None or path[0] not in {"metadata", "spec"}:
            raise BadDocument(
                Problem(f"--set {written}", f"is no PATH=VALUE in metadata or spec; {_EXAMPLE}")
            )
        try:
            values = read_documents(text)
        except BadDocument as bad:
            raise BadDocument(
                *(
                    Problem(f"--set {written}", f"the value cannot be read: {one.message}")
                    for one in bad.problems
                )
            ) from None
        return cls(written, path, values[0] if values else None)

    def apply(self, document: Manifest) -> Manifest:
        changed = self._changed(document, self.path)
        assert isinstance(changed, dict)
        return changed

    def _changed(self, old: Any, path: tuple[str | int, ...]) -> Any:
        if not path or (old is None and self.value is None):
            return self.value
        first, rest = path[0], path[1:]
        if isinstance(first, int):
            return self._changed_list(old, first, rest)
        if not isinstance(old, dict | None):
            raise self._complaint(f"{first!r} is no field of a {type(old).__name__}")
        inner = self._changed((old or {}).get(first), rest)
        kept = {name: value for name, value in (old or {}).items() if name != first or inner is not None}
        return {**kept, first: inner} if inner is not None else kept

    def _changed_list(self, old: Any, position: int, rest: tuple[str | int, ...]) -> list[Any]:
        items = list(old) if isinstance(old, list) else []
        if position >= len(items):
            raise self._complaint(f"[{position}] is not there; the list has {len(items)} entries")
        changed = self._changed(items[position], rest)
        items[position : position + 1] = [] if changed is None else [changed]
        return items

    def _complaint(self, text: str) -> BadDocument:
        return BadDocument(Problem(f"--set {self.written}", text))


def _path(text: str) -> tuple[str | int, ...] | None:
    parts: list[str | int] = []
    position = 0
    while position < len(text):
        found = _PART.match(text, position)
        if found is None:
            return None
        parts.append(int(found[2]) if found[2] else found[1] or found[3])
        position = found.end()
    return tuple(parts) if parts and isinstance(parts[0], str) else None
