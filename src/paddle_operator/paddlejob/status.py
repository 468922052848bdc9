"""From what is seen to the status that users read: phase, counts, times; its words are in conditions.py.

    Pending ──▶ Starting ──▶ Running ──▶ Completed
       ▲           │           ├───────▶ Failed          Terminating: being deleted, whatever it was
       └─ Restarting ◀─────────┘                         Suspended: for as long as the user wants

Completed and Failed are final. Within a try the phase does not move back: neither for a probe that flaps nor
for another manager that has seen less.
"""

from collections import Counter

import msgspec

from paddle_operator.api.core import Pod
from paddle_operator.api.meta import find_condition
from paddle_operator.api.names import RESTARTING
from paddle_operator.api.paddlejob import Failure, PaddleJobStatus, Phase, PodReference, Role, RoleStatus
from paddle_operator.api.resources import PODS

from . import conditions, ranks
from .ends import Counts
from .limits import counted
from .observed import Observed
from .obstacles import Obstacle
from .ports import give_way
from .restarts import begin_again
from .suspension import resize, resume, suspend
from .verdicts import Verdict

_replace = msgspec.structs.replace


def next_status(seen: Observed, obstacle: Obstacle | None) -> PaddleJobStatus:
    """Of a job that goes on, or has ended well."""
    phase = _phase(seen)
    status = _replace(
        _with_counts(seen),
        phase=phase,
        conditions=conditions.on_the_way(seen, phase, obstacle),
        # What ended an earlier try is of interest until the job has made good for it.
        failure=None if phase is Phase.COMPLETED else seen.job.status.failure,
    )
    if phase in {Phase.RUNNING, Phase.COMPLETED} and status.start_time is None:
        # A short job can complete before all its pods were seen to run at once; it has run all the same.
        status = _replace(status, start_time=seen.stamp)
    return _ended(seen, status) if status.finished else status


def failed_status(seen: Observed, failure: Failure, counts: Counts = Counts.NOTHING) -> PaddleJobStatus:
    """Of a job that has failed for good."""
    failures, disruptions = counted(seen, failure, counts)
    status = _replace(_with_counts(seen), phase=Phase.FAILED, failures=failures, disruptions=disruptions)
    told = conditions.on_failure(seen, failure, status)
    return _ended(seen, _replace(status, failure=failure, conditions=told))


def restarted_status(seen: Observed, failure: Failure, counts: Counts) -> PaddleJobStatus:
    status = begin_again(seen, failure, counts)
    return _replace(status, conditions=conditions.on_restart(seen, failure, status))


def suspended_status(seen: Observed) -> PaddleJobStatus:
    return _replace(suspend(seen), conditions=conditions.on_suspension(seen))


def resumed_status(seen: Observed) -> PaddleJobStatus:
    return _replace(resume(seen), conditions=conditions.on_resumption(seen))


def resized_status(seen: Observed) -> PaddleJobStatus:
    return _replace(resize(seen), conditions=conditions.on_resizing(seen))


def moved_status(seen: Observed) -> PaddleJobStatus:
    return _replace(give_way(seen), conditions=conditions.on_giving_way(seen))


def swept_status(seen: Observed) -> PaddleJobStatus:
    return _replace(
        seen.job.status,
        mode=seen.job.spec.mode,
        observed_generation=seen.job.metadata.generation,
        conditions=conditions.while_swept(seen),
    )


def _ended(seen: Observed, status: PaddleJobStatus) -> PaddleJobStatus:
    """Not before it began, also when the clock was set back meanwhile."""
    return _replace(status, completion_time=max(seen.stamp, status.start_time or seen.stamp))


def _phase(seen: Observed) -> Phase:
    if seen.is_trained:
        return Phase.COMPLETED
    if seen.all_run or seen.job.status.phase == Phase.RUNNING:
        return Phase.RUNNING
    begun = {Verdict.RUNNING, Verdict.SUCCEEDED, Verdict.STARTING} & {*seen.verdicts.values()}
    if begun or seen.job.status.phase == Phase.STARTING:
        return Phase.STARTING
    restarting = find_condition(seen.job.status.conditions, RESTARTING)
    return Phase.RESTARTING if restarting is not None and restarting.status == "True" else Phase.PENDING


def _with_counts(seen: Observed) -> PaddleJobStatus:
    return _replace(
        seen.job.status,
        mode=seen.job.spec.mode,
        ps=_role_status(seen, Role.PS),
        worker=_role_status(seen, Role.WORKER),
        heter=_role_status(seen, Role.HETER),
        observed_generation=seen.job.metadata.generation,
    )


def _role_status(seen: Observed, role: Role) -> RoleStatus | None:
    if role not in seen.job.roles:
        return None
    slots = {name: slot for name, slot in seen.slots.items() if slot.role is role and name in seen.verdicts}
    succeeded = [slot.rank for name, slot in slots.items() if seen.verdicts[name] is Verdict.SUCCEEDED]
    there = [name for name in slots if name in seen.own]
    counted = RoleStatus(
        refs=tuple(_reference(seen.own[name]) for name in there),
        replicas=len(there),
        restarts=sum(seen.restarts_in_place[name] for name in there),
        succeeded_ranks=ranks.to_text(succeeded),
        **Counter(str(seen.verdicts[name]) for name in slots),
    )
    before = getattr(seen.job.status, role)
    return before if before is not None and _has_seen_less(counted, before) else counted


def _has_seen_less(counted: RoleStatus, before: RoleStatus) -> bool:
    """Than another manager, which wrote it of the same pods: a watch is late, or speaks no more.

    A pod that has failed stays so, one that is past Pending does not come back to it, and restarts are not
    taken back: to write otherwise would be answered, without end. Where there is a pod that it did not know,
    or one more that has ended, or was restarted (on a node that was, it is Pending once more), it is we who
    have seen more.
    """
    known = {one.uid for one in before.refs}
    is_of_the_same = all(one.uid in known for one in counted.refs)
    is_more = counted.failed > before.failed or counted.restarts > before.restarts
    is_less = (
        counted.failed < before.failed
        or counted.restarts < before.restarts
        or counted.pending > before.pending
    )
    return is_of_the_same and is_less and not is_more and before.succeeded_ranks == counted.succeeded_ranks


def _reference(pod: Pod) -> PodReference:
    return PodReference(kind=PODS.kind, name=pod.metadata.name, uid=pod.metadata.uid)
