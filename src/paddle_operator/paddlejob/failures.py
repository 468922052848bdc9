"""Which of several failed pods is to blame, and how that reads."""

from datetime import UTC, datetime

from paddle_operator.api.core import Pod
from paddle_operator.api.names import POD_LOST
from paddle_operator.api.paddlejob import Failure

from .observed import Observed, Slot
from .verdicts import Verdict, has_started, judge

# Ends that only mean "a peer died": Paddle's launcher reports 250, a plain script aborts with 134.
VICTIM_EXIT_CODES = frozenset({134, 250})
_NEVER = datetime.max.replace(tzinfo=UTC)


def find_failure(seen: Observed) -> Failure | None:
    """The first cause: victims of a dead peer come last, then the earliest end, then the lowest rank."""
    failed = [(pod, seen.slots[name]) for name, pod in seen.own.items() if judge(pod) is Verdict.FAILED]
    if failed:
        return _describe(*min(failed, key=_blame))
    return _find_lost(seen)


def _find_lost(seen: Observed) -> Failure | None:
    """A pod that is gone after peers were told its address. Another one would not be found by them."""
    if seen.own_config_map is None and not any(map(has_started, seen.own.values())):
        return None
    name, slot = next(seen.missing, ("", None))
    if slot is None:
        return None
    return Failure(role=slot.role, rank=slot.rank, pod=name, reason=POD_LOST)


def _blame(candidate: tuple[Pod, Slot]) -> tuple[bool, datetime, Slot]:
    pod, slot = candidate
    ends = [
        container.state.terminated
        for container in pod.status.container_statuses
        if container.state.terminated is not None and container.state.terminated.exit_code != 0
    ]
    victim = bool(ends) and all(end.exit_code in VICTIM_EXIT_CODES for end in ends)
    return victim, min((end.finished_at or _NEVER for end in ends), default=_NEVER), slot


def _describe(pod: Pod, slot: Slot) -> Failure:
    ended = next(
        (
            status
            for status in pod.status.container_statuses
            if status.state.terminated is not None and status.state.terminated.exit_code != 0
        ),
        None,
    )
    end = ended.state.terminated if ended is not None else None
    return Failure(
        role=slot.role,
        rank=slot.rank,
        pod=pod.metadata.name,
        node=pod.spec.node_name,
        container=ended.name if ended is not None else "",
        exit_code=end.exit_code if end is not None else None,
        reason=pod.status.reason or (end.reason if end is not None else "") or "Error",
    )


def in_words(failure: Failure) -> str:
    """One sentence for people."""
    who = f"{failure.role} {failure.rank} (pod {failure.pod})"
    if failure.reason == POD_LOST:
        return f"{who} was deleted after its peers had been told its address"
    where = f" on node {failure.node}" if failure.node else ""
    if failure.exit_code is None:
        return f"{who} failed{where}: {failure.reason}"
    how = f"container {failure.container} exited with {failure.exit_code} ({failure.reason})"
    return f"{who} failed{where}: {how}"
