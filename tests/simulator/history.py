"""The true history of a simulated cluster: every change, when it came, and what was stored at any time.

It takes the place of the history in MemoryCluster, so it sees each change in the moment in which it is
stored, whoever made it, and keeps its own picture of the store. Invariants are judged on that.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from paddle_operator.api.meta import Key, Manifest
from paddle_operator.api.names import COMPLETED, FAILED, LABEL_ATTEMPT
from paddle_operator.api.resources import PADDLE_JOBS, AnyResource
from paddle_operator.memory.history import Entry, History

NAMESPACE = "team"
FINAL = {COMPLETED, FAILED}
EPOCH = datetime(2026, 11, 18, tzinfo=UTC)


class Objects(dict[tuple[AnyResource, Key], Manifest]):
    """What is stored; and what is remembered of all that ever was."""

    def __init__(self) -> None:
        super().__init__()
        self.owners: dict[str, str] = {}
        """UIDs of controllers, by the UID of what they own."""
        self.slots: dict[str, set[tuple[str, int]]] = defaultdict(set)
        """Of a job, by its UID, all that it ever asked for."""

    def apply(self, entry: Entry) -> None:
        if entry.after is None:
            if entry.before is not None:
                del self[entry.resource, key_of(entry.before)]
            return
        self[entry.resource, key_of(entry.after)] = entry.after
        uid = entry.after["metadata"]["uid"]
        self.owners[uid] = owner_of(entry.after)
        if entry.resource == PADDLE_JOBS:
            self.slots[uid].update(slots_of(entry.after))


def now() -> datetime:
    """The calendar that goes with the virtual time of the loop."""
    return EPOCH + timedelta(seconds=asyncio.get_running_loop().time())


class TrueHistory(History):
    def __init__(self) -> None:
        super().__init__()
        self.entries: list[Entry] = []
        self.objects = Objects()
        self.on_change: list[Callable[[Entry], None]] = []
        self._by_kind: dict[AnyResource, dict[str, Manifest]] = defaultdict(dict)
        self._changed = asyncio.Event()

    def record(self, entry: Entry) -> None:
        super().record(entry)
        self.entries.append(entry)
        self.objects.apply(entry)
        self._sort_in(entry)
        self._changed.set()
        self._changed = asyncio.Event()
        for listener in self.on_change:
            listener(entry)

    def as_of(self, version: int) -> Objects:
        """What was stored then."""
        objects = Objects()
        for entry in self.entries:
            if entry.version <= version:
                objects.apply(entry)
        return objects

    async def reach(self, version: int) -> None:
        while self.version < version:
            await self._changed.wait()

    def of_kind(self, resource: AnyResource) -> dict[str, Manifest]:
        """By name: a simulation plays in one namespace. As it is now, whatever changes later."""
        return self._by_kind[resource].copy()

    def _sort_in(self, entry: Entry) -> None:
        kind = self._by_kind[entry.resource]
        if entry.after is not None:
            kind[entry.after["metadata"]["name"]] = entry.after
        elif entry.before is not None:
            del kind[entry.before["metadata"]["name"]]


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
