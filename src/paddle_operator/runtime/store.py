"""What we know of one kind: a cache, indexed by the key that each object concerns."""

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from paddle_operator.api.meta import Key, KubeObject, Unreadable

T = TypeVar("T", bound=KubeObject)


class Store(Generic[T]):
    """Objects by their own key, and by the key that they concern: a pod concerns the job that owns it.

    ``keep`` says what is kept of one: all of it, if it is left out, or nothing (None).
    ``progress`` is the resourceVersion up to which every change is in here. Versions of one kind are compared
    as numbers: the server hands them out in the order in which it tells of them.
    """

    def __init__(
        self, concerns: Callable[[KubeObject], Key | None], keep: Callable[[T], T | None] = lambda one: one
    ) -> None:
        self.progress = 0
        self.lists = 0
        """How often everything was listed anew."""
        self._concerns = concerns
        self.keep = keep
        self._objects: dict[Key, T] = {}
        self._unreadable: dict[Key, Unreadable] = {}
        self._by_concern: dict[Key, dict[Key, T]] = {}

    def get(self, key: Key) -> T | None:
        return self._objects.get(key)

    def concerning(self, key: Key) -> tuple[T, ...]:
        return tuple(self._by_concern.get(key, {}).values())

    def unreadable(self, key: Key) -> Unreadable | None:
        return self._unreadable.get(key)

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())

    def put(self, found: T | Unreadable) -> set[Key]:
        """Take in one object; returns the keys that it concerned before and concerns now.

        One that cannot be read concerns its own key: nothing else is known of it.
        """
        key = found.metadata.key
        touched = self.drop(key)
        if isinstance(found, Unreadable):
            # Acting on what it said before would be worse than not acting.
            self._unreadable[key] = found
            return touched | {key}
        kept = self.keep(found)
        if kept is None:
            return touched
        self._objects[key] = kept
        concerned = self._concerns(kept)
        if concerned is not None:
            self._by_concern.setdefault(concerned, {})[key] = kept
            touched.add(concerned)
        return touched

    def drop(self, key: Key) -> set[Key]:
        if self._unreadable.pop(key, None) is not None:
            return {key}
        old = self._objects.pop(key, None)
        concerned = self._concerns(old) if old is not None else None
        if concerned is None:
            return set()
        siblings = self._by_concern[concerned]
        del siblings[key]
        if not siblings:
            del self._by_concern[concerned]
        return {concerned}

    def replace(self, found: Iterable[T | Unreadable], progress: int) -> set[Key]:
        """Make the cache equal to a fresh list; returns the keys that the difference concerns."""
        touched: set[Key] = set()
        listed: set[Key] = set()
        for one in found:
            listed.add(one.metadata.key)
            old = self._objects.get(one.metadata.key) or self._unreadable.get(one.metadata.key)
            if old is None or old.metadata.resource_version != one.metadata.resource_version:
                touched |= self.put(one)
        for key in [key for key in (*self._objects, *self._unreadable) if key not in listed]:
            touched |= self.drop(key)
        self.progress = progress
        self.lists += 1
        return touched

    def advance(self, resource_version: str) -> None:
        self.progress = max(self.progress, int(resource_version))
