"""The changes of all objects in their order, for those who watch: the versions are the positions in it."""

import asyncio
from bisect import bisect_right
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass

from paddle_operator.api.meta import Manifest
from paddle_operator.api.resources import AnyResource
from paddle_operator.cluster import Gone, Scope, Verb


@dataclass(frozen=True)
class Entry:
    version: int
    resource: AnyResource
    before: Manifest | None
    after: Manifest | None


class History:
    def __init__(self) -> None:
        self.version = 0
        self._entries: list[Entry] = []
        self._forgotten = 0
        self._waiting: dict[AnyResource, list[asyncio.Future[int]]] = defaultdict(list)
        """Who waits for a change of a kind; told up to which version there was none."""

    def next_version(self) -> int:
        self.version += 1
        return self.version

    def record(self, entry: Entry) -> None:
        self._entries.append(entry)
        for waiting in self._waiting.pop(entry.resource, ()):
            if not waiting.done():
                waiting.set_result(entry.version - 1)

    def compact(self) -> None:
        """Forget everything: who watches from before now must list again."""
        self._entries.clear()
        self._forgotten = self.version

    def last_seen(self) -> list[Manifest]:
        """Every object that there ever was, as it was last, in the order of birth."""
        seen: dict[str, Manifest] = {}
        for entry in self._entries:
            document = entry.after or entry.before or {}
            seen[document["metadata"]["uid"]] = document
        return list(seen.values())

    async def since(self, version: int, resource: AnyResource) -> AsyncIterator[Entry]:
        """Every entry of a kind after a version, for ever; Gone if some of them are forgotten."""
        while True:
            if version < self._forgotten:
                raise Gone(f"too old resource version: {version} ({self._forgotten})")
            fresh = self._entries[bisect_right(self._entries, version, key=_version_of) :]
            for entry in fresh:
                version = entry.version
                if entry.resource == resource:
                    yield entry
            if not fresh:
                waiting = asyncio.get_running_loop().create_future()
                self._waiting[resource].append(waiting)
                version = await waiting


def _version_of(entry: Entry) -> int:
    return entry.version


def seen_through(entry: Entry, scope: Scope) -> tuple[Verb, Manifest] | None:
    """What a watcher of a scope is told: what leaves it is deleted for him, what enters is new."""
    before = entry.before if entry.before is not None and matches(entry.before, scope) else None
    after = entry.after if entry.after is not None and matches(entry.after, scope) else None
    if after is not None:
        return (Verb.ADDED if before is None else Verb.MODIFIED), after
    if before is None:
        return None
    last = {**before, "metadata": {**before["metadata"], "resourceVersion": str(entry.version)}}
    return Verb.DELETED, last


def matches(document: Manifest, scope: Scope) -> bool:
    metadata = document["metadata"]
    if scope.namespace and metadata["namespace"] != scope.namespace:
        return False
    name, equals, value = scope.selector.partition("=")
    if set(scope.selector) & set("!,()<> ") or value.startswith("="):
        raise NotImplementedError(
            f"label selector {scope.selector!r}: only `name` and `name=value` are played"
        )
    labels = metadata.get("labels", {})
    return not name or (labels.get(name) == value if equals else name in labels)
