"""The checklist: what shall be done about one PaddleJob, given what is seen. All branching is here."""

from datetime import datetime, timedelta

import msgspec

from paddle_operator.api.names import ENV_DROPPED, OLD_FINALIZER
from paddle_operator.api.paddlejob import PaddleJobStatus, Phase
from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS, Target
from paddle_operator.plan import Create, Emit, Patch, Plan, Step

from .cleanup import clean_up
from .config_map import build_config_map, worker_addresses
from .failures import find_failure
from .nudge import next_nudge, nudges
from .observed import Observed
from .obstacles import Obstacle, find_obstacle
from .pods import build_pod, dropped_variables_of
from .status import next_status, write_due, write_status
from .verdicts import has_started

# Nothing tells us when somebody else's config map or pod is gone, so we look.
LOOK_AGAIN_AFTER = timedelta(seconds=10)


def reconcile(seen: Observed) -> Plan:
    if seen.job.metadata.terminating:
        return _say_terminating(seen)
    if seen.job.status.finished:
        return _plan(clean_up(seen, Phase(seen.job.status.phase)))
    failure = find_failure(seen)
    obstacle = find_obstacle(seen) if failure is None else None
    status = next_status(seen, obstacle, failure)
    said = write_status(seen, status)
    if status.finished:
        return _plan(*said, clean_up(seen, Phase(status.phase)))
    wake_at = _wake_at(seen, status, obstacle)
    if obstacle is not None:
        # Say it first: what follows may be refused again.
        return _plan(*said, *(() if obstacle.stops_creation else children(seen)), wake_at=wake_at)
    return _plan(*children(seen), *said, wake_at=wake_at)


def children(seen: Observed) -> tuple[Step, ...]:
    """What is missing now: all pods; once they have addresses the config map; then the nudges."""
    if missing := tuple(Create(PODS, build_pod(seen.job, *slot)) for _, slot in seen.missing):
        return (missing, _warn_of_dropped_variables(seen))
    if seen.own_config_map is not None:
        return (nudges(seen),)
    addresses = worker_addresses(seen)
    if addresses is None or all(map(has_started, seen.own.values())):
        return ()
    return ((Create(CONFIG_MAPS, build_config_map(seen.job, addresses)),), nudges(seen))


def _warn_of_dropped_variables(seen: Observed) -> Step:
    names = dropped_variables_of(seen.job) if not seen.own else []
    if not names:
        return ()
    message = f"the operator sets {', '.join(names)} itself; the values in the template are not used"
    return (Emit(Target.of(PADDLE_JOBS, seen.job), warning=True, reason=ENV_DROPPED, message=message),)


def _say_terminating(seen: Observed) -> Plan:
    """Children go by garbage collection; the old operator's finalizer guards nothing and is taken off."""
    job = seen.job
    kept = [name for name in job.metadata.finalizers if name != OLD_FINALIZER]
    release: Step = ()
    if len(kept) < len(job.metadata.finalizers):
        body = {"metadata": {"finalizers": kept, "resourceVersion": job.metadata.resource_version}}
        release = (Patch(Target.of(PADDLE_JOBS, job), body, purpose="take the old finalizer off"),)
    if job.status.finished:
        return _plan(release)
    status = msgspec.structs.replace(job.status, phase=Phase.TERMINATING)
    # One write a pass on the same object: the status goes out when the finalizer is off.
    return _plan(release) if release else _plan(*write_status(seen, status))


def _wake_at(seen: Observed, status: PaddleJobStatus, obstacle: Obstacle | None) -> datetime | None:
    times = [next_nudge(seen)]
    if obstacle is not None and obstacle.ends_unseen:
        times.append(seen.now + LOOK_AGAIN_AFTER)
    if status != seen.job.status and (due := write_due(seen)) > seen.now:
        times.append(due)
    return min((time for time in times if time is not None), default=None)


def _plan(*steps: Step, wake_at: datetime | None = None) -> Plan:
    return Plan(tuple(step for step in steps if step), wake_at)
