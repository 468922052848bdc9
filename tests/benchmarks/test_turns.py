"""Who is measured when, and who is left out."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from benchmarks.bench import Bench
from benchmarks.measure import Case
from benchmarks.operators import OPERATORS
from benchmarks.results import key_of
from benchmarks.suite import Turn, measured, missing_among, turns
from benchmarks.workloads import BY_NAME, FLOOR, GO, KUBEFLOW, OURS, POD_IP, SERVER, SERVICE, TUNED
from testbed.errors import BuildError


def keys(
    workload: str, *, modes: tuple[str, ...] = (POD_IP, SERVICE), repeats: int | None = None
) -> list[tuple[str, str, int]]:
    options = argparse.Namespace(only=[workload], modes=modes, operators=[*OPERATORS], repeats=repeats)
    return [(turn.case.mode, turn.case.operator.key, turn.repeat) for turn in turns(options)]


def test_each_repeat_begins_with_the_next_operator() -> None:
    order = [(operator, repeat) for _, operator, repeat in keys("50x4-foreign", modes=(POD_IP,))]
    assert order == [(FLOOR, 0), (OURS, 0), (OURS, 1), (FLOOR, 1), (FLOOR, 2), (OURS, 2)]


@pytest.mark.parametrize(
    ("workload", "mode", "operator", "repeats"),
    [
        ("1x256", SERVICE, OURS, 5),
        ("1x256", SERVICE, TUNED, 5),
        ("1x256", SERVICE, GO, 3),
        ("1x256", SERVICE, KUBEFLOW, 3),
        ("1x256", POD_IP, KUBEFLOW, 0),
        ("1x64", POD_IP, GO, 5),
        ("1x64", SERVICE, GO, 0),
        ("200x5", SERVICE, FLOOR, 3),
        ("200x5", SERVICE, GO, 0),
        ("1000x10", POD_IP, SERVER, 1),
        ("1000x10", POD_IP, FLOOR, 1),
    ],
)
def test_how_often(workload: str, mode: str, operator: str, repeats: int) -> None:
    assert [key[:2] for key in keys(workload)].count((mode, operator)) == repeats


def test_fewer_repeats_can_be_asked_for() -> None:
    assert {repeat for *_, repeat in keys("1x256", repeats=1)} == {0}


def test_the_servers_own_time_is_measured_with_many_pods_alone() -> None:
    assert [name for name, one in BY_NAME.items() if SERVER in one.operators] == [
        "1000x10",
        "1000x10-no-node",
    ]


def test_a_peer_that_cannot_be_built_is_missing_and_the_others_are_not() -> None:
    def broken() -> Path:
        raise BuildError("no network", remedy="find one")

    go = replace(OPERATORS[GO], needs=(broken,))
    missing = missing_among([OPERATORS[OURS], go])
    assert missing.keys() == {GO}
    assert "no network" in missing[GO]


@pytest.mark.parametrize("operator", [FLOOR, OURS, SERVER])
def test_we_need_nothing_of_others(operator: str) -> None:
    assert OPERATORS[operator].needs == ()


class _BrokenBench:
    async def make_foreign_pods(self, _count: int) -> None:
        raise ConnectionError("the server is gone")


async def test_a_turn_that_fails_is_a_line_that_says_why() -> None:
    turn = Turn(Case(BY_NAME["1x8"], POD_IP, OPERATORS[OURS]), 2)
    found = await measured(cast("Bench", _BrokenBench()), turn, "name")
    assert key_of(found) == ("1x8", POD_IP, OURS, 2)
    assert found["error"] == "ConnectionError: the server is gone"
