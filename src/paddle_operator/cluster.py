"""What we ask of a cluster: six verbs, and the errors that they raise.

Three things stand behind this protocol: the real API server, an API server in memory, and a laptop.

    ApiError
    ├── NotFound         there is no such object
    ├── AlreadyExists    create: the name is taken
    ├── Conflict         the object has moved on, or has another UID
    ├── Gone             watch: that far back the server does not remember; list again
    ├── Invalid          the server will never accept this object
    ├── Forbidden        RBAC, quota or an admission policy says no; may change
    │   └── Unauthorized the server does not know who we are
    ├── Throttled        the server asks for a pause, of retry_after_seconds
    └── Unreachable      no answer, or a broken one: whether a write took effect is not known
"""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

from .api.meta import Key, KubeObject, Manifest, Unreadable
from .api.resources import Resource, Target

T = TypeVar("T", bound=KubeObject)


class ApiError(Exception):
    """The server, or the way to it, said no. The text is fit for people."""


class NotFound(ApiError):  # noqa: N818 (the names of the API, not of Python)
    pass


class AlreadyExists(ApiError):  # noqa: N818
    pass


class Conflict(ApiError):  # noqa: N818
    pass


class Gone(ApiError):  # noqa: N818
    pass


class Invalid(ApiError):  # noqa: N818
    pass


class Forbidden(ApiError):  # noqa: N818
    pass


class Unauthorized(Forbidden):
    pass


class Throttled(ApiError):  # noqa: N818
    def __init__(self, message: str, retry_after_seconds: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class Unreachable(ApiError):  # noqa: N818
    pass


class Verb(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True)
class Change(Generic[T]):
    """One line of a watch. A bookmark has only a version: all before it has been told."""

    verb: Verb
    resource_version: str
    object: T | Unreadable | None = None


@dataclass(frozen=True)
class Listing(Generic[T]):
    items: tuple[T | Unreadable, ...]
    resource_version: str


@dataclass(frozen=True)
class Scope:
    """Which objects of a kind: a namespace (empty: all of them) and a label selector (empty: no matter).

    ``keep`` says what the caller will keep of each, None for nothing, so that no long list is held whole.
    It is a hint: a list may pass it over, and what was kept may be handed to it again. So it has to be
    idempotent, and to leave the metadata by which an object is known.
    """

    namespace: str = ""
    selector: str = ""
    keep: Callable[[Any], Any] = lambda one: one


class Cluster(Protocol):
    async def get(self, resource: Resource[T], key: Key) -> T: ...

    async def list(self, resource: Resource[T], scope: Scope) -> Listing[T]: ...

    def watch(self, resource: Resource[T], scope: Scope, since: str) -> AsyncGenerator[Change[T], None]:
        """Every change after ``since``, until the server ends it; Gone when that is too long ago."""

    async def create(self, resource: Resource[T], manifest: Manifest) -> T: ...

    async def patch(self, target: Target, body: Manifest, *, subresource: str = "") -> KubeObject:
        """A merge patch; ``body`` carries the UID (children) or resourceVersion (status) it is for."""

    async def delete(self, target: Target, *, as_seen: bool = False, force: bool = False) -> None:
        """Delete the object with exactly this UID; Conflict if the name is held by another one.

        ``as_seen``: only in the version that the target names; Conflict if it has moved on. ``force``: a pod
        goes at once, whatever its node has to say.
        """
