"""Who may have made a try fail: everything that should not have happened, each with what it means.

A pod that failed, a server that ended, a pod that is gone or cannot come back to its peers. What each means
is in ends.toml; which trainer of a pod it was, trainers.py tells.
"""

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
from paddle_operator.api.paddlejob import Mode, Role

from .endpoints import Slot
from .ends import UNKNOWN, VICTIM, Meaning, meaning_of
from .launcher_words import listen
from .limits import backoff_limit, incidents_in_place
from .observed import Observed
from .sweep import is_overdue
from .trainers import Trainer, Trainers, trainers_of
from .verdicts import DISRUPTED, Verdict, disruption

# What the ends of logs tell, where they are known: gloo's words, and those of Paddle's launcher.
PEER_GONE = "PeerGone"
LOST_BY_PEERS = "LostByPeers"
# What only the lack of another end tells.
TRAINER_FAILED = "TrainerFailed"
ABORTED = "Aborted"
_BY_OTHER_ENDS = frozenset({PEER_GONE, TRAINER_FAILED, ABORTED})
# Of a process that a signal ended, a shell says 128 and the signal; the table has rows for these.
_SIGNALLED, _LAST_SIGNALLED = 128, 192
_KILLED = -9
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_NEVER = datetime.max.replace(tzinfo=UTC) - timedelta(days=1)
UNDER_WAY = frozenset({Verdict.RUNNING, Verdict.STARTING})


class Suspect(NamedTuple):
    """A pod that is not as it should be."""

    slot: Slot
    name: str
    end: datetime
    meaning: Meaning
    reason: str
    container: str = ""
    exit_code: int | None = None
    trainer: Trainer | None = None
    """The process of the container that is meant, where several may run in it."""
    lost_by: int = 0
    """How many trainers have lost one of this pod's that seems to have lost nobody."""
    log: str = ""
    """One that may tell more, inside the pod."""

    @property
    def is_judged_by_code(self) -> bool:
        """Nobody says what was done to it: what its process did may be the consequence of another end."""
        by_code = bool(self.meaning.codes) or self.meaning is UNKNOWN or self.reason in _BY_OTHER_ENDS
        return by_code and not self.is_lost

    @property
    def is_lost(self) -> bool:
        """Its peers say that it went first."""
        return self.trainer is not None and self.trainer.is_lost

    @property
    def own_code(self) -> int | None:
        """Of the process that is meant, if it is known."""
        known = self.trainer is not None and self.trainer.code is not None
        return self.trainer.code if self.trainer is not None and known else self.exit_code


def find_suspects(seen: Observed) -> list[Suspect]:
    failed = [name for name in seen.own if seen.verdicts[name] is Verdict.FAILED]
    trainers = trainers_of(seen, {name: listen(_last_words(seen, name)) for name in failed})
    found = [
        *(_failed(seen, name, trainers[seen.slots[name].role]) for name in failed),
        *_ended_servers(seen),
        *_lost(seen),
        *_restarted_in_vain(seen),
    ]
    if found and all(one.meaning.kind == VICTIM for one in found):
        found += _silent(seen)
    return _by_itself(seen, found) or _moved(seen)


def _by_itself(seen: Observed, found: list[Suspect]) -> list[Suspect]:
    """A lone pod is nobody's victim; nor is one whose launcher stopped its trainers if no other has ended."""
    if len(found) != 1 or found[0].meaning.kind != VICTIM:
        return found
    (only,) = found
    if len(seen.slots) > 1 and not only.meaning.doubtful:
        return found
    has_aborted = bool(only.meaning.codes) and not only.meaning.doubtful
    reason = ABORTED if has_aborted else TRAINER_FAILED
    # Of the process that the launcher names it is only known that another one was quicker to fail.
    trainer = only.trainer if has_aborted else None
    return [only._replace(meaning=meaning_of((reason,), None), reason=reason, trainer=trainer)]


def _suspect(seen: Observed, name: str, reason: str, end: datetime | None = None) -> Suspect:
    meaning = meaning_of((reason,), None)
    if meaning is UNKNOWN:
        meaning = meaning_of((DISRUPTED,), None)
    return Suspect(seen.slots[name], name, end or _NEVER, meaning, reason)


def _failed(seen: Observed, name: str, trainers: Trainers) -> Suspect:
    pod, broken = seen.own[name], _broken_containers(seen, name)
    ends = [end for container in broken if (end := container.state.terminated)]
    code = ends[0].exit_code if ends else None
    slot = seen.slots[name]
    is_training = bool(broken) and broken[0].name == seen.training_container(name)
    # What was done to the whole pod was done to no trainer of it.
    is_its_own_end = is_training and not (disruption(pod) or pod.status.reason or pod.metadata.terminating)
    trainer = _trainer_of(trainers, slot.rank, ends[0]) if is_its_own_end else None
    told = _reason_of_trainers(trainers, slot.rank, trainer, code) if is_its_own_end else ""
    reasons = _reasons(pod, ends, told)
    own = trainer.code if trainer is not None else None
    meaning = meaning_of(reasons, code if own is None else own if own >= 0 else _SIGNALLED - own)
    known = [reason for reason in reasons if meaning.explains(reason)]
    return Suspect(
        slot,
        name,
        min((end.finished_at or _NEVER for end in ends), default=_NEVER),
        meaning,
        next(iter([*known, *reasons]), "Error"),
        broken[0].name if broken else "",
        code,
        trainer,
        trainers.lost_in(slot.rank) if is_its_own_end else 0,
        _log_of(trainers, slot.rank, trainer),
    )


def _trainer_of(trainers: Trainers, pod: int, end: Terminated) -> Trainer | None:
    """The one that is meant, if it can be the one to which this happened."""
    found = trainers.of_pod(pod)
    if found is None:
        return None
    if meaning_of((end.reason,), None) is not UNKNOWN:
        # The container runtime tells of some process that was killed, memory having run out mostly.
        return found if found.is_lost or found.code == _KILLED else None
    # If a signal ended the launcher, it took its trainers along, and peers lost all of these.
    is_launchers = found.code is None and _SIGNALLED < end.exit_code <= _LAST_SIGNALLED
    return None if is_launchers else found


def _log_of(trainers: Trainers, pod: int, trainer: Trainer | None) -> str:
    """Of the one who failed by itself; of a victim's pod that of whom it has lost."""
    own = trainer.log if trainer is not None else ""
    if trainer is not None and (trainer.is_lost or not trainers.is_victim(pod)):
        return own
    return trainers.look_at(pod) or own


def _reason_of_trainers(trainers: Trainers, pod: int, trainer: Trainer | None, code: int | None) -> str:
    if trainer is not None and trainer.is_lost:
        # The code of the container is that of another trainer, if it is a victim's.
        is_a_victims = trainers.is_victim(pod) or meaning_of((), code).kind == VICTIM
        return LOST_BY_PEERS if trainer.code is None and is_a_victims else ""
    if trainers.lost_a_peer(pod):
        return PEER_GONE
    is_doubtful = trainer is None and meaning_of((), code).doubtful
    return TRAINER_FAILED if is_doubtful and trainers.raised(pod) else ""


def _last_words(seen: Observed, name: str) -> str:
    end = seen.training_end(name)
    return end.message if end is not None else ""


def _reasons(pod: Pod, ends: list[Terminated], told: str) -> tuple[str, ...]:
    """Why it failed, the most telling first: what was done to the pod goes before what its process did."""
    by_others = disruption(pod)
    of_container = ends[0].reason if ends else ""
    if meaning_of((of_container,), None) is UNKNOWN and pod.metadata.terminating:
        of_container = POD_LOST  # it ended because somebody deletes it
    # What the table does not know of was done by some controller all the same.
    in_general = DISRUPTED if by_others else ""
    return tuple(filter(None, (by_others, pod.status.reason, in_general, of_container, told)))


def _ended_servers(seen: Observed) -> list[Suspect]:
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
    end = seen.training_end(name)
    return end.finished_at if end is not None else None


def _lost(seen: Observed) -> list[Suspect]:
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
        if pod.metadata.terminating and seen.verdicts[name] in UNDER_WAY and (reason := disruption(pod))
    ]
    return [*gone, *doomed, *stuck]


def _silent(seen: Observed) -> list[Suspect]:
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


def _restarted_in_vain(seen: Observed) -> list[Suspect]:
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
        if seen.verdicts[name] in UNDER_WAY
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


def _in_place(seen: Observed, name: str, reason: str) -> Suspect:
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


def _moved(seen: Observed) -> list[Suspect]:
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
