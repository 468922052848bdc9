"""Which pod is to blame when a try fails, and how that reads.

Everything that should not have happened is a suspect: a pod that failed, a server that ended, a pod that is
gone or cannot come back to its peers. What each means is in ends.toml; whose class comes first there is to
blame, then who ended first, as times have a resolution of one second and victims may end before their cause.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

from paddle_operator.api.names import ADDRESS_CHANGED
from paddle_operator.api.paddlejob import Failure, Mode, Role

from . import ranks
from .endpoints import Slot
from .ends import UNKNOWN, VICTIM, Counts, table
from .hints import next_step
from .observed import Observed
from .suspects import UNDER_WAY, Suspect, find_suspects
from .trained_alone import find_lonely
from .verdicts import Question, Verdict

# How long after an end that alone is not to be blamed: victims may end before the one who killed them, whose
# launcher looks only now and then; and servers just before the workers that have stopped them.
PATIENCE = timedelta(seconds=5)
# While one still seems to run whom its victims have given up: its node may be gone, which takes the control
# plane most of a minute to notice.
LONG_PATIENCE = timedelta(seconds=60)


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
    suspects = [] if seen.is_trained else find_suspects(seen)
    if not suspects:
        return Finding()
    if (until := _awaited_until(seen, suspects)) is not None:
        return Finding(open_until=until)
    cause = min(suspects, key=_blame)
    return Finding(_describe(seen, cause, suspects), cause.meaning.counts)


def _blame(suspect: Suspect) -> tuple[int, bool, int, bool, bool, datetime, Slot]:
    """Whom first: by class, then whom its peers name.

    Of victims those first whose launcher stopped them: one of its own trainers may have failed, while those
    that aborted have lost a peer. Of errors of their own 1 comes last: a script that finds its peer gone
    raises and ends so.
    """
    return (
        table().rank(suspect.meaning),
        not suspect.is_lost,
        -suspect.lost_by,
        not suspect.meaning.doubtful,
        suspect.own_code == 1,
        suspect.end,
        suspect.slot,
    )


def _awaited_until(seen: Observed, suspects: list[Suspect]) -> datetime | None:
    running = {seen.slots[name].role for name, verdict in seen.verdicts.items() if verdict in UNDER_WAY}
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


def _describe(seen: Observed, suspect: Suspect, suspects: list[Suspect]) -> Failure:
    pod = seen.own.get(suspect.name)
    meaning = suspect.meaning.told(_facts(seen, suspect))
    node = pod.spec.node_name if pod is not None else ""
    who = f"{suspect.slot.role} {suspect.slot.rank} (pod {suspect.name}{f' on node {node}' if node else ''})"
    who = f"{who}{_process(suspect)}" if suspect.reason != ADDRESS_CHANGED else "a pod"
    failure = Failure(
        role=suspect.slot.role,
        rank=suspect.slot.rank,
        pod=suspect.name,
        node=node,
        container=suspect.container,
        exit_code=suspect.exit_code,
        reason=suspect.reason,
        kind=meaning.kind,
        local_rank=suspect.trainer.process if suspect.trainer is not None else None,
        log=suspect.trainer.log if suspect.trainer is not None else "",
        message=f"{who} {meaning.means}{_how(suspect)}",
        victims=_victims(suspect, suspects),
        attempt=seen.job.status.attempt,
    )
    return next_step(seen, failure, meaning.next)


def _process(suspect: Suspect) -> str:
    """The trainer that is meant, if the launcher or its peers have named one."""
    trainer = suspect.trainer
    if trainer is None:
        return ""
    rank = f" (global rank {trainer.rank})" if trainer.rank is not None else ""
    return f", process {trainer.process}{rank}"


def _how(suspect: Suspect) -> str:
    trainer = suspect.trainer
    if suspect.exit_code is None or not suspect.container:
        return f": {suspect.reason}" if suspect.meaning is UNKNOWN else ""
    ended = f": container {suspect.container} exited with {suspect.exit_code}"
    if trainer is None or trainer.code is None:
        return f"{ended} ({suspect.reason})"
    why = f" ({suspect.reason})" if suspect.meaning.reasons else ""
    log = f" ({trainer.log})" if trainer.log else ""
    return f"{ended}{why}, its process {trainer.process} with {trainer.code}{log}"


def _facts(seen: Observed, suspect: Suspect) -> dict[str, str]:
    """What the template says of the container."""
    container = seen.container_in_template(suspect.slot.role, suspect.container)
    limit = ((container.get("resources") or {}).get("limits") or {}).get("memory")
    facts = {"pod": suspect.name, "container": suspect.container, "image": container.get("image") or ""}
    facts["log"] = suspect.log
    return facts | ({"limit": str(limit)} if limit else {})


def _victims(cause: Suspect, suspects: list[Suspect]) -> str:
    slots = [one.slot for one in suspects if one is not cause and one.meaning.kind == VICTIM]
    by_role = {role: ranks.to_text(slot.rank for slot in slots if slot.role is role) for role in Role}
    return "; ".join(f"{role} {text}" for role, text in by_role.items() if text)
