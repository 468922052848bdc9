"""`python -m simulator`: one case again by its name, a verdict that a shell understands, names it refuses."""

import pytest
from seeded_bugs import BUGS
from simulator import __main__ as command
from simulator.batches import NAMES, Batch, Result, batches
from simulator.oracle import undisturbed
from simulator.sweeps import GROUPS

LIFE = "completes-and-is-cleaned"
CASE = f"crashes {LIFE} before 3"


def test_a_case_is_lived_again_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--seed", CASE]) == 0
    assert f"{CASE}: nothing is broken" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["3", "random 3"])
def test_a_number_is_a_random_life(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--seed", name]) == 0
    assert "random 3: nothing is broken" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "known"),
    [("nonsense", NAMES), ("crashes nobody", GROUPS["crashes"].lives), (f"crashes {LIFE} late", [CASE])],
)
def test_an_unknown_name_is_refused_with_those_that_there_are(
    name: str, known: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["--seed", name]) == 2
    told = capsys.readouterr().err
    assert [one for one in known if one not in told] == []


def test_a_seeded_bug_is_told_and_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    undisturbed(LIFE)  # as a healthy operator lives it
    BUGS["pods_are_cleaned_up_before_the_status_is_written"].seed(monkeypatch)
    monkeypatch.setattr(command, "batches", lambda *_: [Batch("crashes", LIFE)])
    assert command.main(["--processes", "1"]) == 1
    told = capsys.readouterr().out
    assert "broken: nothing_of_a_try_is_deleted_before_the_next_is_written" in told
    assert f'again: make simulate SEED="crashes {LIFE}' in told


def test_and_by_its_name_that_case_is_told_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    undisturbed(LIFE)
    BUGS["pods_are_cleaned_up_before_the_status_is_written"].seed(monkeypatch)
    assert command.main(["--seed", CASE]) == 1
    assert "manager 1 asks: delete pods resnet-worker-0" in capsys.readouterr().out


def test_a_run_that_has_lived_too_little_says_so_and_one_that_was_slow_only_says_it() -> None:
    enough = {"crashes": 600, "late-watches": 1000, "stale-lists": 500, "random": 100_000}
    slow = {name: Result(lives, seconds=lives, disturbed=lives) for name, lives in enough.items()}
    told, are_enough = command.bars(slow)
    assert [line.partition(":")[0] for line in told] == [*["reached"] * 4, "MISSED"]
    assert are_enough
    told, are_enough = command.bars({**slow, "random": Result(100_000, disturbed=79_000)})
    assert "MISSED: 79 % of random lives in which a fault struck, of 80 that are asked" in told
    assert not are_enough
    told, are_enough = command.bars({**slow, "late-watches": Result(999)})
    assert "MISSED: 1,499 stale reads, of 1,500 that are asked" in told
    assert not are_enough


def test_one_group_can_be_asked_for() -> None:
    assert {batch.group for batch in batches("clocks", schedules=1000)} == {"clocks"}
    assert len(batches("random", schedules=1000)) == 10
    assert {batch.group for batch in batches("", schedules=1)} == {*NAMES}


def test_an_error_in_a_life_is_a_failure_of_that_case_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def break_down(*_: object) -> None:
        raise RuntimeError("a fault of the simulator itself")

    undisturbed(LIFE)
    monkeypatch.setattr("simulator.connection.Connection._crash_if_due", break_down)
    monkeypatch.setattr(command, "batches", lambda *_: [Batch("crashes", LIFE)])
    assert command.main(["--processes", "1"]) == 1
    assert f"crashes {LIFE}" in capsys.readouterr().out
