"""The matrix of faults: named groups of cases, the same in every process.

The name of a case begins with its group and its life, as in "crashes completes before 7": names.py finds it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from math import inf
from random import Random

from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS, SERVICES, AnyResource
from paddle_operator.cluster import ApiError
from paddle_operator.kube.errors import Status, error_from
from simulator.cases import Case
from simulator.deeds import DEEDS, Thing
from simulator.faults import (
    Breakage,
    BrokenWatch,
    ClockJump,
    CrashAt,
    Fault,
    Interference,
    LateChange,
    Moment,
    RefusedFor,
    RefusedWrite,
    SecondLeader,
    StaleList,
    faults,
)
from simulator.life import RESTART_SECONDS, Life, Workload
from simulator.oracle import undisturbed
from simulator.schedule import A_MOMENT
from simulator.witness import Request
from simulator.workloads import ALL, CORNERS, HASTY, LIVES, does_alike_in_every_try, is_adopted

Plan = tuple[str, tuple[Fault, ...]]
"""The words that tell one case of a life from the others, and what goes wrong in it."""

KINDS = (PADDLE_JOBS, PODS, CONFIG_MAPS, SERVICES)
LAGS = (1, 3, inf)
# Of lists: one that is a little old hides the last try, one that is very old hides that there were any.
STALE = (1, 3, 6, 9, 12, inf)


@dataclass(frozen=True)
class Group:
    name: str
    lives: tuple[str, ...]
    plans: Callable[[str], Iterator[Plan]]
    all_strike: bool = True
    """Each fault strikes in each case; otherwise one of them is enough."""

    def cases(self, life: str) -> Iterator[Case]:
        for words, planned in self.plans(life):
            yield Case(
                f"{self.name} {life} {words}",
                ALL[life],
                faults(*planned),
                strikes=len(planned) if self.all_strike else 1,
            )


def _writes(life: str) -> list[Request]:
    return undisturbed(life)[0].witness.writes


def crashes(life: str) -> Iterator[Plan]:
    """A crash before, after without reply, and after every write."""
    for number, moment in product(range(1, len(_writes(life)) + 1), Moment):
        yield f"{moment.name.lower().replace('_', '-')} {number}", (CrashAt(number, moment),)


# A watch of pods that is silent for minutes hides more than a deadline of one leaves time to see.
IN_HASTE = HASTY - {"runs-too-long"}


def _told(life: str) -> Iterator[tuple[AnyResource, int]]:
    """Each change of each kind that watches show."""
    told = undisturbed(life)[0].witness.told
    for kind in KINDS:
        yield from ((kind, number) for number in range(1, told[kind] + 1))


def late_watches(life: str) -> Iterator[Plan]:
    """Each change of each kind comes late, and with it all behind it."""
    for (kind, number), lag in product(_told(life), LAGS):
        if kind != PODS or life not in IN_HASTE:
            yield f"{kind.plural} {number} by {lag}", (LateChange(kind, number, lag),)


# Lists are only from the past after a restart, at each write: some lives will do. One kind does not survive
# it: of a server that is known to have ended, and is not listed, nobody knows when, so nobody waits.
LISTED = (
    "completes",
    "fails",
    "single",
    "ps-completes-and-is-cleaned",
    "service-ps-is-cleaned",
    "host-completes",
    "restarts",
    "service-restarts",
    "loses-a-pod",
    "is-suspended",
    "is-suspended-and-grows",
    "loses-a-node",
    "expires",
    "runs-too-long",
)


# A list of jobs that hides an edit, while pods that were made after it are listed, would be believed: nobody
# could tell. No server shows that to us, because our lists are quorum reads.
EDITED = "is-suspended-and-grows"


def stale_lists(life: str) -> Iterator[Plan]:
    """A crash after each write; the first list of a kind that the next process makes is from the past."""
    kinds, writes = listed_kinds(ALL[life]), range(1, len(_writes(life)) + 1)
    for kind, number, lag in product(kinds, writes, STALE):
        if not (life == EDITED and kind == PADDLE_JOBS and lag not in LAGS):
            planned = (CrashAt(number, Moment.AFTER), StaleList(kind, 2, lag))
            yield f"{kind.plural} by {lag} after {number}", planned


def listed_kinds(workload: Workload) -> list[AnyResource]:
    """Of which an old list may be believed, and does no harm.

    The barrier between two tries relies on the list of pods, as that of a real server can be relied on. So
    does the count of failed pods, of which no record is kept before the verdict. What another operator has
    made, and is hidden, is marked as ours when its name is found to be taken: a harmless other end.
    """
    if is_adopted(workload):
        return [PADDLE_JOBS]
    spec = workload.manifest["spec"]
    relies = bool(workload.acts or workload.exit_codes) or "runPolicy" in spec
    kinds = [kind for kind in KINDS if kind != PODS or not relies]
    return [kind for kind in kinds if kind != SERVICES or spec.get("intranet") == "Service"]


def broken_watches(life: str) -> Iterator[Plan]:
    """Before each change of each kind the watch breaks, in each way that there is."""
    for (kind, number), how in product(_told(life), Breakage):
        if how is not Breakage.QUIET or kind != PODS or life not in IN_HASTE:
            yield f"{kind.plural} {number} {how.name.lower()}", (BrokenWatch(kind, number, how),)


# The server's answers; what they mean to the operator, kube/errors.py decides.
ERRORS = {
    "conflict": Status(409, "Conflict", "the object has been modified"),
    "taken": Status(409, "AlreadyExists", "already exists"),
    "missing": Status(404, "NotFound", "the server could not find the requested resource"),
    "forbidden": Status(403, "Forbidden", "exceeded quota"),
    "invalid": Status(422, "Invalid", "a policy does not like it"),
    "throttled": Status(429, "TooManyRequests", "too many requests"),
    "fault": Status(500, "InternalError", "the server has a fault"),
    "away": Status(503, "ServiceUnavailable", "the server is not ready"),
    "slow": Status(504, "Timeout", "the request did not complete within the allotted timeout"),
}
# After these a client cannot know whether the write took effect.
UNKNOWN = ("fault", "away", "slow")


def _error(word: str) -> ApiError:
    return error_from(ERRORS[word], retry_after="1")


def _can_be_said(word: str, write: Request) -> bool:
    """That a name is taken, only to a create; that something is missing, not of pods and their kin that are
    there: only a namespace can be gone, or a kind be not served for a moment."""
    if word == "taken":
        return write.verb == "create"
    return word != "missing" or write.verb == "create" or write.resource == PADDLE_JOBS


def refused_writes(life: str) -> Iterator[Plan]:
    """Every write is refused once, with each error; or done, and only the answer is lost."""
    for number, write in enumerate(_writes(life), start=1):
        for word in ERRORS:
            if _can_be_said(word, write):
                yield f"{word} {number}", (RefusedWrite(number, _error(word)),)
        for word in UNKNOWN:
            yield f"{word}-but-done {number}", (RefusedWrite(number, _error(word), has_effect=True),)


REFUSED_SECONDS = 150.0
LASTING = ("forbidden", "invalid", "throttled", "slow")


def lasting_refusals(life: str) -> Iterator[Plan]:
    """All writes of a verb and kind are refused for minutes; but none that a deadline waits for."""
    asked = dict.fromkeys(
        (write.verb, write.resource)
        for write in _writes(life)
        if not (ALL[life].has_deadline and write.resource is PADDLE_JOBS)
    )
    for (verb, kind), word in product(asked, LASTING):
        yield f"{verb} {kind.plural} {word}", (RefusedFor(verb, kind, _error(word), REFUSED_SECONDS),)


# By how much each of its steps is slower than those of the first: from in step to far behind.
STEPS_TO_A_TURN = 4
SLOWER = (0.0, 0.0004, 0.003, 0.03, 0.3, 1.7, 12.0)


def second_leader(life: str) -> Iterator[Plan]:
    """Two managers act for the whole life."""
    for slower in SLOWER:
        # Until it decides, it has asked and heard: by then the job may be gone.
        if STEPS_TO_A_TURN * slower < _gone_at(life):
            yield f"slower {slower}", (SecondLeader(slower),)


def _gone_at(life: str) -> float:
    """When the job is deleted, if it is."""
    calm, _ = undisturbed(life)
    changed = [change.at for change in calm.witness.changes if change.entry.resource == PADDLE_JOBS]
    return inf if calm.jobs else changed[-1]


def edits(life: str) -> Iterator[Plan]:
    """At each change of the store somebody does something to the job, or to what it has."""
    calm, _ = undisturbed(life)
    there = list(_there(calm))
    for name, deed in DEEDS.items():
        if _makes_sense(name, life):
            # The first two changes are the job's birth.
            for change in range(3, len(there)):
                if deed.to in there[change]:
                    yield f"{name} {change}", (Interference(change, name),)


def _there(life: Life) -> Iterator[set[Thing]]:
    """What is there when somebody comes after so many changes, each time: he is a moment late."""
    entries, at = life.history.entries, life.witness.changed_at
    yield set()
    for number in range(1, len(entries) + 1):
        comes = sum(moment <= at[number - 1] + 2 * A_MOMENT for moment in at)
        stored = (
            life.history.as_of(entries[number - 1].version),
            life.history.as_of(entries[comes - 1].version),
        )
        both = stored[0].keys() & stored[1].keys()
        yield {(one[0], one[1].name) for one in both if "deletionTimestamp" not in stored[1][one]["metadata"]}


def _makes_sense(name: str, life: str) -> bool:
    deed, workload = DEEDS[name], ALL[life]
    spec = workload.manifest["spec"]
    if name == "edit-the-clean-policy-and-back" and spec.get("cleanPodPolicy") == "Never":
        return False  # that is what it would be edited to
    if deed.ends_it and workload.recreation is not None:
        return False  # its user makes it again
    if name == "unlabel-the-map" and is_adopted(workload):
        return False  # it has none
    if deed.to[0] == SERVICES and spec.get("intranet") != "Service":
        return False
    return not deed.begins_anew or does_alike_in_every_try(workload)


HOUR = 3600.0
# Before the manager starts, while pods start, while they run, while a deadline is awaited.
MOMENTS = (0.0, 1.0, 4.0, 40.0)


def clocks(life: str) -> Iterator[Plan]:
    """The clock of the manager's machine is set by an hour; also while the manager starts again."""
    last_turn = undisturbed(life)[0].witness.turns[-1].at
    for at, by in product([moment for moment in MOMENTS if moment <= last_turn], (HOUR, -HOUR)):
        yield f"by {by} at {at}", (ClockJump(at, by),)
    for number, write in enumerate(_writes(life), start=1):
        if write.at + 2 * RESTART_SECONDS < _gone_at(life):
            for by in (HOUR, -HOUR):
                yield f"by {by} crash {number}", (CrashAt(number, Moment.AFTER), ClockJump(1.0, by))


PAIRED = ("completes-and-is-cleaned", "restarts", "ps-restarts", "service-is-recreated")
PAIRS = 1500
SINGLES = (crashes, late_watches, broken_watches, refused_writes)


def pairs(life: str) -> Iterator[Plan]:
    """Two faults in one life: drawn, because all would be a million."""
    singles = _singles(life)
    for number in range(PAIRS):
        chance = Random(f"{life} {number}")
        drawn = [chance.choice(chance.choice(singles)) for _ in range(2)]
        yield f"{number}", tuple(fault for _, planned in drawn for fault in planned)


def second_leader_and_more(life: str) -> Iterator[Plan]:
    """Two managers act for the whole life, and something else goes wrong for one of them."""
    singles = _singles(life)
    for number in range(PAIRS):
        chance = Random(f"{life} {number}")
        _, planned = chance.choice(chance.choice(singles))
        yield f"{number}", (SecondLeader(chance.choice(SLOWER)), *planned)


def _singles(life: str) -> list[list[Plan]]:
    """By kind, of which each is drawn as often. After another fault the n-th write may be one to which some
    errors are not said."""
    kinds = [[*plans(life)] for plans in SINGLES]
    kinds[-1] = [plan for plan in kinds[-1] if not plan[0].startswith(("taken", "missing"))]
    return kinds


_all, _lives = tuple(ALL), tuple(LIVES)
_most = (*LIVES, *CORNERS)
GROUPS = {
    group.name: group
    for group in (
        Group("crashes", _all, crashes),
        Group("late-watches", _most, late_watches),
        Group("stale-lists", LISTED, stale_lists),
        Group("broken-watches", _lives, broken_watches),
        Group("refused-writes", _most, refused_writes),
        Group("lasting-refusals", _lives, lasting_refusals),
        Group("second-leader", _all, second_leader),
        Group("edits", _lives, edits),
        Group("clocks", _lives, clocks),
        Group("pairs", PAIRED, pairs, all_strike=False),
        Group("second-leader-and-more", PAIRED, second_leader_and_more, all_strike=False),
    )
}
