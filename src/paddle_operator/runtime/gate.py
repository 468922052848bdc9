"""The cache gate: no decision on a cache that has not yet shown our own last write.

A decision on an older picture would create what exists and count what is counted. Each write is remembered
per owner UID (a namesake made later starts afresh) until the cache of its kind has come as far. There is no
time-out after which we would decide blindly; a gate that stays shut makes the controller list again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from paddle_operator.api.meta import KubeObject
from paddle_operator.api.resources import AnyResource, Target

from .store import Store


@dataclass
class _Unseen:
    """What one owner's caches have still to show."""

    versions: dict[AnyResource, int] = field(default_factory=dict)
    deleted: list[tuple[Target, int | None]] = field(default_factory=list)
    """That it goes is enough to be seen as such; with a number of lists, it must be gone, or listed again."""
    outdated: list[tuple[Target, int]] = field(default_factory=list)
    """With the number of lists at that time: what a fresh one shows is the truth, changed or not."""


class CacheGate:
    def __init__(self, stores: Mapping[AnyResource, Store[KubeObject]]) -> None:
        self._stores = stores
        self._unseen: dict[str, _Unseen] = {}

    def wrote(self, owner_uid: str, resource: AnyResource, result: KubeObject) -> None:
        versions = self._unseen.setdefault(owner_uid, _Unseen()).versions
        versions[resource] = max(versions.get(resource, 0), int(result.metadata.resource_version))

    def outdated(self, owner_uid: str, target: Target) -> None:
        """A write was refused because its object had moved on: that is still to be shown."""
        lists = self._stores[target.resource].lists
        self._unseen.setdefault(owner_uid, _Unseen()).outdated.append((target, lists))

    def deleted(self, owner_uid: str, target: Target, *, at_once: bool = False) -> None:
        lists = self._stores[target.resource].lists if at_once else None
        self._unseen.setdefault(owner_uid, _Unseen()).deleted.append((target, lists))

    def behind(self, owner_uid: str) -> set[AnyResource]:
        """The kinds whose cache has not shown what we did for this owner; empty: the gate is open."""
        unseen = self._unseen.get(owner_uid)
        if unseen is None:
            return set()
        unseen.versions = {
            resource: version
            for resource, version in unseen.versions.items()
            if self._stores[resource].progress < version
        }
        unseen.deleted = [one for one in unseen.deleted if self._is_shown_alive(*one)]
        unseen.outdated = [one for one in unseen.outdated if self._is_shown_as_then(*one)]
        targets = [target for target, _ in (*unseen.deleted, *unseen.outdated)]
        behind = {*unseen.versions, *(target.resource for target in targets)}
        if not behind:
            del self._unseen[owner_uid]
        return behind

    def forget(self, owner_uid: str) -> None:
        self._unseen.pop(owner_uid, None)

    def _is_shown_as_then(self, target: Target, lists: int) -> bool:
        store = self._stores[target.resource]
        shown = store.get(target.key)
        return shown is not None and Target.of(target.resource, shown) == target and store.lists == lists

    def _is_shown_alive(self, target: Target, lists: int | None) -> bool:
        """Being deleted is shown too: a graceful end may take its time."""
        store = self._stores[target.resource]
        shown = store.get(target.key)
        if shown is None or shown.metadata.uid != target.uid:
            # One that was asked for by name has yet to come into the cache, and then to go.
            return store.progress < int(target.resource_version or 0)
        return not shown.metadata.terminating if lists is None else lists == store.lists
