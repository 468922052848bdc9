"""The Cluster protocol without a server: versions, UIDs, conflicts, graceful deletion, owners, sub-resources.

Its scope is closed. tests/contract says what it does, and runs against a real API server with the same
results; what is not in that list it refuses with a NotImplementedError that names the gap, because a stand-in
that guesses is worse than none. Not played: CEL rules, admission, RBAC, quotas, defaults of pods, apply.
"""

import re
from collections.abc import AsyncGenerator, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from paddle_operator.api.core import ENDED_PHASES
from paddle_operator.api.meta import Key, KubeObject, Manifest
from paddle_operator.api.resources import (
    CONFIG_MAPS,
    EVENTS,
    LEASES,
    PADDLE_JOBS,
    PODS,
    SERVICES,
    AnyResource,
    Resource,
    Target,
)
from paddle_operator.api.schema_check import Schema, check
from paddle_operator.cluster import AlreadyExists, Change, Conflict, Invalid, Listing, NotFound, Scope

from .history import Entry, History, matches, seen_through
from .schema import pruned, with_defaults

T = TypeVar("T", bound=KubeObject)

KINDS: tuple[AnyResource, ...] = (PADDLE_JOBS, PODS, SERVICES, CONFIG_MAPS, EVENTS, LEASES)
HAVE_STATUS = frozenset({PADDLE_JOBS, PODS})
GRACE_SECONDS = 30
# A service's name becomes a host's. Of all others, which are freer, the names are not checked here.
SERVICE_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")


class MemoryCluster:
    def __init__(self, now: Callable[[], datetime], schemas: Mapping[AnyResource, Schema]) -> None:
        self.history = History()
        self._now = now
        self._schemas = schemas
        self._objects: dict[tuple[AnyResource, Key], Manifest] = {}
        self._born = 0

    # The protocol.

    async def get(self, resource: Resource[T], key: Key) -> T:
        return _decode(resource, self._find(resource, key))

    async def list(self, resource: Resource[T], scope: Scope) -> Listing[T]:
        found = [one for (kind, _), one in self._objects.items() if kind == resource and matches(one, scope)]
        items = tuple(_decode(resource, one) for one in found)
        return Listing(items, str(self.history.version))

    async def watch(self, resource: Resource[T], scope: Scope, since: str) -> AsyncGenerator[Change[T], None]:
        async for entry in self.history.since(int(since), resource):
            if (told := seen_through(entry, scope)) is not None:
                verb, document = told
                yield Change(verb, str(entry.version), _decode(resource, document))

    async def create(self, resource: Resource[T], manifest: Manifest) -> T:
        manifest = _as_sent(manifest)
        metadata = manifest["metadata"]
        if resource not in KINDS or "generateName" in metadata:
            raise NotImplementedError(f"create {resource} {metadata}: kind or generateName is not played")
        key = Key(metadata["namespace"], metadata["name"])
        if (resource, key) in self._objects:
            raise AlreadyExists(f'{resource} "{key.name}" already exists')
        if resource == SERVICES and not SERVICE_NAME.fullmatch(key.name):
            raise Invalid(
                f"metadata.name: {key.name!r} is no name of a service: at most 63 lower-case letters, digits "
                "and dashes, with a letter first and no dash last"
            )
        document = self._accepted(resource, {**manifest, "metadata": self._newborn(metadata)})
        if resource in HAVE_STATUS:
            document.pop("status", None)
        if resource == PODS:
            document["status"] = {"phase": "Pending"}
        return _decode(resource, self._store(resource, None, document))

    async def patch(self, target: Target, body: Manifest, *, subresource: str = "") -> KubeObject:
        resource, old, body = target.resource, self._find(target.resource, target.key), _as_sent(body)
        self._refuse_outdated(resource, old, body)
        if subresource not in {"", "status"} or (subresource and resource not in HAVE_STATUS):
            raise NotImplementedError(f"sub-resource {resource}/{subresource} is not played")
        changed = _merged(old, body)
        new = {**old, "status": changed.get("status")} if subresource else {**changed}
        if not subresource and resource in HAVE_STATUS:
            new["status"] = old.get("status")
        fixed = {name: old["metadata"][name] for name in _SET_BY_SERVER if name in old["metadata"]}
        new["metadata"] = {**new["metadata"], **fixed}
        if new.get("status") is None:
            new.pop("status", None)
        return _decode(resource, self._replace(resource, old, self._accepted(resource, new, old)))

    async def delete(self, target: Target, *, as_seen: bool = False, force: bool = False) -> None:
        old = self._find(target.resource, target.key)
        if target.uid and old["metadata"]["uid"] != target.uid:
            raise Conflict(f"the UID in the precondition ({target.uid}) is not the object's")
        if as_seen and target.resource_version != old["metadata"]["resourceVersion"]:
            raise Conflict("the object has been modified since the version in the precondition")
        if force and target.resource != PODS:
            raise NotImplementedError(f"delete of {target.resource} by force is not played")
        if force or "deletionTimestamp" not in old["metadata"]:
            self._begin_deletion(target.resource, old, at_once=force)

    # What others do in a cluster: the scheduler, the kubelet, the garbage collector.

    def manifest(self, resource: AnyResource, key: Key) -> Manifest | None:
        """The whole object, of which the protocol shows only the fields that we read. Not to be changed."""
        return self._objects.get((resource, key))

    def bind(self, key: Key, node: str) -> None:
        old = self._find(PODS, key)
        self._replace(PODS, old, {**old, "spec": {**old["spec"], "nodeName": node}})

    def finish_deletion(self, key: Key) -> None:
        """The kubelet's last word: the containers are gone."""
        self._remove(PODS, self._find(PODS, key))

    def collect_garbage(self) -> int:
        """Delete what is owned by nobody who lives; returns how many objects that were."""
        alive = {document["metadata"]["uid"] for document in self._objects.values()}
        orphans = [
            (resource, document)
            for (resource, _), document in self._objects.items()
            if (owners := document["metadata"].get("ownerReferences"))
            and not any(owner["uid"] in alive for owner in owners)
            and "deletionTimestamp" not in document["metadata"]
        ]
        for resource, document in orphans:
            self._begin_deletion(resource, document)
        return len(orphans)

    # Storage.

    def _find(self, resource: AnyResource, key: Key) -> Manifest:
        try:
            return self._objects[resource, key]
        except KeyError:
            raise NotFound(f'{resource} "{key.name}" not found') from None

    def _newborn(self, metadata: Manifest) -> Manifest:
        self._born += 1
        return {
            **metadata,
            "uid": f"00000000-0000-4000-8000-{self._born:012x}",
            "creationTimestamp": _stamp(self._now()),
            "generation": 1,
        }

    def _accepted(self, resource: AnyResource, document: Manifest, old: Manifest | None = None) -> Manifest:
        """As the server would store it, or Invalid. What a patch has not touched was accepted before."""
        schema = self._schemas.get(resource)
        if schema is None:
            return document
        untouched = {name: item for name, item in (old or {}).items() if document.get(name) is item}
        # Metadata is the server's own affair; no schema speaks of it.
        fresh = {name: item for name, item in document.items() if name not in untouched} | {"metadata": {}}
        kept: Manifest = with_defaults(pruned(fresh, schema), schema)
        required = [name for name in schema.get("required", ()) if name not in untouched]
        if problems := [str(problem) for problem in check(kept, {**schema, "required": required}, "")]:
            raise Invalid("; ".join(problems))
        whole = {**kept, **untouched, "metadata": document["metadata"]}
        return {name: whole[name] for name in (*document, *kept) if name in whole}

    def _refuse_outdated(self, resource: AnyResource, old: Manifest, body: Manifest) -> None:
        given, have = body.get("metadata", {}), old["metadata"]
        if given.get("resourceVersion", have["resourceVersion"]) != have["resourceVersion"]:
            raise Conflict("the object has been modified; apply your changes to the latest version")
        if given.get("uid", have["uid"]) != have["uid"]:
            raise Invalid(f"{resource}: metadata.uid: field is immutable")

    def _begin_deletion(self, resource: AnyResource, document: Manifest, *, at_once: bool = False) -> None:
        """At once, unless a finalizer or a kubelet has a say; by force only a finalizer has."""
        grace = 0
        if _ends_gracefully(resource, document) and not at_once:
            grace = document.get("spec", {}).get("terminationGracePeriodSeconds", GRACE_SECONDS)
        if not grace and not document["metadata"].get("finalizers"):
            self._remove(resource, document)
            return
        due = self._now() + timedelta(seconds=grace)
        mark = {"deletionTimestamp": _stamp(due), "deletionGracePeriodSeconds": grace}
        self._replace(resource, document, {**document, "metadata": {**document["metadata"], **mark}})

    def _replace(self, resource: AnyResource, old: Manifest, new: Manifest) -> Manifest:
        if new == old:
            return old
        if new.get("spec") != old.get("spec") and resource == PADDLE_JOBS:
            new["metadata"]["generation"] = old["metadata"]["generation"] + 1
        freed = "deletionTimestamp" in new["metadata"] and not new["metadata"].get("finalizers")
        if freed and old["metadata"].get("finalizers") and not new["metadata"]["deletionGracePeriodSeconds"]:
            self._remove(resource, old)
            return new
        return self._store(resource, old, new)

    def _store(self, resource: AnyResource, old: Manifest | None, new: Manifest) -> Manifest:
        version = self.history.next_version()
        new["metadata"] = {**new["metadata"], "resourceVersion": str(version)}
        key = Key(new["metadata"]["namespace"], new["metadata"]["name"])
        self._objects[resource, key] = new
        self.history.record(Entry(version, resource, old, new))
        return new

    def _remove(self, resource: AnyResource, document: Manifest) -> None:
        key = Key(document["metadata"]["namespace"], document["metadata"]["name"])
        del self._objects[resource, key]
        self.history.record(Entry(self.history.next_version(), resource, document, None))


_SET_BY_SERVER = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def _as_sent(document: Manifest) -> Manifest:
    """Through bytes and back, as over a wire: nobody keeps a hand on what is stored."""
    sent: Manifest = msgspec.json.decode(msgspec.json.encode(document))
    return sent


def _merged(old: Any, changes: Any) -> Any:
    """RFC 7386."""
    if not isinstance(changes, dict):
        return changes
    result = dict(old) if isinstance(old, dict) else {}
    for name, value in changes.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), value)
    return result


def _ends_gracefully(resource: AnyResource, document: Manifest) -> bool:
    """A pod that may have containers: its kubelet has the last word."""
    bound = bool(document.get("spec", {}).get("nodeName"))
    return resource == PODS and bound and document["status"]["phase"] not in ENDED_PHASES


def _stamp(now: datetime) -> str:
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def _decode(resource: Resource[T], document: Manifest) -> T:
    return msgspec.json.decode(msgspec.json.encode(document), type=resource.type)
