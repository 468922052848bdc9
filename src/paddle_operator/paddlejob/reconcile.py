"""The checklist: what shall be done about one PaddleJob, given what is seen. All branching is here."""

from datetime import datetime, timedelta

import msgspec

from paddle_operator.api.names import ENV_DROPPED
from paddle_operator.api.paddlejob import PaddleJobStatus, Phase
from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS, Target
from paddle_operator.plan import Create, Emit, Plan, Step

from .cleanup import clean_up
from .config_map import missing_config_map
from .failures import cause_awaited_until, find_failed_pod, find_lost_pod
from .finalizer import release
from .nudge import next_nudge, nudges
from .observed import Observed
from .obstacles import End, Obstacle, find_obstacle
from .pods import build_pod, dropped_variables_of
from .relabel import relabel
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
    failure = find_failed_pod(seen) or find_lost_pod(seen)
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
    """What is missing now: all pods; once they have addresses, the config map."""
    if seen.missing:
        creates = tuple(Create(PODS, build_pod(seen.job, *slot)) for slot in seen.missing.values())
        # After a refusal one goes ahead, and the rest follow if it is let in.
        ahead = 1 if seen.refusals else len(creates)
        return (creates[:ahead], creates[ahead:], _warn_of_dropped_variables(seen))
    config_map = missing_config_map(seen)
    return ((Create(CONFIG_MAPS, config_map),),) if config_map else ()


def _warn_of_dropped_variables(seen: Observed) -> Step:
    names = dropped_variables_of(seen.job) if not seen.own else []
    if not names:
        return ()
    message = f"the operator sets {', '.join(names)} itself; the values in the template are not used"
    return (Emit(Target.of(PADDLE_JOBS, seen.job), warning=True, reason=ENV_DROPPED, message=message),)


def _say_terminating(seen: Observed) -> Plan:
    """Children go by garbage collection. Completed and Failed are final even now."""
    if seen.job.status.finished:
        return Plan()
    status = msgspec.structs.replace(seen.job.status, phase=Phase.TERMINATING)
    return _plan(*write_status(seen, status))


def _wake_at(seen: Observed, status: PaddleJobStatus, obstacle: Obstacle | None) -> datetime | None:
    times = [next_nudge(seen), cause_awaited_until(seen)]
    if obstacle is not None and obstacle.end is not End.BY_EDIT:
        times.append(seen.now + LOOK_AGAIN_AFTER)
    if status != seen.job.status and (due := write_due(seen, status)) > seen.now:
        times.append(due)
    return min((time for time in times if time is not None), default=None)


def _plan(*steps: Step, wake_at: datetime | None = None) -> Plan:
    return Plan(tuple(step for step in steps if step), wake_at)
