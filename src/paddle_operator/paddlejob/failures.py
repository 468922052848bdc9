"""Which pod is to blame when a job fails, and how that reads."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from paddle_operator.api.core import ContainerStatus
from paddle_operator.api.names import POD_LOST, SERVER_ENDED
from paddle_operator.api.paddlejob import Failure, Mode, Role

from .endpoints import Slot
from .observed import Observed
from .verdicts import Verdict

# Ends that only mean "a peer died": Paddle's launcher reports 250, a plain script aborts with 134.
VICTIM_EXIT_CODES = frozenset({134, 250})
# How long after an end that alone is not to be blamed: victims may end before the one who killed them, whose
# launcher looks only now and then; and servers just before the workers that have stopped them.
PATIENCE = timedelta(seconds=5)
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_NEVER = datetime.max.replace(tzinfo=UTC) - PATIENCE


class _Suspect(NamedTuple):
    """A pod that should not have ended as it did. The least one is to blame: victims come last."""

    is_victim: bool
    end: datetime
    slot: Slot
    name: str
    broken: list[ContainerStatus]
    """What ended badly in it, training first; nothing, if it is a server that ended well."""


def find_failure(seen: Observed) -> Failure | None:
    """Why the job has failed, if it has. Once its workers have ended well, nothing can fail it."""
    if seen.is_trained:
        return None
    suspects = _suspects(seen)
    if not suspects:
        return _find_lost_pod(seen)
    return None if awaited_until(seen) is not None else _describe(seen, min(suspects))


def awaited_until(seen: Observed) -> datetime | None:
    """Until when a failure is not named, because another end may tell more of it."""
    suspects = _suspects(seen)
    running = {seen.slots[name].role for name, verdict in seen.verdicts.items() if verdict in _UNDER_WAY}
    if not suspects or seen.is_trained:
        return None
    if Role.WORKER in running and all(one.slot.role is Role.PS for one in suspects):
        last = min(one.end for one in suspects)
    elif running and all(one.is_victim for one in suspects):
        last = max(one.end for one in suspects)
    else:
        return None
    # Clocks of nodes differ: who ended in a moment has just ended. One that is far off costs the patience.
    return last + PATIENCE if abs(seen.now - last) < PATIENCE else None


_UNDER_WAY = frozenset({Verdict.RUNNING, Verdict.STARTING})


def unconfirmed_workers(seen: Observed) -> tuple[str, ...]:
    """The pods to ask for by name before the end of a server, or its loss, is held against the job.

    That is final; and the end of its workers may be on its way to us, or held up by a watch that is late.
    """
    failure = find_failure(seen) if seen.job.spec.mode is Mode.PS else None
    if failure is None or failure.role != Role.PS:
        return ()
    workers = [name for name in seen.own if seen.slots[name].role is not Role.PS]
    return tuple(name for name in workers if seen.verdicts[name] is not Verdict.SUCCEEDED)


def _suspects(seen: Observed) -> list[_Suspect]:
    failed = [
        _suspect(seen, name, _broken_containers(seen, name))
        for name in seen.own
        if seen.verdicts[name] is Verdict.FAILED
    ]
    return [*failed, *_ended_servers(seen)]


def _suspect(seen: Observed, name: str, broken: list[ContainerStatus]) -> _Suspect:
    ends = [end for container in broken if (end := container.state.terminated)]
    is_victim = bool(ends) and ends[0].exit_code in VICTIM_EXIT_CODES
    first = min((end.finished_at or _NEVER for end in ends), default=_NEVER)
    return _Suspect(is_victim, first, seen.slots[name], name, broken)


def _ended_servers(seen: Observed) -> list[_Suspect]:
    """Servers serve until they are stopped. One that ended well took its part of the model with it.

    So did one that was restarted in place; and one whose pod is gone did so long ago.
    """
    return [
        _Suspect(is_victim=False, end=_server_end(seen, name) or _LONG_AGO, slot=slot, name=name, broken=[])
        for name, slot in seen.slots.items()
        if slot.role is Role.PS and _ended_by_itself(seen, name)
    ]


def _ended_by_itself(seen: Observed, name: str) -> bool:
    verdict, training = seen.verdicts.get(name), seen.training_status(name)
    restarted = training is not None and training.restart_count > 0 and verdict is not Verdict.FAILED
    return verdict is Verdict.SUCCEEDED or restarted


def _server_end(seen: Observed, name: str) -> datetime | None:
    training = seen.training_status(name)
    end = training.state.terminated if training is not None else None
    return end.finished_at if end is not None else None


def _find_lost_pod(seen: Observed) -> Failure | None:
    """A pod that is gone after peers were told its address. Another one would not be found by them."""
    if not seen.peers_are_told or not seen.missing:
        return None
    name, slot = next(iter(seen.missing.items()))
    return Failure(role=slot.role, rank=slot.rank, pod=name, reason=POD_LOST)


def _describe(seen: Observed, suspect: _Suspect) -> Failure:
    pod = seen.own.get(suspect.name)
    container = next(iter(suspect.broken), None)
    end = container.state.terminated if container is not None else None
    code = end.exit_code if end is not None else None
    reason = end.reason if end is not None else ""
    if pod is not None and pod.metadata.terminating:
        reason = POD_LOST  # it ended because somebody deletes it
    if pod is not None and pod.status.reason:
        reason = pod.status.reason
    if seen.verdicts[suspect.name] is not Verdict.FAILED:
        code, reason = 0, SERVER_ENDED
        container = seen.training_status(suspect.name)
    return Failure(
        role=suspect.slot.role,
        rank=suspect.slot.rank,
        pod=suspect.name,
        node=pod.spec.node_name if pod is not None else "",
        container=container.name if container is not None else "",
        exit_code=code,
        reason=reason or "Error",
    )


def _broken_containers(seen: Observed, name: str) -> list[ContainerStatus]:
    """Training first."""
    status, training = seen.own[name].status, seen.training_container(name)
    statuses = (*status.init_container_statuses, *status.container_statuses)
    broken = [one for one in statuses if one.state.terminated is not None and one.state.terminated.exit_code]
    return sorted(broken, key=lambda one: one.name != training)


def in_words(failure: Failure) -> str:
    """One sentence for people."""
    who = f"{failure.role} {failure.rank} (pod {failure.pod})"
    if failure.reason == POD_LOST:
        return f"{who} is missing, and its peers could not find another; create the job anew"
    if failure.reason == SERVER_ENDED:
        return f"{who} ended by itself before the workers did, and with it its part of the model"
    where = f" on node {failure.node}" if failure.node else ""
    if failure.exit_code is None:
        return f"{who} failed{where}: {failure.reason}"
    how = f"container {failure.container} exited with {failure.exit_code} ({failure.reason})"
    return f"{who} failed{where}: {how}"
