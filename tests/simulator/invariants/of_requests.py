"""What must hold of every request of the manager when it arrives, on the store before it has an effect.

The numbers are those of rules.py.
"""

from math import inf

import msgspec

from paddle_operator.api.meta import Manifest
from paddle_operator.api.names import pod_name
from paddle_operator.api.resources import CONFIG_MAPS, EVENTS, PADDLE_JOBS, PODS, SERVICES
from simulator.history import FINAL, NAMESPACE, Objects, attempt_of, owner_of, slots_of
from simulator.witness import Request

CHILDREN = (PODS, SERVICES, CONFIG_MAPS)
# Workloads put this into their templates, where a user would have a password.
SECRET = "correct-horse-battery-staple"


def no_decision_forgets_our_own_writes(request: Request, _: Objects) -> bool:
    """14: no decision on a cache that has not shown what this process wrote before."""
    return request.turn is None or not request.turn.behind_own_writes


def no_child_is_made_for_a_job_that_is_over(request: Request, _: Objects) -> bool:
    """2: no child for a UID that is absent, being deleted, suspended or terminal in the newest state seen."""
    if request.verb != "create" or request.resource not in CHILDREN:
        return True
    assert request.turn is not None
    job = request.turn.job
    over = job.status.finished or job.metadata.terminating or job.run_policy.suspend
    return not over and owner_of(request.body) == job.uid


def every_change_of_a_child_names_its_uid(request: Request, _: Objects) -> bool:
    """3: every delete or patch of a child carries a UID precondition."""
    return request.verb not in {"patch", "delete"} or bool(request.uid)


def only_children_of_the_job_are_changed(request: Request, objects: Objects) -> bool:
    """3: no object that is not owned by the job is ever changed. (Another UID, the server refuses.)"""
    if request.verb not in {"patch", "delete"} or request.resource not in CHILDREN:
        return True
    assert request.turn is not None
    found = objects.get((request.resource, request.key))
    if found is None or found["metadata"]["uid"] != request.uid:
        return True
    return owner_of(found) == request.turn.job.uid


def a_child_without_a_slot_is_left_alone(request: Request, objects: Objects) -> bool:
    """24: unknown or contradictory children are not counted, not deleted.

    A job that was suspended may have had more slots than now: of those none is made, but some may have to go.
    What it has now may have been asked for by name since the turn began.
    """
    if not request.is_write or request.resource != PODS:
        return True
    assert request.turn is not None
    job = request.turn.job
    slots = {(role.value, index) for role, spec in job.roles.items() for index in range(spec.replicas)}
    stored = objects.get((PADDLE_JOBS, job.metadata.key))
    if stored is not None and stored["metadata"]["uid"] == job.uid:
        slots.update(slots_of(stored))
    if request.verb == "delete":
        slots |= objects.slots[job.uid]
    return request.key.name in {pod_name(job.metadata.name, *slot) for slot in slots}


def every_request_stays_in_its_namespace(request: Request, _: Objects) -> bool:
    """13: every request made for a namespaced job stays in its namespace."""
    return request.key.namespace == NAMESPACE


def nothing_known_to_exist_is_made_again(request: Request, objects: Objects) -> bool:
    """14: no create of what this process was told to be there, for the same job."""
    found = objects.get((request.resource, request.key)) if request.verb == "create" else None
    if found is None or owner_of(found) != owner_of(request.body):
        return True
    told_at = request.process.alive.get(found["metadata"]["uid"], inf)
    # In the same moment: perhaps after it had looked.
    return request.turn is None or told_at >= request.turn.at


def nothing_is_deleted_twice(request: Request, _: Objects) -> bool:
    """14: a process that was answered does not ask again, but by force."""
    again = request.verb == "delete" and request.uid in request.process.deleted
    return not again or bool(request.body["force"])


def nothing_of_a_try_is_deleted_before_the_next_is_written(request: Request, objects: Objects) -> bool:
    """7: what must be counted is written ahead: else a crash would lose it, or count it twice."""
    pod = objects.get((request.resource, request.key))
    if request.verb != "delete" or request.resource != PODS or pod is None:
        return True
    if pod["metadata"]["uid"] != request.uid:
        return True  # another one is meant, and the server refuses
    owners = [one for (kind, _), one in objects.items() if kind == PADDLE_JOBS]
    job = next((one for one in owners if one["metadata"]["uid"] == owner_of(pod)), None)
    if job is None or job.get("status", {}).get("phase") in FINAL:
        return True
    return bool(attempt_of(pod) < job.get("status", {}).get("attempt", 0))


def an_event_is_short(request: Request, _: Objects) -> bool:
    """16: the message of an event has at most 1 KiB."""
    return request.resource != EVENTS or len(request.body["message"].encode()) <= 1024


def a_job_is_only_written_to_as_it_was_read(request: Request, _: Objects) -> bool:
    """17: status writes are conditional; spec and fields of others are never written."""
    if request.resource != PADDLE_JOBS or not request.is_write:
        return True
    metadata = request.body.get("metadata", {})
    conditional = bool(metadata.get("uid") and metadata.get("resourceVersion"))
    parts, fields = set(request.body) - {"metadata"}, set(metadata) - {"uid", "resourceVersion"}
    if request.subresource == "status":
        return conditional and parts == {"status"} and not fields
    if request.verb == "delete":
        return bool(request.uid)  # its time is over
    return request.verb == "patch" and conditional and not parts and fields == {"finalizers"}


def no_secret_is_told(request: Request, _: Objects) -> bool:
    """22: no secret byte in status, events or names. (A pod has the user's template, as it must.)"""
    told = request.key.name if request.resource == PODS else (request.key.name, request.body)
    return SECRET.encode() not in msgspec.json.encode(told)


def no_patch_says_what_is_known(request: Request, stored: Manifest | None, changed: bool) -> bool:
    """14: no write carries content equal to what is stored, if the process had been shown that."""
    if request.verb != "patch" or changed or stored is None:
        return True
    shown = request.turn.shown.get(request.resource, 0) if request.turn is not None else 0
    return shown < int(stored["metadata"]["resourceVersion"])


OF_A_REQUEST = (
    no_decision_forgets_our_own_writes,
    no_child_is_made_for_a_job_that_is_over,
    every_change_of_a_child_names_its_uid,
    only_children_of_the_job_are_changed,
    a_child_without_a_slot_is_left_alone,
    every_request_stays_in_its_namespace,
    nothing_known_to_exist_is_made_again,
    nothing_is_deleted_twice,
    nothing_of_a_try_is_deleted_before_the_next_is_written,
    an_event_is_short,
    a_job_is_only_written_to_as_it_was_read,
    no_secret_is_told,
)
OF_AN_ANSWER = (no_patch_says_what_is_known,)
