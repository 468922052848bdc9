"""The vocabulary of decisions: a plan is a value that can be compared, printed, carried out or thrown away.

    Plan = steps, one after the other; a step = actions that may run at once; then sleep until wake_at

Guarantees that the executor gives: an action is sent only when every action of the steps before it has
succeeded; each change of an existing object carries that object's UID; an event goes out only after the
steps before it. Nothing else is promised: the next pass looks at the world again and plans anew.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .api.meta import Manifest
from .api.resources import AnyResource, Target


@dataclass(frozen=True)
class Create:
    resource: AnyResource
    manifest: Manifest
    identity: tuple[str, ...] = ()
    """Labels by which one of ours that has the name already is known to be this one, not of another time."""
    or_unmarked: bool = False
    """One that lacks these labels is taken for this one, too, and gets them."""


@dataclass(frozen=True)
class Patch:
    """A merge patch. What is planned for a child has no resourceVersion: the kubelet writes there, too."""

    target: Target
    body: Manifest
    purpose: str


@dataclass(frozen=True)
class Delete:
    target: Target
    as_seen: bool = False
    """Only if it has not changed since: the reason for it may be gone."""
    force: bool = False
    """At once, without a word from its node."""


@dataclass(frozen=True)
class SetStatus:
    """A merge patch of the status, refused by the server if the object has moved on since we read it."""

    target: Target
    changes: Manifest


# What an event may hold; a condition says the same.
LONGEST_MESSAGE = 1024


@dataclass(frozen=True)
class Emit:
    about: Target
    warning: bool
    reason: str
    message: str


Action = Create | Patch | Delete | SetStatus | Emit
Step = tuple[Action, ...]


@dataclass(frozen=True)
class Plan:
    steps: tuple[Step, ...] = ()
    wake_at: datetime | None = None
    deadline_at: datetime | None = None
    """The same, also if a step fails: what is tried again may be tried later than that."""


@dataclass(frozen=True)
class Refusal:
    """A create that the server turned down for good: a fact that the next decision may look at."""

    resource: AnyResource
    name: str
    taken: bool
    """The name is held by an object of somebody else; otherwise quota, admission or validation said no."""
    message: str


def merge_patch(old: Any, new: Any) -> Manifest:
    """The smallest merge patch (RFC 7386) from one JSON object to another; empty if they are equal."""
    changes: Manifest = {name: None for name in old if name not in new}
    for name, value in new.items():
        before = old.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            if inner := merge_patch(before, value):
                changes[name] = inner
        elif name not in old or before != value:
            changes[name] = value
    return changes
