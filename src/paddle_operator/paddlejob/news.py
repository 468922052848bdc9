"""When a status is written, and which of its conditions are told as events."""

from datetime import datetime, timedelta

import msgspec

from paddle_operator.api.meta import Condition, find_condition
from paddle_operator.api.names import (
    CREATED,
    FAILED,
    GANG_SCHEDULED,
    JOB_ENDED,
    PODS_START,
    RESTARTING,
    RUNNING,
    SUSPENDED,
)
from paddle_operator.api.paddlejob import PaddleJob, PaddleJobStatus, Role
from paddle_operator.api.resources import PADDLE_JOBS, Target
from paddle_operator.plan import Emit, SetStatus, Step, merge_patch

from .observed import Observed

# A change of counts alone may wait: a job of a thousand pods shall not write its status a thousand times.
QUIET_SECONDS = 1.0
QUIET_SHARE_OF_AGE = 0.25
LONGEST_QUIET_SECONDS = 30.0
# Two managers that lead at once, and see different things, would else answer each other without end.
STEADY_FOR = timedelta(seconds=2)


def write_status(seen: Observed, status: PaddleJobStatus, *, at_once: bool = False) -> tuple[Step, ...]:
    """The write and its events, or nothing if nothing changed or the change can wait."""
    before, after = msgspec.to_builtins(seen.job.status), msgspec.to_builtins(status)
    changes = merge_patch(before, after)
    waits = not at_once and _can_wait(seen, status, changes) and write_due(seen, status) > seen.now
    if not changes or waits:
        return ()
    target = Target.of(PADDLE_JOBS, seen.job)
    events = tuple(
        Emit(target, warning=_is_warning(condition), reason=condition.reason, message=condition.message)
        for condition in status.conditions
        if _is_news(seen.job, status, condition)
    )
    return ((SetStatus(target, changes),), *((events,) if events else ()))


def _can_wait(seen: Observed, status: PaddleJobStatus, changes: dict[str, object]) -> bool:
    """Counts, other words for the same condition, and what would take back what was said.

    A quota's refusal changes its words with every pod of others.
    """
    is_little = all(_takes_back_why(old, new) for old, new in _changed(seen, status))
    return set(changes) <= {"conditions", *Role} and (is_little or _steady_until(seen, status) is not None)


def _changed(seen: Observed, status: PaddleJobStatus) -> list[tuple[Condition | None, Condition]]:
    """In more than words."""
    before = {condition.type: condition for condition in seen.job.status.conditions}
    pairs = [(before.get(new.type), new) for new in status.conditions]
    return [(old, new) for old, new in pairs if old is None or _essence(old) != _essence(new)]


def _takes_back_why(old: Condition | None, new: Condition) -> bool:
    """Why pods do not start is said at once; that nothing is in their way any more is no news.

    Two managers that lead at once, of which one does not see it, would else answer each other without end.
    """
    return old is not None and (new.type, new.status, new.reason) == (RUNNING, old.status, PODS_START)


def _steady_until(seen: Observed, status: PaddleJobStatus) -> datetime | None:
    """Until when a condition that has just changed, and would again, is left as it is; None: none is."""
    changed = [(old, new) for old, new in _changed(seen, status) if old and old.status != new.status]
    if any(_says_all_are_made(new) for _, new in changed):
        return None
    times = [old.last_transition_time for old, _ in changed if old.last_transition_time is not None]
    return max((at + STEADY_FOR for at in times if at <= seen.now < at + STEADY_FOR), default=None)


def _says_all_are_made(condition: Condition) -> bool:
    """That is never put off: a pod that is missed later was lost, and is not made again in the same try."""
    return condition.type == CREATED and condition.status == "True"


def _essence(condition: Condition) -> tuple[str, str, str]:
    return condition.type, condition.status, condition.reason


def write_due(seen: Observed, status: PaddleJobStatus) -> datetime:
    """When what can wait is written: counts a second after the last write, up to 30 for an old job; words 30.

    That a pod ended well is never put off for long: once it is deleted, only the status knows.
    """
    if (steady := _steady_until(seen, status)) is not None:
        return steady
    last = seen.status_written_at
    if last is None or last > seen.now:
        return seen.now
    born = seen.job.metadata.creation_timestamp or seen.now
    quiet_seconds = max(QUIET_SECONDS, QUIET_SHARE_OF_AGE * (seen.now - born).total_seconds())
    if status.conditions != seen.job.status.conditions:
        quiet_seconds = LONGEST_QUIET_SECONDS
    if _succeeded(status) != _succeeded(seen.job.status):
        quiet_seconds = QUIET_SECONDS
    return last + timedelta(seconds=min(quiet_seconds, LONGEST_QUIET_SECONDS))


def _succeeded(status: PaddleJobStatus) -> list[str]:
    return [role.succeeded_ranks for role in (status.ps, status.worker, status.heter) if role is not None]


def _is_warning(condition: Condition) -> bool:
    if condition.type in {FAILED, RESTARTING}:
        return True
    return condition.type in {CREATED, RUNNING, GANG_SCHEDULED} and condition.status == "False"


# Said of a condition only to take back what held before; another one tells the news.
_NO_NEWS = frozenset({JOB_ENDED, PODS_START, RESTARTING, SUSPENDED})


def _is_news(job: PaddleJob, status: PaddleJobStatus, condition: Condition) -> bool:
    """Each condition is told once, when it comes to hold; and each restart."""
    if condition.type == RESTARTING and condition.status == "True" and status.restarts > job.status.restarts:
        return True
    taken_back = condition.status == "False" and (
        condition.reason in _NO_NEWS or condition.type == RESTARTING
    )
    if taken_back or (condition.type == CREATED and condition.status == "True" and job.status.attempt):
        return False  # of the pods of later tries only that they run is told
    old = find_condition(job.status.conditions, condition.type)
    return old is None or _essence(old) != _essence(condition)
