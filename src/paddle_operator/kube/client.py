"""The Cluster protocol over HTTP: paths, bodies, and decoding with a guard around each object."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TypeVar

import msgspec

from paddle_operator.api.meta import Key, KubeObject, Manifest, ObjectMeta, Unreadable
from paddle_operator.api.resources import AnyResource, Resource, Target
from paddle_operator.cluster import Change, Listing, Scope, Unreachable, Verb

from .errors import Status, error_from
from .transport import Transport

T = TypeVar("T", bound=KubeObject)
R = TypeVar("R")

PAGE_SIZE = 500
# The server ends a watch after this time; until then it sends a bookmark about once a minute.
WATCH_SECONDS = 300


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class _Page(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] = []


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


class KubeCluster:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def get(self, resource: Resource[T], key: Key) -> T:
        answer = await self._transport.request("GET", path(resource, key.namespace, key.name))
        return _read_object(resource.type, answer)

    async def list(self, resource: Resource[T], scope: Scope) -> Listing[T]:
        where, query = path(resource, scope.namespace), {"limit": str(PAGE_SIZE), **_selection(scope)}
        items: list[T | Unreadable] = []
        while True:
            # No name for a page's bytes: they are gone before the next ones come.
            page = _take_in(items, resource, scope, await self._transport.request("GET", where, query=query))
            if not page.continue_:
                return Listing(tuple(items), _checked(page.resource_version))
            query["continue"] = page.continue_

    async def watch(self, resource: Resource[T], scope: Scope, since: str) -> AsyncGenerator[Change[T], None]:
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": since,
            "timeoutSeconds": str(WATCH_SECONDS),
            **_selection(scope),
        }
        async with aclosing(self._transport.lines(path(resource, scope.namespace), query)) as lines:
            async for text in lines:
                line = _read(_Line, text)
                if line.type == "ERROR":
                    raise error_from(_read(Status, line.object))
                yield _change(resource, line)

    async def create(self, resource: Resource[T], manifest: Manifest) -> T:
        where = path(resource, manifest["metadata"]["namespace"])
        answer = await self._transport.request("POST", where, body=msgspec.json.encode(manifest))
        return _read_object(resource.type, answer)

    async def patch(self, target: Target, body: Manifest, *, subresource: str = "") -> KubeObject:
        where = path(target.resource, target.key.namespace, target.key.name, subresource)
        answer = await self._transport.request(
            "PATCH", where, body=msgspec.json.encode(body), content_type="application/merge-patch+json"
        )
        return _read_object(target.resource.type, answer)

    async def delete(self, target: Target, *, as_seen: bool = False, force: bool = False) -> None:
        where = path(target.resource, target.key.namespace, target.key.name)
        preconditions = {"uid": target.uid}
        if as_seen:
            preconditions["resourceVersion"] = target.resource_version
        options: Manifest = {"preconditions": preconditions, "propagationPolicy": "Background"}
        if force:
            options["gracePeriodSeconds"] = 0
        await self._transport.request("DELETE", where, body=msgspec.json.encode(options))


def path(resource: AnyResource, namespace: str, name: str = "", subresource: str = "") -> str:
    root = f"/apis/{resource.group}" if resource.group else "/api"
    within = f"/namespaces/{namespace}" if namespace else ""
    tail = "".join(f"/{part}" for part in (name, subresource) if part)
    return f"{root}/{resource.version}{within}/{resource.plural}{tail}"


def decode_or_report(resource: Resource[T], body: bytes) -> T | Unreadable:
    """The object, or what can be known of one that does not fit our structs."""
    try:
        return msgspec.json.decode(body, type=resource.type)
    except (ValueError, RecursionError) as error:
        return Unreadable(metadata=_metadata_of(body), error=str(error))


class _Identity(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of metadata that the server sets itself, so that they are always as they should be."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _OnlyIdentity(msgspec.Struct):
    metadata: _Identity = _Identity()


def _metadata_of(body: bytes) -> ObjectMeta:
    identity = _read(_OnlyIdentity, body).metadata
    return ObjectMeta(**msgspec.structs.asdict(identity))


def _read(kind: type[R], body: bytes | msgspec.Raw) -> R:
    """For answers that must be readable; if they are not, it is as if there had been none."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (ValueError, RecursionError) as error:
        raise Unreachable(f"the server's answer cannot be read: {error}") from error


def _read_object(kind: type[T], body: bytes) -> T:
    found = _read(kind, body)
    _checked(found.metadata.resource_version)
    return found


def _checked(version: str) -> str:
    """Versions are compared as numbers, so one that is none must not come in."""
    if not version.isdecimal():
        raise Unreachable(f"the server's answer has the resourceVersion {version!r}, which is not a number")
    return version


def _take_in(items: list[T | Unreadable], resource: Resource[T], scope: Scope, body: bytes) -> _ListMeta:
    page = _read(_Page, body)
    for item in page.items:
        # A copy: a decoded object may refer to its bytes, and must not keep the whole page alive.
        found = decode_or_report(resource, bytes(item))
        kept = found if isinstance(found, Unreadable) else scope.keep(found)
        if kept is not None:
            items.append(kept)
    return page.metadata


def _change(resource: Resource[T], line: _Line) -> Change[T]:
    try:
        verb = Verb(line.type)
    except ValueError as error:
        raise Unreachable(f"the server sent a change of an unknown kind: {error}") from error
    if verb is Verb.BOOKMARK:
        return Change(verb, _checked(_metadata_of(bytes(line.object)).resource_version))
    found = decode_or_report(resource, bytes(line.object))
    return Change(verb, _checked(found.metadata.resource_version), found)


def _selection(scope: Scope) -> dict[str, str]:
    return {"labelSelector": scope.selector} if scope.selector else {}
