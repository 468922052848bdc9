"""Which pod is to blame when a try fails, and how that reads.

Everything that should not have happened is a suspect: a pod that failed, a server that ended, a pod that is
gone or cannot come back to its peers. What each means is in ends.toml; whose class comes first there is to
blame, then who ended first, as times have a resolution of one second and victims may end before their cause.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from paddle_operator.api.annotations import answer_to
from paddle_operator.api.core import ContainerStatus, Pod, Terminated
from paddle_operator.api.names import (
    ADDRESS_CHANGED,
    ANNOTATION_ASYNC_PS,
    ANNOTATION_NUDGE,
    NODE_LOST,
    POD_LOST,
    RESTARTED_ALONE,
    RESTARTED_TOO_OFTEN,
    SERVER_ENDED,
)
from paddle_operator.api.paddlejob import Failure, Mode, Role

from . import ranks
from .endpoints import Slot
from .ends import UNKNOWN, VICTIM, Counts, Meaning, meaning_of, table
from .hints import next_step
from .limits import backoff_limit, incidents_in_place
from .observed import Observed
from .sweep import is_overdue
from .trained_alone import find_lonely
from .verdicts import DISRUPTED, Question, Verdict, disruption

# How long after an end that alone is not to be blamed: victims may end before the one who killed them, whose
# launcher looks only now and then; and servers just before the workers that have stopped them.
PATIENCE = timedelta(seconds=5)
# While one still seems to run whom its victims have given up: its node may be gone, which takes the control
# plane most of a minute to notice.
LONG_PATIENCE = timedelta(seconds=60)
# What gloo says in a script whose peer is gone, where the end of its log is known.
PEER_GONE = "PeerGone"
_PEER_IS_GONE = re.compile(r"gloo/transport/tcp/\w+\.cc")
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_NEVER = datetime.max.replace(tzinfo=UTC) - LONG_PATIENCE


class _Suspect(NamedTuple):
    """A pod that is not as it should be."""

    slot: Slot
    name: str
    end: datetime
    meaning: Meaning
    reason: str
    container: str = ""
    exit_code: int | None = None

    @property
    def is_judged_by_code(self) -> bool:
        """Nobody says what was done to it: what its process did may be the consequence of another end."""
        return bool(self.meaning.codes) or self.meaning is UNKNOWN


class Finding(NamedTuple):
    failure: Failure | None = None
    """Why the try has failed."""
    counts: Counts = Counts.NOTHING
    open_until: datetime | None = None
    """Something has ended; but it is not held against anybody before then, as another end may tell more."""


def find_failure(seen: Observed) -> Finding:
    """Once its workers have ended well, nothing can fail a job, but that they did not train together."""
    if (alone := find_lonely(seen)) is not None:
        return Finding(alone, Counts.NOTHING)
    suspects = [] if seen.is_trained else _suspects(seen)
    if not suspects:
        return Finding()
    if (until := _awaited_until(seen, suspects)) is not None:
        return Finding(open_until=until)
    cause = min(suspects, key=_blame)
    return Finding(_describe(seen, cause, suspects), cause.meaning.counts)


def _blame(suspect: _Suspect) -> tuple[int, bool, datetime, Slot]:
    """Whom first. Of errors of their own, 1 last: a script that finds its peer gone raises and ends so."""
    return table().rank(suspect.meaning), suspect.exit_code == 1, suspect.end, suspect.slot


def _awaited_until(seen: Observed, suspects: list[_Suspect]) -> datetime | None:
    running = {seen.slots[name].role for name, verdict in seen.verdicts.items() if verdict in _UNDER_WAY}
    if Role.WORKER in running and all(one.slot.role is Role.PS for one in suspects):
        last, patience = min(one.end for one in suspects), PATIENCE
    elif running and all(one.meaning.kind == VICTIM for one in suspects):
        last, patience = max(one.end for one in suspects), LONG_PATIENCE
    elif Role.WORKER in running and all(one.is_judged_by_code for one in suspects):
        last, patience = min(one.end for one in suspects), PATIENCE
    else:
        return None
    # Clocks of nodes differ: who ended in a moment has just ended. One that is far off costs the patience.
    return last + patience if abs(seen.now - last) < patience else None


_UNDER_WAY = frozenset({Verdict.RUNNING, Verdict.STARTING})


def unconfirmed_workers(seen: Observed) -> Question:
    """The pods to ask before the end of a server, or its loss, is held against the job.

    The end of its workers may be on its way to us, or held up by a watch that is late.
    """
    failure = find_failure(seen).failure if seen.job.spec.mode is Mode.PS else None
    if failure is None or failure.role != Role.PS:
        return Question()
    workers = [name for name in seen.workers if name in seen.own]
    return Question(
        tuple(name for name in workers if seen.verdicts[name] is not Verdict.SUCCEEDED),
        frozenset({Verdict.SUCCEEDED}),
    )


def _suspects(seen: Observed) -> list[_Suspect]:
    found = [
        *(_failed(seen, name) for name in seen.own if seen.verdicts[name] is Verdict.FAILED),
        *_ended_servers(seen),
        *_lost(seen),
        *_restarted_in_vain(seen),
    ]
    if found and all(one.meaning.kind == VICTIM for one in found):
        found += _silent(seen)
    return found or _moved(seen)


def _suspect(seen: Observed, name: str, reason: str, end: datetime | None = None) -> _Suspect:
    meaning = meaning_of((reason,), None)
    if meaning is UNKNOWN:
        meaning = meaning_of((DISRUPTED,), None)
    return _Suspect(seen.slots[name], name, end or _NEVER, meaning, reason)


def _failed(seen: Observed, name: str) -> _Suspect:
    pod, broken = seen.own[name], _broken_containers(seen, name)
    ends = [end for container in broken if (end := container.state.terminated)]
    code = ends[0].exit_code if ends else None
    reasons = _reasons(pod, ends)
    meaning = meaning_of(reasons, code)
    first = min((end.finished_at or _NEVER for end in ends), default=_NEVER)
    known = [reason for reason in reasons if meaning.explains(reason)]
    return _Suspect(
        seen.slots[name],
        name,
        first,
        meaning,
        next(iter([*known, *reasons]), "Error"),
        broken[0].name if broken else "",
        code,
    )


def _reasons(pod: Pod, ends: list[Terminated]) -> tuple[str, ...]:
    """Why it failed, the most telling first: what was done to the pod goes before what its process did."""
    by_others = disruption(pod)
    of_container = ends[0].reason if ends else ""
    if meaning_of((of_container,), None) is UNKNOWN and pod.metadata.terminating:
        of_container = POD_LOST  # it ended because somebody deletes it
    # What the table does not know of was done by some controller all the same.
    in_general = DISRUPTED if by_others else ""
    by_peer = PEER_GONE if ends and _PEER_IS_GONE.search(ends[0].message) else ""
    return tuple(filter(None, (by_others, pod.status.reason, in_general, of_container, by_peer)))


def _ended_servers(seen: Observed) -> list[_Suspect]:
    """Servers serve until they are stopped. One that ended well took its part of the model with it.

    So did one that was restarted in place; and one whose pod is gone did so long ago.
    """
    names = [name for name, slot in seen.slots.items() if slot.role is Role.PS]
    ended = [name for name in names if _ended_by_itself(seen, name)]
    return [
        _in_place(seen, name, SERVER_ENDED)
        if _was_restarted(seen, name)
        else _suspect(seen, name, SERVER_ENDED, _end_of_training(seen, name) or _LONG_AGO)._replace(
            exit_code=0, container=seen.training_container(name) if name in seen.own else ""
        )
        for name in ended
    ]


def _ended_by_itself(seen: Observed, name: str) -> bool:
    verdict = seen.verdicts.get(name)
    return verdict is Verdict.SUCCEEDED or (verdict is not Verdict.FAILED and _was_restarted(seen, name))


def _was_restarted(seen: Observed, name: str) -> bool:
    training = seen.training_status(name)
    return training is not None and training.restart_count > 0


def _end_of_training(seen: Observed, name: str) -> datetime | None:
    training = seen.training_status(name)
    end = training.state.terminated if training is not None else None
    return end.finished_at if end is not None else None


def _lost(seen: Observed) -> list[_Suspect]:
    """Gone, or as good as gone, after peers were told of it. Another one would not be found by them."""
    is_known = seen.peers_are_told and seen.all_were_there
    gone = [_suspect(seen, name, POD_LOST) for name in seen.missing if is_known]
    stuck = [
        _suspect(seen, name, NODE_LOST)
        for name, pod in seen.own.items()
        if is_overdue(pod, seen.now) and seen.verdicts[name] not in {Verdict.SUCCEEDED, Verdict.FAILED}
    ]
    doomed = [
        _suspect(seen, name, reason)
        for name, pod in seen.own.items()
        if pod.metadata.terminating and seen.verdicts[name] in _UNDER_WAY and (reason := disruption(pod))
    ]
    return [*gone, *doomed, *stuck]


def _silent(seen: Observed) -> list[_Suspect]:
    """Those that still seem to run, but the control plane says of them that they are not ready any more.

    A kubelet that lives would say so of the container too. By itself that proves nothing, but peers gave up.
    """
    return [
        _suspect(seen, name, NODE_LOST)
        for name, pod in seen.own.items()
        if seen.verdicts[name] is Verdict.RUNNING
        and (ready := pod.condition("Ready")) is not None
        and ready.status != "True"
    ]


def _restarted_in_vain(seen: Observed) -> list[_Suspect]:
    """In place, but more often than is allowed, or alone where all would have to come back together."""
    restarted = [name for name, count in seen.restarts_in_place.items() if count]
    if not restarted:
        return []
    if seen.job.status.failures + incidents_in_place(seen) > backoff_limit(seen.job):
        worst = max(restarted, key=lambda name: seen.restarts_in_place[name])
        return [_in_place(seen, worst, RESTARTED_TOO_OFTEN)]
    return [_in_place(seen, name, RESTARTED_ALONE) for name in _alone(seen, restarted)]


def _alone(seen: Observed, restarted: list[str]) -> list[str]:
    """Whom Paddle would let wait for ever: for a peer that has ended, or as one whom no server awaits."""
    came_back = [
        name
        for name in restarted
        if seen.verdicts[name] in _UNDER_WAY
        and seen.slots[name].role is not Role.PS
        and _was_restarted(seen, name)
    ]
    if seen.job.spec.mode is Mode.PS:
        is_async = answer_to(ANNOTATION_ASYNC_PS, seen.job.metadata.annotations)
        return [] if is_async else came_back
    done = [name for name, verdict in seen.verdicts.items() if verdict is Verdict.SUCCEEDED]
    first = min((_end_of_training(seen, name) or _LONG_AGO for name in done), default=_NEVER)
    return [name for name in came_back if done and _begins_after(seen, name, first)]


def _begins_after(seen: Observed, name: str, end: datetime) -> bool:
    """A peer ended before the run of this one, or before the next, if it is between two."""
    training = seen.training_status(name)
    run = training.state.running if training is not None else None
    return run is None or (run.started_at is not None and end <= run.started_at)


def _in_place(seen: Observed, name: str, reason: str) -> _Suspect:
    """With how it ended before it was restarted, which is the real cause."""
    status = seen.own[name].status
    restarted = [
        (one.name, end)
        for one in (*status.container_statuses, *status.init_container_statuses)
        if one.restart_count and (end := one.state.terminated or one.last_state.terminated)
    ]
    if not restarted:
        return _suspect(seen, name, reason)
    container, end = restarted[0]
    suspect = _suspect(seen, name, reason, end.finished_at)
    cause, own = meaning_of((end.reason,), end.exit_code), suspect.meaning
    if cause is not UNKNOWN and cause.kind != VICTIM:
        own = msgspec.structs.replace(
            own, kind=cause.kind, means=f"{own.means}; it {cause.means}", next=cause.next
        )
    return suspect._replace(meaning=own, container=container, exit_code=end.exit_code)


def _moved(seen: Observed) -> list[_Suspect]:
    """Somebody has another address than peers were told. Who it is, nobody has kept."""
    name = next((name for name in seen.own if name in seen.started), None)
    return [_suspect(seen, name, ADDRESS_CHANGED)] if name and _are_misled(seen) else []


def _are_misled(seen: Observed) -> bool:
    if seen.reads_an_old_list:
        return True
    if seen.own_config_map is not None or seen.job.found_by_name:
        return seen.tells_wrong_peers
    # A wrong list was taken away, and somebody had begun with it all the same; others were woken for it.
    waiting = [pod for name, pod in seen.own.items() if name not in seen.started]
    return any(ANNOTATION_NUDGE in pod.metadata.annotations for pod in waiting)


def _broken_containers(seen: Observed, name: str) -> list[ContainerStatus]:
    """Training first."""
    status, training = seen.own[name].status, seen.training_container(name)
    statuses = (*status.init_container_statuses, *status.container_statuses)
    broken = [one for one in statuses if one.state.terminated is not None and one.state.terminated.exit_code]
    return sorted(broken, key=lambda one: one.name != training)


def _describe(seen: Observed, suspect: _Suspect, suspects: list[_Suspect]) -> Failure:
    pod = seen.own.get(suspect.name)
    meaning = suspect.meaning.told(_facts(seen, suspect))
    node = pod.spec.node_name if pod is not None else ""
    who = f"{suspect.slot.role} {suspect.slot.rank} (pod {suspect.name}{f' on node {node}' if node else ''})"
    how = ""
    if suspect.exit_code is not None and suspect.container:
        how = f": container {suspect.container} exited with {suspect.exit_code} ({suspect.reason})"
    elif suspect.meaning is UNKNOWN:
        how = f": {suspect.reason}"
    if suspect.reason == ADDRESS_CHANGED:
        who = "a pod"
    failure = Failure(
        role=suspect.slot.role,
        rank=suspect.slot.rank,
        pod=suspect.name,
        node=node,
        container=suspect.container,
        exit_code=suspect.exit_code,
        reason=suspect.reason,
        kind=meaning.kind,
        message=f"{who} {meaning.means}{how}",
        victims=_victims(suspect, suspects),
        attempt=seen.job.status.attempt,
    )
    return next_step(seen, failure, meaning.next)


def _facts(seen: Observed, suspect: _Suspect) -> dict[str, str]:
    """What the template says of the container."""
    container = seen.container_in_template(suspect.slot.role, suspect.container)
    limit = ((container.get("resources") or {}).get("limits") or {}).get("memory")
    facts = {"pod": suspect.name, "container": suspect.container, "image": container.get("image") or ""}
    return facts | ({"limit": str(limit)} if limit else {})


def _victims(cause: _Suspect, suspects: list[_Suspect]) -> str:
    slots = [one.slot for one in suspects if one is not cause and one.meaning.kind == VICTIM]
    by_role = {role: ranks.to_text(slot.rank for slot in slots if slot.role is role) for role in Role}
    return "; ".join(f"{role} {text}" for role, text in by_role.items() if text)
