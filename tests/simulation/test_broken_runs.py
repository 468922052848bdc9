"""What a run says of what is broken: at once, by a name that `SEED=` takes, and whatever else goes wrong."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NoReturn

import pytest
from rich.console import Console
from seeded_bugs import BUGS
from simulator import __main__ as command
from simulator import batches, oracle
from simulator.batches import Batch, Result, verdict_of
from simulator.cases import Case, Verdict
from simulator.oracle import undisturbed
from simulator.random_lives import random_case
from simulator.sweeps import GROUPS, Plan

from paddle_operator.api.paddlejob import CleanPodPolicy, Phase
from paddle_operator.paddlejob import cleanup

TESTS = Path(__file__).resolve().parents[1]
BROKEN = "undisturbed completes"
INVARIANT = "children_are_cleaned_up_as_asked"
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Lives these portions, and gives what a shell sees."""

    def run(*planned: Batch) -> tuple[int, str]:
        monkeypatch.setattr(command, "batches", lambda *_: [*planned])
        monkeypatch.setattr(batches, "SEEDS_AT_ONCE", 12)
        return command.main(["--schedules", "12", "--processes", "1"]), capsys.readouterr().out

    return run


@pytest.fixture
def _nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No life has been lived as a healthy operator does it; and what a broken one does is forgotten."""
    monkeypatch.setattr(oracle, "_calm", {})
    undisturbed.cache_clear()
    yield
    undisturbed.cache_clear()


@pytest.fixture
def _plainly_broken(_nothing_is_known: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some lives end as they must not, without any fault."""
    monkeypatch.setitem(cleanup._CLEANED_AFTER, CleanPodPolicy.NEVER, {Phase.COMPLETED})


def fail(*_: object) -> NoReturn:
    raise RuntimeError("a fault of the simulator itself")


@pytest.mark.usefixtures("_plainly_broken")
def test_a_life_that_is_broken_without_any_fault_is_told_once_and_the_others_are_lived(run: Run) -> None:
    parts = [Batch(group, "completes", part) for group in ("crashes", "clocks") for part in (0, 1)]
    others = Batch("second-leader", "single"), Batch("random")
    code, told = run(Batch("exhaustive", "orders"), Batch("undisturbed", "completes"), *parts, *others)
    assert code == 1
    assert told.count(f"broken: {BROKEN}: {INVARIANT}\n") == 1
    assert told.count(f"\n{BROKEN}: broken: {INVARIANT}\n") == 1
    assert f'again: make simulate SEED="{BROKEN}"' in told
    assert "manager 1 asks: delete pods resnet-worker-0" in told
    assert "second-leader" in told
    assert told.startswith("8 portions; processes: 1; random lives from BASE=")


@pytest.mark.usefixtures("_plainly_broken")
@pytest.mark.parametrize("name", [BROKEN, "crashes completes before 3", "exhaustive orders: 0"])
def test_by_any_name_of_that_life_it_is_told_again(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--seed", name]) == 1
    told = capsys.readouterr().out
    assert f"\n{BROKEN}: broken: {INVARIANT}\n" in told
    assert (f"{name}: broken without any fault already" in told) == (name != BROKEN)
    assert "Traceback" not in told


@pytest.mark.usefixtures("_plainly_broken")
def test_a_random_life_that_is_broken_without_any_fault_says_which_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    verdicts = {seed: verdict_of(f"random {seed}") for seed in range(20)}
    seed, verdict = next((seed, one) for seed, one in verdicts.items() if one.case.startswith("undisturbed"))
    assert verdict.broken == INVARIANT
    assert command.main(["--seed", verdict.case]) == command.main(["--seed", str(seed)]) == 1
    first, again = capsys.readouterr().out.split(f"{seed}: broken without any fault already\n")
    assert first == again
    assert any(one.case.startswith("random") and not one.broken for one in verdicts.values())


@pytest.mark.usefixtures("_nothing_is_known")
def test_a_manager_that_ends_by_itself_is_told_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def end(_: object) -> None:
        pass

    monkeypatch.setattr("simulator.life.WatchedManager.run", end)
    code, told = run(Batch("crashes", "completes"), Batch("exhaustive", "orders"))
    assert code == 1
    assert told.count(f"broken: {BROKEN}: AssertionError") == 1
    assert "AssertionError: the manager ended by itself" in told


def test_an_error_in_drawing_one_random_life_is_a_failure_of_that_one(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fragile(seed: int) -> Case:
        return fail() if seed == 1 else random_case(seed)

    monkeypatch.setattr("simulator.names.random_case", fragile)
    code, told = run(Batch("random"))
    assert code == 1
    assert "broken: random 1: RuntimeError: a fault of the simulator itself" in told
    assert 'again: make simulate SEED="random 1"' in told
    assert batches.lived(Batch("random"))[1].lives == 12
    assert command.main(["--seed", "random 1"]) == 1
    assert "RuntimeError: a fault of the simulator itself" in capsys.readouterr().out


def test_an_error_between_two_cases_of_a_sweep_takes_nothing_back(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fragile(life: str) -> Iterator[Plan]:
        yield from islice(GROUPS["clocks"].plans(life), 1)
        fail()

    monkeypatch.setitem(GROUPS, "crashes", replace(GROUPS["crashes"], plans=fragile))
    code, told = run(Batch("crashes", "single"), Batch("second-leader", "single"))
    assert code == 1
    assert "broken: crashes single: RuntimeError: a fault of the simulator itself" in told
    assert 'again: make simulate SEED="crashes single"' in told
    assert batches.lived(Batch("crashes", "single"))[1].lives == 2
    assert command.main(["--seed", "crashes single"]) == 1
    assert "RuntimeError: a fault of the simulator itself" in capsys.readouterr().out


def test_an_error_in_a_search_is_a_failure_of_that_search(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "search", fail)
    code, told = run(Batch("exhaustive", "orders"), Batch("second-leader", "single"))
    assert code == 1
    assert "broken: exhaustive orders: RuntimeError: a fault of the simulator itself" in told
    assert "again: make simulate ONLY=exhaustive" in told


def test_of_very_many_failures_the_first_are_said_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    failures = [Verdict(f"crashes completes before {number}", broken="tired") for number in range(60)]
    known: set[str] = set()
    for _ in range(2):
        command.announce(failures, known, Console(width=200))
    assert capsys.readouterr().out.splitlines() == [command.in_a_line(one) for one in failures[:50]]


def test_a_run_says_at_once_how_much_there_is_to_do(run: Run) -> None:
    code, told = run(Batch("second-leader", "single"), Batch("second-leader", "completes"))
    assert code == 0
    said = told.splitlines()
    assert said[0] == "2 portions; processes: 1"
    assert said[1].startswith("1 of 2 portions: ")


def test_a_run_in_which_nothing_was_lived_is_no_success(run: Run) -> None:
    code, told = run()
    assert code == 1
    assert "nothing was lived" in told


def test_who_interrupts_a_run_sees_what_was_found_until_then(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(batch: Batch) -> tuple[str, Result]:
        if batch.part:
            raise KeyboardInterrupt
        return batch.group, Result(7, failures=(Verdict("crashes single before 3", broken="tired"),))

    monkeypatch.setattr(command, "lived", interrupted)
    code, told = run(Batch("crashes", "single"), Batch("crashes", "single", 1))
    assert code == 130
    before, _, after = told.partition("interrupted")
    assert "broken: crashes single before 3: tired" in before
    assert "broken: crashes single before 3: tired" in after
    assert "violations" in after


def test_so_does_who_interrupts_all_its_processes() -> None:
    words = [sys.executable, "-m", "simulator", "--only", "crashes", "--processes", "2"]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    with subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert "portions; processes: 2" in process.stdout.readline()
        assert " portions: " in process.stdout.readline()
        os.killpg(process.pid, signal.SIGINT)
        told = process.stdout.read()
    assert process.returncode == 130
    assert "Traceback" not in told
    assert "crashes" in told


def test_what_only_faults_bring_about_is_told_by_its_own_name(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed("completes-and-is-cleaned")  # as a healthy operator lives it
    BUGS["pods_are_cleaned_up_before_the_status_is_written"].seed(monkeypatch)
    code, told = run(Batch("crashes", "completes-and-is-cleaned"))
    assert code == 1
    assert "undisturbed" not in told
    assert "broken: crashes completes-and-is-cleaned before 1: nothing_of_a_try" in told


def test_of_failures_that_are_alike_the_first_is_told_before_the_others() -> None:
    failures = [Verdict(name, broken=broken) for name, broken in ("ax", "bx", "cy", "dx", "ey")]
    totals = {
        "crashes": Result(5, failures=(*failures, failures[0])),
        "clocks": Result(1, failures=(failures[1],)),
    }
    assert "".join(one.case for one in command.failures_of(totals)) == "acbde"
