"""What time does to a job: it must start, it must end, and then it goes. Counted from stored times only."""

from datetime import datetime, timedelta

from paddle_operator.api.names import ACTIVE_DEADLINE, START_DEADLINE
from paddle_operator.api.paddlejob import Failure, Phase
from paddle_operator.api.resources import PADDLE_JOBS, Target
from paddle_operator.plan import LONGEST_MESSAGE, Delete, Step

from .observed import RESOLUTION, Observed
from .obstacles import Obstacle
from .restarts import backoff
from .verdicts import Question, Verdict
from .waiting import unstarted_in_words, worst_wait


def missed_deadline(seen: Observed, obstacle: Obstacle | None) -> Failure | None:
    """The job is out of time. That is final: to begin again would not give it more."""
    if (ends_at := active_until(seen)) is not None and ends_at <= seen.now:
        return Failure(
            reason=ACTIVE_DEADLINE,
            kind="config",
            message=f"the job has not ended within {seen.job.run_policy.active_deadline_seconds} s "
            "(runPolicy.activeDeadlineSeconds)",
            next_step="raise runPolicy.activeDeadlineSeconds, or let the job do less",
            attempt=seen.job.status.attempt,
        )
    if (starts_by := started_by(seen)) is not None and starts_by <= seen.now:
        return _not_started(seen, obstacle)
    return None


def late_for_a_deadline(seen: Observed) -> Question:
    """Whom to ask before the job is called late: they may have been quicker than our watch."""
    failure = missed_deadline(seen, None)
    if failure is None or seen.job.run_policy.suspend:
        return Question()
    is_to_start = failure.reason == START_DEADLINE
    helps = {Verdict.SUCCEEDED, Verdict.RUNNING} if is_to_start else {Verdict.SUCCEEDED}
    # That a server still serves says nothing: it does until it is stopped.
    asked = seen.slots if is_to_start else seen.workers
    late = [name for name in asked if name in seen.own and seen.verdicts[name] not in helps]
    return Question(tuple(late), frozenset(helps))


def _not_started(seen: Observed, obstacle: Obstacle | None) -> Failure:
    policy = seen.job.run_policy
    late = f"not all pods run after {policy.start_deadline_seconds} s (runPolicy.startDeadlineSeconds)"
    wait = worst_wait(seen)
    if wait is None:
        why = f": {obstacle.message if obstacle is not None else unstarted_in_words(seen)}"
        return Failure(
            reason=START_DEADLINE,
            kind="config" if obstacle is not None else "rendezvous",
            message=f"{late}{why}"[:LONGEST_MESSAGE],
            next_step="kubectl describe pod shows what the pods wait for",
            attempt=seen.job.status.attempt,
        )
    said, meaning = f": {wait.text}" if wait.text else "", wait.told(seen)
    return Failure(
        role=wait.slot.role,
        rank=wait.slot.rank,
        pod=wait.name,
        node=seen.own[wait.name].spec.node_name,
        reason=START_DEADLINE,
        kind=meaning.kind,
        message=f"{late}: {wait.slot.role} {wait.slot.rank} (pod {wait.name}) {meaning.means}{said}",
        next_step=meaning.next,
        attempt=seen.job.status.attempt,
    )


def active_until(seen: Observed) -> datetime | None:
    """From when it first ran, or was resumed; restarts are part of it."""
    seconds, status = seen.job.run_policy.active_deadline_seconds, seen.job.status
    if seconds is None or status.start_time is None:
        return None
    since = max(status.start_time, status.resume_time or status.start_time)
    return since + RESOLUTION + timedelta(seconds=seconds)


def started_by(seen: Observed) -> datetime | None:
    """From when its pods were made. None, too, once all run, and while those of an earlier try are left."""
    seconds, status = seen.job.run_policy.start_deadline_seconds, seen.job.status
    if seconds is None or status.phase == Phase.RUNNING or seen.all_run or seen.leftovers:
        return None
    born = [pod.metadata.creation_timestamp for pod in seen.own.values()]
    asked = status.attempt_time or seen.job.metadata.creation_timestamp
    made = min((time for time in born if time is not None), default=asked)
    if asked is None or made is None:
        return None
    return max(asked + backoff(seen.job), made) + RESOLUTION + timedelta(seconds=seconds)


def expires_at(seen: Observed) -> datetime | None:
    seconds, ended = seen.job.run_policy.ttl_seconds_after_finished, seen.job.status.completion_time
    if seconds is None or ended is None:
        return None
    return ended + (RESOLUTION + timedelta(seconds=seconds) if seconds else timedelta())


def expire(seen: Observed) -> Step:
    """As seen: its user may just have given it more time."""
    due = expires_at(seen)
    is_due = due is not None and due <= seen.now
    return (Delete(Target.of(PADDLE_JOBS, seen.job), as_seen=True),) if is_due else ()
