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
from paddle_operator.api.resources import PADDLE_JOBS, PODS, AnyResource
from paddle_operator.memory.history import Entry, History

NAMESPACE = "team"
PORTS_OF_A_POD = 20
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
        self.attempts: dict[str, int] = {}
        """By the UID of a child, the one that it was made for: labels may be taken off later."""
        self.given_up: dict[str, set[int]] = defaultdict(set)
        """Of a job, by its UID, the tries in which nobody began, as an older job had the same ports."""

    def apply(self, entry: Entry) -> None:
        if entry.after is None:
            if entry.before is not None:
                del self[entry.resource, key_of(entry.before)]
            return
        self[entry.resource, key_of(entry.after)] = entry.after
        uid = entry.after["metadata"]["uid"]
        self.owners[uid] = owner_of(entry.after)
        self.attempts.setdefault(uid, attempt_of(entry.after))
        if entry.resource == PADDLE_JOBS:
            self.slots[uid].update(slots_of(entry.after))
            if gives_way(entry, self):
                self.given_up[uid].add(_try_of(entry.before))

    def try_of(self, child: Manifest) -> int:
        """The try that it was made for, of those in which somebody could begin."""
        attempt = attempt_of(child)
        return attempt - sum(one < attempt for one in self.given_up[owner_of(child)])


def gives_way(entry: Entry, objects: Objects) -> bool:
    """A job on the host network begins anew on other ports: an older one has some of its own.

    Two managers that lead at once have given them out; and none of its pods has begun.
    """
    before, after = entry.before, entry.after
    if entry.resource != PADDLE_JOBS or before is None or after is None:
        return False
    is_moved = bool(before.get("status", {}).get("hostPort")) and "hostPort" not in after["status"]
    rivals = [
        one for (kind, _), one in objects.items() if kind == PADDLE_JOBS and _age_of(one) < _age_of(before)
    ]
    return (
        is_moved
        and _try_of(after) == _try_of(before) + 1
        and any(_share_ports(one, before) for one in rivals if _phase_of(one) not in FINAL)
        and not _has_begun(before, objects)
    )


def _has_begun(job: Manifest, objects: Objects) -> bool:
    """Somebody, in the try at hand."""
    pods = [
        one
        for (kind, _), one in objects.items()
        if kind == PODS and owner_of(one) == job["metadata"]["uid"] and attempt_of(one) == _try_of(job)
    ]
    return any(pod["status"]["phase"] != "Pending" for pod in pods)


def _phase_of(job: Manifest) -> str:
    """Empty before anybody has seen it."""
    return str(job.get("status", {}).get("phase", ""))


def _share_ports(one: Manifest, other: Manifest) -> bool:
    first, second = (job.get("status", {}).get("hostPort", 0) for job in (one, other))
    ends = (first + PORTS_OF_A_POD * len(slots_of(one)), second + PORTS_OF_A_POD * len(slots_of(other)))
    return bool(first and second) and max(first, second) < min(ends)


def _age_of(job: Manifest) -> tuple[str, str]:
    return job["metadata"]["creationTimestamp"], job["metadata"]["uid"]


def _try_of(job: Manifest | None) -> int:
    return int((job or {}).get("status", {}).get("attempt", 0))


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
    """The try that it was made for, as it says."""
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
