"""The checklist: what shall be done about one PaddleJob, given what is seen. All branching is here."""

from datetime import datetime, timedelta

import msgspec

from paddle_operator.api.names import ENV_DROPPED
from paddle_operator.api.paddlejob import PaddleJobStatus, Phase, Role
from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS, Target
from paddle_operator.plan import Create, Emit, Plan, Step

from . import ports
from .cleanup import clean_up
from .config_map import missing_config_map
from .failures import awaited_until, find_failure
from .finalizer import release
from .nudge import next_nudge, nudges
from .observed import Observed
from .obstacles import End, Obstacle, find_obstacle
from .pods import build_pod, dropped_variables_of
from .relabel import relabel
from .services import missing_services
from .status import next_status, write_due, write_status

# Not everything that stands in the way is shown to us when it goes: somebody else's config map is not.
LOOK_AGAIN_AFTER = timedelta(seconds=10)


def reconcile(seen: Observed) -> Plan:
    job = seen.job
    if released := release(seen):
        return _plan(released)
    if job.metadata.terminating:
        return _say_terminating(seen)
    if job.status.finished:
        return _plan(clean_up(seen, Phase(job.status.phase)))

    obstacle = find_obstacle(seen)
    failure = find_failure(seen)
    blocked = obstacle is not None and obstacle.stops_creation
    if failure is None and not blocked and ports.are_due(seen):
        # Written before the first pod, so that they are the same after a crash.
        return _plan(*write_status(seen, ports.with_ports(seen)))
    status = next_status(seen, obstacle, failure)
    said = write_status(seen, status)
    if status.finished:
        return _plan(*said, clean_up(seen, Phase(status.phase)))

    touched = (*relabel(seen), *nudges(seen))
    wake_at = _wake_at(seen, status, obstacle)
    if obstacle is None:
        return _plan(*children(seen), *said, touched, wake_at=wake_at)
    # An obstacle is said first, because what follows may be refused again.
    made = () if obstacle.stops_creation else children(seen)
    return _plan(*said, *made, touched, wake_at=wake_at)


def children(seen: Observed) -> tuple[Step, ...]:
    """What is missing now, in its order.

    Where names tell who the peers are, all at once: the config map, services, pods. Else all pods, and the
    config map once they have addresses. Pods of servers are made before those of workers.
    """
    found = missing_config_map(seen)
    config_map: Step = (Create(CONFIG_MAPS, found),) if found else ()
    pods = tuple(_pod_creates(seen, role) for role in seen.job.roles)
    steps = (config_map, missing_services(seen), *pods, _warn_of_dropped_variables(seen))
    return _one_ahead(steps) if seen.refusals else steps


def _pod_creates(seen: Observed, role: Role) -> Step:
    return tuple(
        Create(PODS, build_pod(seen.job, slot, seen.settings.init_image))
        for slot in seen.missing.values()
        if slot.role is role
    )


def _one_ahead(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """After a refusal one of each step goes ahead, and the rest follow if it is let in."""
    return tuple(part for step in steps for part in (step[:1], step[1:]))


def _warn_of_dropped_variables(seen: Observed) -> Step:
    names = dropped_variables_of(seen.job) if seen.missing and not seen.own else []
    if not names:
        return ()
    message = f"the operator decides about {', '.join(names)}; the values in the template are not used"
    return (Emit(Target.of(PADDLE_JOBS, seen.job), warning=True, reason=ENV_DROPPED, message=message),)


def _say_terminating(seen: Observed) -> Plan:
    """Children go by garbage collection. Completed and Failed are final even now."""
    if seen.job.status.finished:
        return Plan()
    status = msgspec.structs.replace(seen.job.status, phase=Phase.TERMINATING)
    return _plan(*write_status(seen, status))


def _wake_at(seen: Observed, status: PaddleJobStatus, obstacle: Obstacle | None) -> datetime | None:
    times = [next_nudge(seen), awaited_until(seen)]
    if obstacle is not None and obstacle.end is not End.BY_EDIT:
        times.append(seen.now + LOOK_AGAIN_AFTER)
    if status != seen.job.status and (due := write_due(seen, status)) > seen.now:
        times.append(due)
    return min((time for time in times if time is not None), default=None)


def _plan(*steps: Step, wake_at: datetime | None = None) -> Plan:
    return Plan(tuple(step for step in steps if step), wake_at)
