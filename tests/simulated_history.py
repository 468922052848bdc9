"""The true history of a simulated cluster: every change, when it came, and what was stored at any time.

It takes the place of the history in MemoryCluster, so it sees each change in the moment in which it is
stored, whoever made it, and keeps its own picture of the store. Invariants are judged on that.
"""

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from paddle_operator.api.meta import Key, Manifest
from paddle_operator.api.names import LABEL_ATTEMPT
from paddle_operator.api.resources import AnyResource
from paddle_operator.memory.history import Entry, History

NAMESPACE = "team"
EPOCH = datetime(2026, 11, 18, tzinfo=UTC)
Objects = Mapping[tuple[AnyResource, Key], Manifest]


def now() -> datetime:
    """The calendar that goes with the virtual time of the loop."""
    return EPOCH + timedelta(seconds=asyncio.get_running_loop().time())


class TrueHistory(History):
    def __init__(self) -> None:
        super().__init__()
        self.entries: list[Entry] = []
        self.objects: dict[tuple[AnyResource, Key], Manifest] = {}
        self.on_change: list[Callable[[Entry], None]] = []
        self._changed = asyncio.Event()

    def record(self, entry: Entry) -> None:
        super().record(entry)
        self.entries.append(entry)
        _apply(entry, self.objects)
        self._changed.set()
        self._changed = asyncio.Event()
        for listener in self.on_change:
            listener(entry)

    def as_of(self, version: int) -> Objects:
        """What was stored then."""
        objects: dict[tuple[AnyResource, Key], Manifest] = {}
        for entry in self.entries:
            if entry.version <= version:
                _apply(entry, objects)
        return objects

    async def reach(self, version: int) -> None:
        while self.version < version:
            await self._changed.wait()

    def of_kind(self, resource: AnyResource) -> dict[str, Manifest]:
        """By name: a simulation plays in one namespace."""
        return {key.name: document for (kind, key), document in self.objects.items() if kind == resource}


def key_of(document: Manifest) -> Key:
    return Key(document["metadata"]["namespace"], document["metadata"]["name"])


def owner_of(document: Manifest) -> str:
    """The UID of the controller; empty if there is none."""
    owners = document["metadata"].get("ownerReferences", ())
    return next((owner["uid"] for owner in owners if owner.get("controller")), "")


def attempt_of(child: Manifest) -> int:
    """The try that it was made for."""
    return int(child["metadata"].get("labels", {}).get(LABEL_ATTEMPT, "0"))


def trains(pod: Manifest) -> bool:
    """Made from a PaddleJob: a container waits for the config map. Other pods are somebody else's."""
    return any("envFrom" in container for container in pod["spec"]["containers"])


def slots_of(job: Manifest) -> list[tuple[str, int]]:
    """Role and rank of each pod that the job asks for, servers first."""
    roles = [(role, job["spec"].get(role, {"replicas": 0})["replicas"]) for role in ("ps", "worker")]
    return [(role, rank) for role, replicas in roles for rank in range(replicas)]


def intranet_of(job: Manifest) -> str:
    return job["spec"].get("intranet") or "PodIP"


def variables_of(pod: Manifest) -> dict[str, str]:
    """What the pod itself tells its training; empty where only the kubelet knows the value."""
    return {one["name"]: one.get("value", "") for one in pod["spec"]["containers"][0].get("env", ())}


def _apply(entry: Entry, objects: dict[tuple[AnyResource, Key], Manifest]) -> None:
    if entry.after is not None:
        objects[entry.resource, key_of(entry.after)] = entry.after
    elif entry.before is not None:
        del objects[entry.resource, key_of(entry.before)]
