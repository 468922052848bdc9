"""Everything at once, drawn from one number: workload, faults, and who goes on when. The same for the same.

Workloads are drawn from a fixed number of them, so that many lives are measured by one calm end. What users
and nodes do to a job hangs on what is stored, not on the time: so the end does not hang on the schedule.
"""

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import cache
from math import inf
from random import Random
from typing import Any

from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS, SERVICES, AnyResource
from paddle_operator.cluster import Conflict, Forbidden, Throttled, Unreachable
from simulator.acts import (
    delete_pod,
    evict,
    kill_for_memory,
    lose_node_of,
    never_pull,
    preempt,
    resume,
    suspend,
)
from simulator.cases import Case
from simulator.deeds import DEEDS
from simulator.faults import (
    Breakage,
    BrokenWatch,
    ClockJump,
    CrashAt,
    Fault,
    Faults,
    Interference,
    LateChange,
    Moment,
    RefusedFor,
    RefusedWrite,
    SecondLeader,
    StaleList,
)
from simulator.history import intranet_of, slots_of
from simulator.life import Recreation, Workload
from simulator.oracle import Calm, calm
from simulator.schedule import Priorities, Schedule, Steady, Unsteady
from simulator.sweeps import LAGS, listed_kinds
from simulator.workloads import (
    ALL,
    ANOTHER_HOST_JOB,
    HASTY,
    IMPOSTOR,
    LATER,
    MISFIT,
    disturbed,
    does_alike_in_every_try,
    job,
    restarted,
    server_ends,
)

WORKLOADS = 2000
MOST_FAULTS = 3
# How these end hangs on how quick their node is.
IN_TIME = HASTY | {"ps-server-ends-shortly-before-its-worker"}
# The share of lives in which nothing goes wrong but the schedule.
UNDISTURBED = 0.05

# Less than what counts as rest, and enough for who is not too slow.
DEADLINE_SECONDS = 190
POLICIES = ("", "Always", "Never", "OnFailure", "OnCompletion")
NETWORKS = ("", "PodIP", "Service", "Host")
ERRORS = (
    Conflict("a webhook does not like it"),
    Forbidden("exceeded quota"),
    Throttled("too many requests", 1.0),
    Unreachable("the server has a fault"),
)


def random_case(seed: int) -> Case:
    dice = Random(f"{seed} case")
    workload = workload_of(dice.randrange(WORKLOADS))
    planned = draw_faults(dice, workload)
    return Case(
        f"random {seed}",
        workload,
        planned,
        draw_schedule(dice, seed, workload),
        strikes=0,
    )


@cache
def workload_of(number: int) -> Workload:
    dice = Random(f"{number} workload")
    if dice.random() < 0.25:
        return dice.choice(
            [
                ALL[name]
                for name in ALL
                if len(slots_of(ALL[name].manifest)) > 1 and name not in IN_TIME | LATER
            ]
        )
    asked = {
        "policy": dice.choice(POLICIES),
        "intranet": dice.choice(NETWORKS),
        "servers": dice.choice([0, 0, 1, 2]),
    }
    asked["workers"] = dice.choice([1, 2, 2, 3] if asked["servers"] else [2, 2, 3])
    return dice.choice(CAREERS)(dice, asked)


# How a job fares. Each takes what is asked of its spec; a new one is one more function.


def completes(dice: Random, asked: dict[str, Any]) -> Workload:
    workload = Workload(job(**asked), others=((PODS, IMPOSTOR),) if dice.random() < 0.3 else ())
    if dice.random() < 0.3:
        workload = replace(workload, misfits=(MISFIT,))
    if asked["intranet"] == "Host" and dice.random() < 0.5:
        return replace(workload, others=(*workload.others, (PADDLE_JOBS, ANOTHER_HOST_JOB)))
    return workload


def fails(dice: Random, asked: dict[str, Any]) -> Workload:
    """One rank ends badly; the others wait for it for ever, as ranks of a collective job do."""
    ranks = range(asked["workers"])
    bad = dice.choice(ranks)
    waits = {f"resnet-worker-{rank}": inf for rank in ranks if rank != bad}
    return Workload(job(**asked), {f"resnet-worker-{bad}": dice.choice([1, 3, 137])}, waits)


def a_server_ends(dice: Random, asked: dict[str, Any]) -> Workload:
    return server_ends(dice.choice([0, 1]), inf, asked["policy"])


def is_created_anew(dice: Random, asked: dict[str, Any]) -> Workload:
    again = Recreation(after_seconds=dice.uniform(0, 25), pause_seconds=dice.choice([0.0, 0.3, 5.0]))
    return replace(dice.choice([completes, fails])(dice, asked), recreation=again)


def fails_and_is_restarted(dice: Random, asked: dict[str, Any]) -> Workload:
    return restarted(dice.choice([1, 2]), dice.choice([1, 2]), **asked)


def loses_a_pod(dice: Random, asked: dict[str, Any]) -> Workload:
    how = dice.choice([delete_pod, evict, preempt])
    return disturbed(how(_some_worker(dice, asked)), **asked)


def runs_out_of_memory(dice: Random, asked: dict[str, Any]) -> Workload:
    return disturbed(kill_for_memory(_some_worker(dice, asked)), **asked, backoffLimit=dice.choice([0, 1]))


def loses_a_node(dice: Random, asked: dict[str, Any]) -> Workload:
    patience: dict[str, Any] = dice.choice([{}, {"forceDeleteAfterSeconds": 60}])
    return disturbed(lose_node_of(_some_worker(dice, asked)), **asked, **patience)


def is_suspended(dice: Random, asked: dict[str, Any]) -> Workload:
    """Perhaps for ever; perhaps it comes back with more or fewer workers."""
    return disturbed(suspend(), *dice.choice([(), (resume(),), (resume(3),), (resume(1),)]), **asked)


def is_born_suspended(_: Random, asked: dict[str, Any]) -> Workload:
    return Workload(job(**asked, suspend=True), acts=(resume(),))


def runs_too_long(_: Random, asked: dict[str, Any]) -> Workload:
    return disturbed(waits=(inf,), **asked, activeDeadlineSeconds=DEADLINE_SECONDS)


def does_not_start(dice: Random, asked: dict[str, Any]) -> Workload:
    return disturbed(never_pull(_some_worker(dice, asked)), **asked, startDeadlineSeconds=DEADLINE_SECONDS)


def expires(dice: Random, asked: dict[str, Any]) -> Workload:
    return Workload(job(**asked, ttlSecondsAfterFinished=dice.choice([0, 60])))


CAREERS: tuple[Callable[[Random, dict[str, Any]], Workload], ...] = (
    completes,
    completes,
    fails,
    a_server_ends,
    is_created_anew,
    is_created_anew,
    fails_and_is_restarted,
    fails_and_is_restarted,
    loses_a_pod,
    runs_out_of_memory,
    loses_a_node,
    is_suspended,
    is_born_suspended,
    runs_too_long,
    does_not_start,
    expires,
)


def _some_worker(dice: Random, asked: dict[str, Any]) -> str:
    return f"resnet-worker-{dice.randrange(asked['workers'])}"


# What goes wrong. Each draws what makes one fault of its kind, at a moment that there is in the calm life; a
# new kind is one more line.
Drawer = Callable[[Random, Workload, Calm], tuple[Fault, ...]]


def crashes(dice: Random, _: Workload, calm: Calm) -> tuple[Fault, ...]:
    return (CrashAt(dice.randint(1, calm.writes), dice.choice([*Moment])),)


def watch_is_late(dice: Random, _: Workload, calm: Calm) -> tuple[Fault, ...]:
    return (LateChange(*_shown(dice, calm), dice.choice([1, 3, inf])),)


def watch_breaks(dice: Random, _: Workload, calm: Calm) -> tuple[Fault, ...]:
    return (BrokenWatch(*_shown(dice, calm), dice.choice([*Breakage])),)


def list_is_stale(dice: Random, workload: Workload, calm: Calm) -> tuple[Fault, ...]:
    # With an old picture of the job, and slow answers, a try that is over would be made once more.
    kinds = [kind for kind in listed_kinds(workload) if kind != PADDLE_JOBS]
    crash = CrashAt(dice.randint(1, calm.writes), Moment.AFTER)
    return (crash, StaleList(dice.choice(kinds), 2, dice.choice(LAGS))) if kinds else (crash,)


def write_is_refused(dice: Random, _: Workload, calm: Calm) -> tuple[Fault, ...]:
    return (RefusedWrite(dice.randint(1, calm.writes), dice.choice(ERRORS)),)


def answer_is_lost(dice: Random, _: Workload, calm: Calm) -> tuple[Fault, ...]:
    return (RefusedWrite(dice.randint(1, calm.writes), Unreachable("no answer"), has_effect=True),)


def creates_are_refused(dice: Random, _: Workload, calm: Calm) -> tuple[Fault, ...]:
    kind, _number = _shown(dice, calm)
    return (RefusedFor("create", kind, dice.choice(ERRORS), dice.choice([5.0, 30.0])),)


def clock_is_set(dice: Random, _: Workload, _calm: Calm) -> tuple[Fault, ...]:
    return (ClockJump(dice.choice([0.0, 1.0, 4.0]), dice.choice([3600.0, -3600.0])),)


def another_leads(dice: Random, _: Workload, _calm: Calm) -> tuple[Fault, ...]:
    return (SecondLeader(dice.choice([0.0, 0.01, 0.3, 2.0])),)


def somebody_meddles(dice: Random, workload: Workload, calm: Calm) -> tuple[Fault, ...]:
    alike = does_alike_in_every_try(workload)
    deeds = [name for name in MILD if alike or not DEEDS[name].may_begin_anew]
    # The first two changes are the job's birth.
    return (Interference(dice.randint(3, calm.changes), dice.choice(deeds)),)


# A service that loses its labels between the end of its job and its own is left until the job is deleted.
MILD = [name for name, deed in DEEDS.items() if not deed.ends_it and name != "unlabel-a-service"]
DRAWERS: tuple[Drawer, ...] = (
    crashes,
    crashes,
    watch_is_late,
    watch_breaks,
    list_is_stale,
    write_is_refused,
    answer_is_lost,
    creates_are_refused,
    clock_is_set,
    another_leads,
    somebody_meddles,
)


def draw_faults(dice: Random, workload: Workload) -> Faults:
    if dice.random() < UNDISTURBED:
        return Faults()
    drawn = [
        fault
        for _ in range(dice.randint(1, MOST_FAULTS))
        for fault in dice.choice(DRAWERS)(dice, workload, calm(workload))
    ]
    planned = {_role(fault): fault for fault in drawn}
    if any(act.takes_a_pod for act in workload.acts):
        # A pod that somebody deletes may be made again by a leader that never saw it: then nobody misses it.
        planned.pop(SecondLeader, None)
    deleted = [
        one for one in planned.values() if isinstance(one, Interference) and one.deed == "delete-a-pod"
    ]
    if deleted and intranet_of(workload.manifest) != "PodIP":
        # The same, if nothing could be written meanwhile: its peers know it by name, and wait for the other.
        return Faults(tuple(deleted))
    return Faults(tuple(planned.values()))


def _role(fault: Fault) -> Hashable:
    """Of each there is one. Of two reasons to refuse the same, each has its own back-off; and of two
    edits that are alike one would be taken back to the other.
    """
    if isinstance(fault, SecondLeader):
        return SecondLeader
    if isinstance(fault, Interference):
        return Interference, fault.deed
    return (RefusedFor, fault.resource) if isinstance(fault, RefusedFor) else id(fault)


def _shown(dice: Random, calm: Calm) -> tuple[AnyResource, int]:
    """A change that the watches show in the calm life; of pods they show most."""
    kind = dice.choice(
        [kind for kind in (PADDLE_JOBS, PODS, PODS, CONFIG_MAPS, SERVICES) if calm.shown[kind]]
    )
    return kind, dice.randint(1, calm.shown[kind])


def draw_schedule(dice: Random, seed: int, workload: Workload) -> Schedule:
    schedules: list[Schedule] = [Steady(), Unsteady(seed), Unsteady(seed)]
    if not workload.manifest["spec"].get("runPolicy", {}).keys() & {
        "activeDeadlineSeconds",
        "startDeadlineSeconds",
    }:
        schedules += [Priorities(seed, depth) for depth in (0, 1, 2, 4)]
    return dice.choice(schedules)
