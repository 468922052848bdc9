"""From what is seen to the status that users read: counts, phase, conditions, events.

    Pending ──▶ Starting ──▶ Running ──▶ Completed
       └───────────┴────────────┴──────▶ Failed          Terminating: being deleted, whatever it was

Completed and Failed are final. Running is kept once reached: a probe that flaps does not move the phase back.
"""

from collections import Counter
from datetime import datetime, timedelta

import msgspec

from paddle_operator.api.core import Pod
from paddle_operator.api.meta import Condition, find_condition, set_condition
from paddle_operator.api.names import (
    ALL_PODS_RUN,
    ALL_PODS_SUCCEEDED,
    ALL_WORKERS_SUCCEEDED,
    COMPLETED,
    CREATED,
    FAILED,
    JOB_ENDED,
    POD_FAILED,
    POD_LOST,
    PODS_CREATED,
    RUNNING,
    SERVER_ENDED,
)
from paddle_operator.api.paddlejob import (
    Failure,
    Mode,
    PaddleJob,
    PaddleJobStatus,
    Phase,
    PodReference,
    Role,
    RoleStatus,
)
from paddle_operator.api.resources import PADDLE_JOBS, PODS, Target
from paddle_operator.plan import LONGEST_MESSAGE, Emit, SetStatus, Step, merge_patch

from . import ranks
from .failures import in_words
from .hints import hint
from .observed import Observed
from .obstacles import Obstacle
from .verdicts import Verdict

# A change of counts alone may wait: a job of a thousand pods shall not write its status a thousand times.
QUIET_SECONDS = 1.0
QUIET_SHARE_OF_AGE = 0.25
LONGEST_QUIET_SECONDS = 30.0


def next_status(seen: Observed, obstacle: Obstacle | None, failure: Failure | None) -> PaddleJobStatus:
    job = seen.job
    phase = _phase(seen, failure)
    status = msgspec.structs.replace(
        job.status,
        phase=phase,
        mode=job.spec.mode,
        ps=_role_status(seen, Role.PS),
        worker=_role_status(seen, Role.WORKER),
        heter=_role_status(seen, Role.HETER),
        observed_generation=job.metadata.generation,
        failure=failure,
        conditions=_conditions(seen, phase, obstacle, failure),
    )
    if phase in {Phase.RUNNING, Phase.COMPLETED} and status.start_time is None:
        # A short job can complete before all its pods were seen to run at once; it has run all the same.
        status = msgspec.structs.replace(status, start_time=seen.stamp)
    if status.finished:
        # Not before it began, also when the clock was set back meanwhile.
        ended = max(seen.stamp, status.start_time or seen.stamp)
        status = msgspec.structs.replace(status, completion_time=ended)
    return status


def _phase(seen: Observed, failure: Failure | None) -> Phase:
    if failure is not None:
        return Phase.FAILED
    tally = Counter(seen.verdicts.values())
    everyone = len(seen.slots)
    if everyone == 0:
        return Phase.PENDING
    if seen.is_trained:
        return Phase.COMPLETED
    active = tally[Verdict.RUNNING] + tally[Verdict.SUCCEEDED]
    if active == everyone or seen.job.status.phase == Phase.RUNNING:
        return Phase.RUNNING
    return Phase.STARTING if active + tally[Verdict.STARTING] > 0 else Phase.PENDING


def _role_status(seen: Observed, role: Role) -> RoleStatus | None:
    if role not in seen.job.roles:
        return None
    slots = {name: slot for name, slot in seen.slots.items() if slot.role is role and name in seen.verdicts}
    succeeded = [slot.rank for name, slot in slots.items() if seen.verdicts[name] is Verdict.SUCCEEDED]
    return RoleStatus(
        refs=tuple(_reference(seen.own[name]) for name in slots if name in seen.own),
        succeeded_ranks=ranks.to_text(succeeded),
        **Counter(str(seen.verdicts[name]) for name in slots),
    )


def _reference(pod: Pod) -> PodReference:
    return PodReference(kind=PODS.kind, name=pod.metadata.name, uid=pod.metadata.uid)


def _conditions(
    seen: Observed, phase: Phase, obstacle: Obstacle | None, failure: Failure | None
) -> tuple[Condition, ...]:
    conditions = seen.job.status.conditions

    def state(kind: str, holds: str, reason: str, message: str) -> None:
        nonlocal conditions
        wanted = Condition(
            type=kind,
            status=holds,
            reason=reason,
            message=message[:LONGEST_MESSAGE],
            last_transition_time=seen.stamp,
            observed_generation=seen.job.metadata.generation,
        )
        conditions = set_condition(conditions, wanted)

    if failure is not None and (seen.missing or find_condition(conditions, CREATED)):
        pass  # what was created, or could not be, is as it was
    elif failure is None and obstacle is not None:
        state(CREATED, "False", obstacle.reason, obstacle.message)
    else:
        state(CREATED, "True", PODS_CREATED, f"{len(seen.slots)} pods created")
    if phase is Phase.RUNNING:
        state(RUNNING, "True", ALL_PODS_RUN, f"all {len(seen.slots)} pods run")
    elif phase in {Phase.COMPLETED, Phase.FAILED} and find_condition(conditions, RUNNING):
        state(RUNNING, "False", JOB_ENDED, "the job has ended")
    if phase is Phase.COMPLETED:
        state(COMPLETED, "True", *_success(seen.job))
    if failure is not None:
        reason = failure.reason if failure.reason in {POD_LOST, SERVER_ENDED} else POD_FAILED
        state(FAILED, "True", reason, "; ".join(filter(None, (in_words(failure), hint(seen, failure)))))
    return conditions


def _success(job: PaddleJob) -> tuple[str, str]:
    workers = job.spec.worker.replicas
    if job.spec.mode is Mode.PS:
        return ALL_WORKERS_SUCCEEDED, f"all {workers} workers succeeded; the servers are stopped"
    return ALL_PODS_SUCCEEDED, f"all {workers} pods succeeded"


def write_status(seen: Observed, status: PaddleJobStatus) -> tuple[Step, ...]:
    """The write and its events, or nothing if nothing changed or the change can wait."""
    before, after = msgspec.to_builtins(seen.job.status), msgspec.to_builtins(status)
    changes = merge_patch(before, after)
    if not changes or (_can_wait(seen, status, changes) and write_due(seen, status) > seen.now):
        return ()
    target = Target.of(PADDLE_JOBS, seen.job)
    events = tuple(
        Emit(target, warning=_is_warning(condition), reason=condition.reason, message=condition.message)
        for condition in status.conditions
        if _is_news(seen.job, condition)
    )
    return ((SetStatus(target, changes),), *((events,) if events else ()))


def _can_wait(seen: Observed, status: PaddleJobStatus, changes: dict[str, object]) -> bool:
    """Counts, and other words for the same condition: a quota's refusal changes with every pod of others."""
    told = [_essence(condition) for condition in seen.job.status.conditions]
    same = told == [_essence(condition) for condition in status.conditions]
    return same and set(changes) <= {"conditions", *Role}


def _essence(condition: Condition) -> tuple[str, str, str]:
    return condition.type, condition.status, condition.reason


def write_due(seen: Observed, status: PaddleJobStatus) -> datetime:
    """When what can wait is written: counts a second after the last write, up to 30 for an old job; words 30.

    That a pod ended well is never put off for long: once it is deleted, only the status knows.
    """
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
    return condition.type == FAILED or (condition.type == CREATED and condition.status == "False")


def _is_news(job: PaddleJob, condition: Condition) -> bool:
    """Each condition is told once, when it comes to hold; Running=False says nothing new."""
    if condition.type == RUNNING and condition.status == "False":
        return False
    old = find_condition(job.status.conditions, condition.type)
    return old is None or _essence(old) != _essence(condition)
