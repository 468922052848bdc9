"""What must hold of writes that the server refuses, once all is at rest. Numbers: rules.py.

A conflict is no refusal: something has changed, and the next try is another one.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from paddle_operator.api.meta import Key
from paddle_operator.api.names import CREATED, REFUSED
from paddle_operator.api.resources import EVENTS, PADDLE_JOBS, AnyResource
from paddle_operator.cluster import ApiError, Conflict, Forbidden, Invalid, Throttled

if TYPE_CHECKING:
    from simulator.life import Life

FIRST_TRIES = 5
HURRY_SECONDS = 1.0


class Wish(NamedTuple):
    """What one process wants to be done, for one job."""

    process: int
    job: str
    verb: str
    resource: AnyResource
    key: Key
    uid: str
    parts: tuple[str, ...]
    """Of the object: to stop a pod is another wish than to touch it."""


class Answer(NamedTuple):
    at: float
    error: ApiError


def what_is_refused_is_not_asked_in_haste(life: "Life") -> bool:
    """28: no write is tried again faster than once a second, once it was refused a few times.

    After another error than before it is. Where a server asks for patience an executor waits by itself, and
    that says nothing of how often it was refused otherwise: those are counted by themselves.
    """
    counted = [
        [answer for answer in found if isinstance(answer.error, Throttled) is asks_for_patience]
        for found in _refused(life).values()
        for asks_for_patience in (True, False)
    ]
    return all(
        later.at - earlier.at >= HURRY_SECONDS
        for found in counted
        for earlier, later in pairwise(found[FIRST_TRIES - 1 :])
        if type(earlier.error) is type(later.error)
    )


def what_may_not_be_made_is_said(life: "Life") -> bool:
    """28: a child that the server does not let in is told of in a condition within 5 tries."""
    said = {*_said(life)}
    refused = _refused(life, Forbidden, Invalid).items()
    long = [wish for wish, found in refused if wish.verb == "create" and len(found) > FIRST_TRIES]
    return all(wish.resource == EVENTS or wish.job in said for wish in long)


OF_REFUSALS = (what_is_refused_is_not_asked_in_haste, what_may_not_be_made_is_said)


def _refused(life: "Life", *errors: type[Exception]) -> dict[Wish, list[Answer]]:
    """When and how each wish was refused, in the order of time."""
    found: dict[Wish, list[Answer]] = defaultdict(list)
    for request, error in life.witness.refusals:
        if request.turn is None or isinstance(error, Conflict) or not isinstance(error, errors or Exception):
            continue
        asked = (request.verb, request.resource, request.key, request.uid, tuple(request.body))
        found[Wish(id(request.process), request.turn.job.uid, *asked)].append(Answer(request.at, error))
    return found


def _said(life: "Life") -> Iterator[str]:
    """UIDs of jobs that were told of it."""
    for change in life.witness.changes:
        job = change.entry.after
        if change.entry.resource != PADDLE_JOBS or job is None:
            continue
        conditions = job.get("status", {}).get("conditions", ())
        if any(one["type"] == CREATED and one["reason"] == REFUSED for one in conditions):
            yield job["metadata"]["uid"]
