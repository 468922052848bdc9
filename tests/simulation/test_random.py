"""Everything at once, drawn from one number: modes, networks, policies, faults, who goes on when.

Which seeds, BASE decides, and that SAMPLE (sampling.py); and those that were broken once. A failure names its
own: ``make simulate SEED=123``, or ``SEED=123 pytest tests/simulation -k random``, lives that life again.
"""

import os
from math import inf
from typing import get_args

import pytest
from sampling import BASE
from simulator.__main__ import told
from simulator.cases import tried
from simulator.faults import Fault, Faults
from simulator.history import slots_of
from simulator.life import Life, live
from simulator.once_broken import ONCE_BROKEN
from simulator.random_lives import WORKLOADS, random_case, workload_of
from simulator.schedule import NODE, Priorities, Schedule, Steady, Unsteady
from simulator.virtual_loop import VirtualLoop
from tally import TALLY

DRAWN = 100
ASKED_FOR = os.environ.get("SEED", "")
ALL_SEEDS = dict.fromkeys((*ONCE_BROKEN, *range(BASE, BASE + DRAWN)))
SEEDS = [int(ASKED_FOR)] if ASKED_FOR.isdecimal() else [*ALL_SEEDS]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_life_ends_as_a_calm_one(seed: int) -> None:
    case = random_case(seed)
    verdict = tried(case)
    if verdict.broken:
        pytest.fail(told(verdict))
    TALLY["seeds"] += 1
    TALLY["seeds of which a fault struck"] += verdict.struck > 0


def lived(seed: int) -> Life:
    case = random_case(seed)
    return live(case.workload, case.faults, case.schedule)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_same_seed_gives_the_same_random_life(seed: int) -> None:
    assert lived(seed).witness.story() == lived(seed).witness.story()


def test_one_case_can_be_lived_again_and_again() -> None:
    """Schedules draw lots; a new life begins with fresh dice."""
    case = next(one for one in map(random_case, range(100)) if isinstance(one.schedule, Unsteady))
    lives = [live(case.workload, case.faults, case.schedule) for _ in range(2)]
    assert lives[0].witness.story() == lives[1].witness.story()


def test_another_seed_gives_another_random_life() -> None:
    assert lived(1).witness.story() != lived(2).witness.story()


def test_every_kind_of_fault_and_every_schedule_is_drawn() -> None:
    cases = [random_case(seed) for seed in range(200)]
    assert {type(fault) for case in cases for fault in case.faults.all} == {*get_args(Fault)}
    assert {type(case.schedule) for case in cases} == {Steady, Unsteady, Priorities}
    # A stale list comes with a crash.
    assert {len(case.faults.all) for case in cases} >= {0, 1, 2, 3}


def test_every_drawn_job_has_two_pods_or_more() -> None:
    assert min(len(slots_of(workload_of(number).manifest)) for number in range(WORKLOADS)) >= 2


def seconds_of(schedule: Schedule, *actors: str) -> list[float]:
    """How long each of these steps takes, one after the other."""
    loop = VirtualLoop()
    taken = []
    try:
        for actor in actors:
            began = loop.time()
            loop.run_until_complete(schedule.pause(actor))
            taken.append(loop.time() - began)
    finally:
        loop.close()
    return taken


def test_an_actor_keeps_its_priority_until_it_falls_below_all() -> None:
    schedule = Priorities(seed=1, depth=1)
    taken = seconds_of(schedule, *[NODE, "manager 1 asks"] * Priorities.STEPS)
    node, manager = taken[::2], taken[1::2]
    usual = {round(node[0], 6), round(manager[0], 6)}
    fallen = {round(one, 6) for one in taken} - usual
    assert fallen == {2 * Priorities.LOWEST_SECONDS}
    assert max(usual) < Priorities.LOWEST_SECONDS


def test_priorities_differ_by_orders_of_magnitude() -> None:
    taken = [seconds for seed in range(50) for seconds in seconds_of(Priorities(seed, depth=0), NODE)]
    assert min(taken) < 0.01
    assert max(taken) > 1.0
    assert max(taken) < inf


def test_a_case_without_faults_says_so() -> None:
    assert str(Faults()) == "no fault"
