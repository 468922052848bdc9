"""Which pod is to blame when a job fails, and how that reads."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from paddle_operator.api.core import ContainerStatus, Pod
from paddle_operator.api.names import POD_LOST, SERVER_ENDED
from paddle_operator.api.paddlejob import Failure, Role

from .endpoints import Slot
from .observed import Observed
from .verdicts import Verdict

# Ends that only mean "a peer died": Paddle's launcher reports 250, a plain script aborts with 134.
VICTIM_EXIT_CODES = frozenset({134, 250})
CAUSE_PATIENCE = timedelta(seconds=5)
# A worker that stops the servers itself, as some scripts do, may be seen to end a little after them.
SERVER_PATIENCE = timedelta(seconds=10)
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_NEVER = datetime.max.replace(tzinfo=UTC) - CAUSE_PATIENCE


class _Candidate(NamedTuple):
    """A failed pod, and the containers in it that ended badly: training first."""

    slot: Slot
    pod: Pod
    broken: list[ContainerStatus]


def find_failure(seen: Observed) -> Failure | None:
    """Why the job has failed, if it has. Once its workers have ended well, nothing can fail it."""
    if seen.is_trained:
        return None
    return _find_failed_pod(seen) or _find_ended_server(seen) or _find_lost_pod(seen)


def awaited_until(seen: Observed) -> datetime | None:
    """When what is known now must do to name a failure, or to call something one."""
    times = [_cause_awaited_until(seen)]
    if not seen.is_trained:
        times += [
            end + SERVER_PATIENCE for end, _ in _ended_servers(seen) if seen.now < end + SERVER_PATIENCE
        ]
    return min((time for time in times if time is not None), default=None)


def unconfirmed_workers(seen: Observed) -> tuple[str, ...]:
    """The pods to ask for by name before the end of a server, or its loss, is held against the job.

    That is final; and the end of its workers may be on its way to us, or held up by a watch that is late.
    """
    failure = find_failure(seen)
    if failure is None or failure.role != Role.PS:
        return ()
    workers = [name for name in seen.own if seen.slots[name].role is not Role.PS]
    return tuple(name for name in workers if seen.verdicts[name] is not Verdict.SUCCEEDED)


def _find_failed_pod(seen: Observed) -> Failure | None:
    """The first cause: victims of a dead peer come last, then the earliest end, then the lowest rank."""
    failed = _failed_pods(seen)
    if not failed or _cause_awaited_until(seen) is not None:
        return None
    return _describe(min(failed, key=_blame))


def _find_ended_server(seen: Observed) -> Failure | None:
    """Servers serve until they are stopped. One that ends has taken its part of the model with it."""
    # Clocks of nodes differ: who ended in a moment, has just ended.
    over = [(end, slot) for end, slot in _ended_servers(seen) if abs(seen.now - end) >= SERVER_PATIENCE]
    if not over:
        return None
    _, slot = min(over)
    name = next(name for name, one in seen.slots.items() if one == slot)
    node = seen.own[name].spec.node_name if name in seen.own else ""
    return Failure(role=slot.role, rank=slot.rank, pod=name, node=node, exit_code=0, reason=SERVER_ENDED)


def _ended_servers(seen: Observed) -> list[tuple[datetime, Slot]]:
    """Those that ended well, and when; one whose pod is gone did so long ago."""
    servers = [name for name, slot in seen.slots.items() if slot.role is Role.PS]
    return [
        (_end_of_training(seen, name) or _LONG_AGO, seen.slots[name])
        for name in servers
        if seen.verdicts.get(name) is Verdict.SUCCEEDED
    ]


def _end_of_training(seen: Observed, name: str) -> datetime | None:
    """Side-cars may have ended long before."""
    if name not in seen.own:
        return None
    training, statuses = seen.training_container(name), seen.own[name].status.container_statuses
    ends = [one.state.terminated for one in statuses if one.name == training]
    return next((end.finished_at for end in ends if end is not None), None)


def _cause_awaited_until(seen: Observed) -> datetime | None:
    """Victims may end before the one who killed them: its launcher looks only now and then.

    So the cause gets a moment to show. Clocks of nodes differ: a time that makes no sense is not waited for.
    """
    blames = [_blame(candidate) for candidate in _failed_pods(seen)]
    only_victims = bool(blames) and all(victim for victim, _, _ in blames)
    others_run = any(verdict in {Verdict.RUNNING, Verdict.STARTING} for verdict in seen.verdicts.values())
    if not only_victims or not others_run:
        return None
    ended = max(end for _, end, _ in blames)
    return ended + CAUSE_PATIENCE if ended <= seen.now < ended + CAUSE_PATIENCE else None


def _failed_pods(seen: Observed) -> list[_Candidate]:
    return [
        _Candidate(seen.slots[name], pod, _broken_containers(pod, seen.training_container(name)))
        for name, pod in seen.own.items()
        if seen.verdicts[name] is Verdict.FAILED
    ]


def _find_lost_pod(seen: Observed) -> Failure | None:
    """A pod that is gone after peers were told its address. Another one would not be found by them."""
    if not seen.peers_are_told or not seen.missing:
        return None
    name, slot = next(iter(seen.missing.items()))
    return Failure(role=slot.role, rank=slot.rank, pod=name, reason=POD_LOST)


def _blame(candidate: _Candidate) -> tuple[bool, datetime, Slot]:
    ends = [end for container in candidate.broken if (end := container.state.terminated)]
    victim = bool(ends) and ends[0].exit_code in VICTIM_EXIT_CODES
    return victim, min((end.finished_at or _NEVER for end in ends), default=_NEVER), candidate.slot


def _describe(candidate: _Candidate) -> Failure:
    slot, pod, broken = candidate
    container = broken[0] if broken else None
    end = container.state.terminated if container is not None else None
    return Failure(
        role=slot.role,
        rank=slot.rank,
        pod=pod.metadata.name,
        node=pod.spec.node_name,
        container=container.name if container is not None else "",
        exit_code=end.exit_code if end is not None else None,
        reason=pod.status.reason or (end.reason if end is not None else "") or "Error",
    )


def _broken_containers(pod: Pod, training: str) -> list[ContainerStatus]:
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    broken = [one for one in statuses if one.state.terminated is not None and one.state.terminated.exit_code]
    return sorted(broken, key=lambda one: one.name != training)


def in_words(failure: Failure) -> str:
    """One sentence for people."""
    who = f"{failure.role} {failure.rank} (pod {failure.pod})"
    if failure.reason == POD_LOST:
        return f"{who} is missing, and its peers have already been told who they are"
    if failure.reason == SERVER_ENDED:
        return f"{who} ended by itself before the workers did, and with it its part of the model"
    where = f" on node {failure.node}" if failure.node else ""
    if failure.exit_code is None:
        return f"{who} failed{where}: {failure.reason}"
    how = f"container {failure.container} exited with {failure.exit_code} ({failure.reason})"
    return f"{who} failed{where}: {how}"
