"""The metadata that every Kubernetes object shares, cut down to the fields that we read."""

from datetime import datetime
from typing import Annotated, Any, NamedTuple

import msgspec


class Record(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """The base of all objects: immutable, camelCase on the wire, defaults left out.

    None can refer to itself, so the garbage collector need not go through ten thousands of them.
    """


Manifest = dict[str, Any]
"""An object as we send it: plain JSON values."""


class Key(NamedTuple):
    """What the queue holds and what people type: namespace and name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class OwnerReference(Record, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(Record, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)

    @property
    def terminating(self) -> bool:
        return self.deletion_timestamp is not None

    @property
    def controller(self) -> OwnerReference | None:
        for owner in self.owner_references:
            if owner.controller:
                return owner
        return None

    def controlled_by(self, uid: str) -> bool:
        owner = self.controller
        return owner is not None and owner.uid == uid


class KubeObject(Record, frozen=True):
    """Anything that the server keeps."""

    metadata: ObjectMeta


class Unreadable(KubeObject, frozen=True):
    """Stands in for an object that does not decode, so that it harms no other."""

    error: str


class Condition(Record, frozen=True):
    type: Annotated[
        str,
        msgspec.Meta(
            description="Created, Running, Restarting, Suspended, Completed or Failed.", max_length=64
        ),
    ]
    status: Annotated[str, msgspec.Meta(description="True, False or Unknown.", max_length=16)]
    reason: Annotated[str, msgspec.Meta(description="One CamelCase word for programs.", max_length=256)] = ""
    message: Annotated[str, msgspec.Meta(description="One sentence for people.", max_length=4096)] = ""
    last_transition_time: Annotated[
        datetime | None, msgspec.Meta(description="When the status last changed.")
    ] = None
    observed_generation: Annotated[
        int, msgspec.Meta(description="The generation of the spec that this speaks of.")
    ] = 0


def set_condition(conditions: tuple[Condition, ...], wanted: Condition) -> tuple[Condition, ...]:
    """Conditions with ``wanted`` in its place: one per type, order kept, others untouched.

    ``last_transition_time`` of the old one survives unless the status moves.
    """
    for position, old in enumerate(conditions):
        if old.type == wanted.type:
            if old.status == wanted.status:
                wanted = msgspec.structs.replace(wanted, last_transition_time=old.last_transition_time)
            return (*conditions[:position], wanted, *conditions[position + 1 :])
    return (*conditions, wanted)


def find_condition(conditions: tuple[Condition, ...], kind: str) -> Condition | None:
    return next((condition for condition in conditions if condition.type == kind), None)
