"""Everything at once, drawn from one seed: modes, networks, slow requests and watches, a slow node, a crash.

A failure names its seed; ``SEED=123 pytest tests/simulation -k random`` lives that life again.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from random import Random
from typing import Any

import pytest
from oracle import check_end, end_of
from simulated import Life, Recreation, Workload, live
from simulated_acts import delete_pod, resume, suspend
from simulated_connection import CrashAt, Faults, LateChange, Moment
from tally import TALLY
from workloads import ANOTHER_HOST_JOB, disturbed, failing, job, restarted, server_ends

from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS, SERVICES

SEEDS = [int(os.environ["SEED"])] if "SEED" in os.environ else range(60)
LONGEST_LATENCY_SECONDS = 2.0


@dataclass(frozen=True)
class Scenario:
    workload: Workload
    faults: Faults
    pace: Callable[[], float]

    def live(self) -> Life:
        return live(self.workload, self.faults, self.pace)


def draw(seed: int) -> Scenario:
    """The same for the same seed. Each source of chance has its own dice: none disturbs another."""
    dice = Random(f"{seed} scenario")
    latency, delay, pace = (Random(f"{seed} {what}") for what in ("latency", "watch", "node"))
    return Scenario(
        draw_workload(dice),
        Faults(
            crash=CrashAt(dice.randint(1, 20), dice.choice([*Moment])) if dice.random() < 0.6 else None,
            late=LateChange(
                dice.choice([PODS, PADDLE_JOBS, CONFIG_MAPS, SERVICES]),
                dice.randint(1, 15),
                dice.choice([1, 3]),
            ),
            latency=lambda: latency.uniform(0, LONGEST_LATENCY_SECONDS),
            # Now and then a watch stalls, longer than the operator's patience with it.
            watch_delay=lambda: delay.uniform(0, 2) if delay.random() < 0.95 else delay.uniform(2, 30),
            lasting=True,
        ),
        pace=lambda: pace.uniform(0.1, 3.0),
    )


def draw_workload(dice: Random) -> Workload:
    policy = dice.choice(["", "Always", "Never", "OnFailure", "OnCompletion"])
    asked: dict[str, Any] = {
        "servers": dice.choice([0, 0, 1, 2]),
        "intranet": dice.choice(["", "PodIP", "Service", "Host"]),
    }
    workload = Workload(job(workers=dice.choice([1, 2, 2, 3]), policy=policy, **asked))
    if dice.random() < 0.3:
        workload = failing(dice.choice([0, 1]), policy, dice.choice([1, 3, 137]), **asked)
    elif dice.random() < 0.15:
        workload = server_ends(*dice.choice([(0, 6.0), (0, inf), (1, inf)]), policy)
    if asked["intranet"] == "Host" and dice.random() < 0.5:
        workload = replace(workload, others=(*workload.others, (PADDLE_JOBS, ANOTHER_HOST_JOB)))
    if dice.random() < 0.35:
        return draw_setback(dice, policy, asked)
    if dice.random() < 0.4:
        again = Recreation(after_seconds=dice.uniform(0, 25), pause_seconds=dice.uniform(0, 5))
        workload = replace(workload, recreation=again)
    return workload


def draw_setback(dice: Random, policy: str, asked: dict[str, Any]) -> Workload:
    """Something goes wrong in the first try, or somebody interferes, and the job goes on."""
    match dice.choice(["fails", "loses a pod", "is suspended", "grows", "expires"]):
        case "fails":
            failures = dice.choice([1, 2])
            return restarted(failures, dice.choice([1, 2]), policy, **asked)
        case "loses a pod":
            return disturbed(delete_pod(f"resnet-worker-{dice.choice([0, 1])}"), policy=policy, **asked)
        case "is suspended":
            return disturbed(suspend(), resume(), policy=policy, **asked)
        case "grows":
            return disturbed(suspend(), resume(workers=3), policy=policy, **asked)
    return Workload(job(policy=policy, ttlSecondsAfterFinished=dice.choice([0, 60]), **asked))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_life_ends_as_a_calm_one(seed: int) -> None:
    print(f"to live this life again: SEED={seed} pytest tests/simulation -k random")
    scenario = draw(seed)
    life = scenario.live()
    life.check()
    check_end(life, end_of(live(scenario.workload)), f"SEED={seed}")
    TALLY["seeds"] += 1


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_same_seed_gives_the_same_random_life(seed: int) -> None:
    first, second = draw(seed).live(), draw(seed).live()
    assert first.witness.story() == second.witness.story()


def test_another_seed_gives_another_random_life() -> None:
    assert draw(1).live().witness.story() != draw(2).live().witness.story()
