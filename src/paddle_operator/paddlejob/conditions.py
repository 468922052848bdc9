"""What a job says of itself in words: its conditions, in each situation that it can be in."""

import msgspec

from paddle_operator.api.meta import Condition, find_condition, set_condition
from paddle_operator.api.names import (
    ACTIVE_DEADLINE,
    ADDRESS_CHANGED,
    ALL_PODS_RUN,
    ALL_PODS_SUCCEEDED,
    ALL_WORKERS_SUCCEEDED,
    COMPLETED,
    CREATED,
    FAILED,
    GANG_SCHEDULED,
    JOB_ENDED,
    NODE_LOST,
    NOT_SERVED,
    POD_FAILED,
    POD_LOST,
    POD_STUCK,
    PODS_CREATED,
    PODS_START,
    PORTS_TAKEN,
    RESTARTED_ALONE,
    RESTARTED_TOO_OFTEN,
    RESTARTING,
    RESUMED,
    RUNNING,
    SERVER_ENDED,
    START_DEADLINE,
    SUSPENDED,
    TRAINED_ALONE,
)
from paddle_operator.api.paddlejob import Failure, Mode, PaddleJob, PaddleJobStatus, Phase
from paddle_operator.plan import LONGEST_MESSAGE

from .observed import Observed
from .obstacles import Obstacle
from .restarts import backoff, used_in_words
from .sweep import stuck_in_words
from .waiting import find_wait

Conditions = tuple[Condition, ...]

# Of all other failures it is said that a pod has failed; status.failure says how.
_OWN_REASONS = frozenset({
    ACTIVE_DEADLINE, ADDRESS_CHANGED, NODE_LOST, POD_LOST, RESTARTED_ALONE, RESTARTED_TOO_OFTEN, SERVER_ENDED,
    START_DEADLINE, TRAINED_ALONE,
})  # fmt: skip


_NO_GANG = (
    "the operator was started with --scheduling={}, which this version does not serve: pods are placed one "
    "by one, by the scheduler that their template names"
)


class _Said:
    """The conditions that a job has, with what is said of it now."""

    def __init__(self, seen: Observed) -> None:
        self._seen = seen
        self.all: Conditions = seen.job.status.conditions

    def say(self, kind: str, holds: str, reason: str, message: str) -> None:
        wanted = Condition(
            type=kind,
            status=holds,
            reason=reason,
            message=message[:LONGEST_MESSAGE],
            last_transition_time=self._seen.stamp,
            observed_generation=self._seen.job.metadata.generation,
        )
        self.all = set_condition(self.all, wanted)

    def end(self, kind: str, reason: str, message: str) -> None:
        """What does not hold, or was never said, need not be taken back."""
        old = find_condition(self.all, kind)
        if old is not None and old.status == "True":
            self.say(kind, "False", reason, message)


def on_the_way(seen: Observed, phase: Phase, obstacle: Obstacle | None) -> Conditions:
    """Of a job that goes on, or has ended well."""
    said = _Said(seen)
    if obstacle is not None:
        said.say(CREATED, "False", obstacle.reason, obstacle.message)
    else:
        said.say(CREATED, "True", PODS_CREATED, f"{len(seen.slots)} pods created")
    if seen.settings.scheduling and phase is not Phase.COMPLETED:
        said.say(GANG_SCHEDULED, "False", NOT_SERVED, _NO_GANG.format(seen.settings.scheduling))
    if phase is Phase.RUNNING:
        said.say(RUNNING, "True", ALL_PODS_RUN, f"all {len(seen.slots)} pods run")
        said.end(RESTARTING, ALL_PODS_RUN, f"all {len(seen.slots)} pods run again")
    elif phase is Phase.COMPLETED:
        _end_all(said)
        said.say(COMPLETED, "True", *_success(seen.job))
    else:
        _say_waiting(seen, said)
    return said.all


def _say_waiting(seen: Observed, said: _Said) -> None:
    """Why it does not run yet; that it only takes its time need not be said, but to take other words back."""
    if (wait := find_wait(seen)) is not None:
        said.say(RUNNING, "False", *wait)
    elif (old := find_condition(said.all, RUNNING)) is not None and old.reason != PODS_START:
        said.say(RUNNING, "False", PODS_START, "pods start")


def _end_all(said: _Said) -> None:
    """In the order in which they may come to hold."""
    if find_condition(said.all, RUNNING) is not None:
        said.say(RUNNING, "False", JOB_ENDED, "the job has ended")
    said.end(RESTARTING, JOB_ENDED, "the job has ended")
    said.end(SUSPENDED, JOB_ENDED, "the job has ended")


def _success(job: PaddleJob) -> tuple[str, str]:
    workers = job.spec.worker.replicas
    if job.spec.mode is Mode.PS:
        return ALL_WORKERS_SUCCEEDED, f"all {workers} workers succeeded; the servers are stopped"
    return ALL_PODS_SUCCEEDED, f"all {workers} pods succeeded"


def on_failure(seen: Observed, failure: Failure, after: PaddleJobStatus) -> Conditions:
    """Of a job that has failed for good. What could not be created is as it was."""
    said = _Said(seen)
    if not seen.missing:
        said.say(CREATED, "True", PODS_CREATED, f"{len(seen.slots)} pods created")
    _end_all(said)
    restarts = f"restarts {after.restarts}, {used_in_words(seen.job, after)}" if after.restarts else ""
    told = "; ".join(filter(None, (failure.message, restarts, failure.next_step)))
    said.say(FAILED, "True", reason_of(failure), told)
    return said.all


def on_restart(seen: Observed, failure: Failure, after: PaddleJobStatus) -> Conditions:
    said = _Said(seen)
    said.end(RUNNING, RESTARTING, "all pods are made anew")
    told = f"{failure.message}; {used_in_words(seen.job, after)}"
    said.say(RESTARTING, "True", reason_of(failure), told)
    pause = backoff(seen.with_status(msgspec.structs.replace(after, conditions=said.all)).job)
    begins = f"try {after.attempt} begins in {pause.seconds} s, once the pods of the last one are gone"
    said.say(CREATED, "False", RESTARTING, begins)
    return said.all


def on_suspension(seen: Observed) -> Conditions:
    said = _Said(seen)
    said.say(CREATED, "False", SUSPENDED, "the job is suspended")
    said.end(RUNNING, SUSPENDED, "the job is suspended")
    said.end(RESTARTING, SUSPENDED, "the job is suspended")
    said.say(SUSPENDED, "True", SUSPENDED, "runPolicy.suspend is true; set it to false to go on")
    return said.all


def on_resumption(seen: Observed) -> Conditions:
    said = _Said(seen)
    said.say(SUSPENDED, "False", RESUMED, "runPolicy.suspend is false")
    return said.all


def on_resizing(seen: Observed) -> Conditions:
    said = _Said(seen)
    said.say(CREATED, "False", RESTARTING, "pods are made anew, as their number has changed")
    said.end(RUNNING, RESTARTING, "all pods are made anew")
    said.end(RESTARTING, RESUMED, "the job was suspended")
    said.say(SUSPENDED, "False", RESUMED, f"the job goes on with {len(seen.slots)} pods")
    return said.all


def on_giving_way(seen: Observed) -> Conditions:
    said = _Said(seen)
    told = f"job {seen.ports_are_of} has ports of this one; its pods, of which none has begun, are made anew"
    said.say(CREATED, "False", PORTS_TAKEN, f"{told} on others")
    return said.all


def while_swept(seen: Observed) -> Conditions:
    """What is left of an earlier try goes; only if it does not is there anything to say."""
    said, old = _Said(seen), find_condition(seen.job.status.conditions, CREATED)
    if stuck := stuck_in_words(seen):
        said.say(CREATED, "False", POD_STUCK, stuck)
    elif old is not None and old.reason == POD_STUCK:
        kind = SUSPENDED if seen.job.status.phase == Phase.SUSPENDED else RESTARTING
        said.say(CREATED, "False", kind, "what was left of the try before is gone")
    return said.all


def reason_of(failure: Failure) -> str:
    return failure.reason if failure.reason in _OWN_REASONS else POD_FAILED
