"""The checklist: what shall be done about one PaddleJob, given what is seen. All branching is here."""

from datetime import datetime, timedelta
from itertools import chain

import msgspec

from paddle_operator.api.meta import Manifest
from paddle_operator.api.names import ENV_DROPPED, LABEL_ATTEMPT, NO_ACCELERATOR
from paddle_operator.api.paddlejob import PaddleJobStatus, Phase, Role
from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS, AnyResource, Target
from paddle_operator.plan import Create, Emit, Plan, Step

from . import ports
from .cleanup import clean_up
from .config_map import missing_config_map
from .deadlines import active_until, expire, expires_at, missed_deadline, started_by
from .failures import find_failure
from .finalizer import release
from .limits import may_restart
from .news import write_due, write_status
from .nudge import next_nudge, nudges
from .observed import Observed
from .obstacles import End, Obstacle, find_obstacle
from .pods import build_pod, dropped_variables_of, unknown_resources_of
from .relabel import relabel
from .restarts import backed_off_until
from .services import missing_services
from .status import (
    failed_status,
    moved_status,
    next_status,
    resized_status,
    restarted_status,
    resumed_status,
    suspended_status,
    swept_status,
)
from .suspension import is_suspended
from .sweep import next_look, sweep
from .waiting import next_wonder

# Not everything that stands in the way is shown to us when it goes: somebody else's config map is not.
LOOK_AGAIN_AFTER = timedelta(seconds=10)
DROPPED = "the operator decides about {}; the values in the template are not used"
TAKEN_FOR_NONE = (
    "{} is not known to be an accelerator, so Paddle is told to use the CPU (PADDLE_DISTRI_BACKEND=gloo); "
    'write the annotation paddlepaddle.org/accelerator: "true" on the job if it is one, else "false"'
)


def reconcile(seen: Observed) -> Plan:
    job = seen.job
    if released := release(seen):
        return _plan(released)
    if job.metadata.terminating:
        return _say_terminating(seen)
    if job.status.finished:
        return _after_the_end(seen)
    if is_suspended(seen) or job.status.phase == Phase.SUSPENDED:
        return _suspended(seen)
    if seen.was_resized:
        return _begun_anew(seen, resized_status(seen))

    left = seen.leftovers
    obstacle = find_obstacle(seen) if not left else None
    if not seen.is_trained and (late := missed_deadline(seen, obstacle)):
        return _end(seen, failed_status(seen, late))
    if left and not seen.reads_an_old_list:
        return _swept(seen)
    if (pause := backed_off_until(seen)) is not None:
        return _plan(wake_at=_earliest(pause, *_deadlines(seen)))

    failure, counts, open_until = find_failure(seen)
    if failure is not None and may_restart(seen, failure, counts):
        return _begun_anew(seen, restarted_status(seen, failure, counts))
    if failure is not None:
        return _end(seen, failed_status(seen, failure, counts))
    blocked = obstacle is not None and obstacle.stops_creation
    if not blocked and ports.are_due(seen):
        # Written before the first pod, so that they are the same after a crash.
        return _plan(*write_status(seen, ports.with_ports(seen)))
    return _on_the_way(seen, obstacle, open_until)


def _on_the_way(seen: Observed, obstacle: Obstacle | None, open_until: datetime | None) -> Plan:
    if seen.ports_are_of:
        return _begun_anew(seen, moved_status(seen))
    status = next_status(seen, obstacle)
    if status.finished:
        return _end(seen, status)
    said = write_status(seen, status)
    touched = (*relabel(seen), *nudges(seen))
    wake_at = _earliest(open_until, _wake_at(seen, status, obstacle))
    deadline_at = _earliest(*_deadlines(seen))
    if obstacle is None:
        return _plan(*children(seen), *_followed(said, touched), wake_at=wake_at, deadline_at=deadline_at)
    # An obstacle is said first, because what follows may be refused again.
    made = () if obstacle.stops_creation else children(seen)
    # If nothing refuses them any more, that all are made is written in the same turn: whoever misses a pod
    # later has to know that it was there.
    made_all = write_status(seen, next_status(seen, None), at_once=True) if any(made) and not said else ()
    return _plan(*said, *made, *_followed(made_all, touched), wake_at=wake_at, deadline_at=deadline_at)


def _end(seen: Observed, status: PaddleJobStatus) -> Plan:
    """How it ended is written before anything is deleted."""
    ended = seen.with_status(status)
    cleaned = (*clean_up(ended, Phase(status.phase)), *sweep(ended))
    return _plan(*_followed(write_status(seen, status), cleaned))


def _after_the_end(seen: Observed) -> Plan:
    cleaned = clean_up(seen, Phase(seen.job.status.phase))
    wake_at = _earliest(expires_at(seen), next_look(seen))
    return _plan(cleaned, sweep(seen), expire(seen), wake_at=wake_at)


def _begun_anew(seen: Observed, status: PaddleJobStatus) -> Plan:
    """A new try is written before anything of the old one is deleted."""
    after = seen.with_status(status)
    return _plan(*_followed(write_status(seen, status), sweep(after)), wake_at=backed_off_until(after))


def _suspended(seen: Observed) -> Plan:
    """It shall be, is, or shall not be any more: then it is resumed, once its old pods are gone."""
    if seen.job.status.phase != Phase.SUSPENDED:
        return _begun_anew(seen, suspended_status(seen))
    if is_suspended(seen) or seen.leftovers:
        return _swept(seen)
    return _plan(*write_status(seen, resumed_status(seen)))


def _swept(seen: Observed) -> Plan:
    status = swept_status(seen)
    deadline_at = _earliest(*_deadlines(seen))
    wake_at = _earliest(next_look(seen), _write_due(seen, status), deadline_at)
    return _plan(*write_status(seen, status), sweep(seen), wake_at=wake_at, deadline_at=deadline_at)


def children(seen: Observed) -> tuple[Step, ...]:
    """What is missing now, in its order.

    Where names tell who the peers are, all at once: the config map, services, pods. Else all pods, and the
    config map once they have addresses. Pods of servers are made before those of workers.
    """
    found = missing_config_map(seen)
    config_map: Step = (_create(seen, CONFIG_MAPS, found),) if found else ()
    pods = tuple(_pod_creates(seen, role) for role in seen.job.roles)
    steps = (config_map, missing_services(seen), *pods, _warnings(seen))
    return _one_ahead(steps) if seen.refusals else steps


def _pod_creates(seen: Observed, role: Role) -> Step:
    return tuple(
        _create(seen, PODS, build_pod(seen.job, slot, seen.settings.init_image))
        for slot in seen.missing.values()
        if slot.role is role
    )


def _create(seen: Observed, resource: AnyResource, manifest: Manifest) -> Create:
    """What the Go operator made does not say of which try it is: it knew only one."""
    return Create(resource, manifest, (LABEL_ATTEMPT,), or_unmarked=not seen.job.status.attempt)


def _one_ahead(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """After a refusal one of each step goes ahead, and the rest follow if it is let in."""
    return tuple(part for step in steps for part in (step[:1], step[1:]))


def _warnings(seen: Observed) -> Step:
    """Told once, with the first pods."""
    if not seen.missing or seen.own or seen.job.status.attempt:
        return ()
    told = {
        ENV_DROPPED: (dropped_variables_of(seen.job), DROPPED),
        NO_ACCELERATOR: (unknown_resources_of(seen.job), TAKEN_FOR_NONE),
    }
    job = Target.of(PADDLE_JOBS, seen.job)
    return tuple(
        Emit(job, warning=True, reason=reason, message=message.format(", ".join(names)))
        for reason, (names, message) in told.items()
        if names
    )


def _say_terminating(seen: Observed) -> Plan:
    """Children go by garbage collection. Completed and Failed are final even now."""
    if seen.job.status.finished:
        return Plan()
    status = msgspec.structs.replace(seen.job.status, phase=Phase.TERMINATING)
    return _plan(*write_status(seen, status))


def _wake_at(seen: Observed, status: PaddleJobStatus, obstacle: Obstacle | None) -> datetime | None:
    looks = seen.now + LOOK_AGAIN_AFTER if obstacle is not None and obstacle.end is not End.BY_EDIT else None
    return _earliest(
        looks,
        next_nudge(seen),
        next_look(seen),
        next_wonder(seen),
        ports.next_glance(seen),
        _write_due(seen, status),
        *_deadlines(seen),
    )


def _write_due(seen: Observed, status: PaddleJobStatus) -> datetime | None:
    """When what is not written now will be."""
    due = write_due(seen, status) if status != seen.job.status else seen.now
    return due if due > seen.now else None


def _deadlines(seen: Observed) -> tuple[datetime, ...]:
    """None of a job that is suspended: what was counted before is not counted on."""
    if seen.job.run_policy.suspend or seen.job.status.phase == Phase.SUSPENDED:
        return ()
    # One that is past has been judged already.
    return tuple(due for due in (active_until(seen), started_by(seen)) if due is not None and due > seen.now)


def _earliest(*times: datetime | None) -> datetime | None:
    return min((time for time in times if time is not None), default=None)


def _followed(said: tuple[Step, ...], step: Step) -> tuple[Step, ...]:
    """The write first. What it tells goes with what comes next: nobody waits for an event."""
    write, told = said[:1], said[1:]
    return (*write, (*chain(*told), *step))


def _plan(*steps: Step, wake_at: datetime | None = None, deadline_at: datetime | None = None) -> Plan:
    return Plan(tuple(step for step in steps if step), wake_at, deadline_at)
