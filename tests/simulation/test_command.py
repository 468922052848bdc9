"""`python -m simulator`: one case again by its name, a verdict that a shell understands, names it refuses."""

import pytest
from seeded_bugs import BUGS
from simulator import __main__ as command
from simulator.batches import Batch, Result, batches
from simulator.names import NAMES
from simulator.once_broken import ONCE_BROKEN
from simulator.oracle import undisturbed

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
    ("name", "case"),
    [
        (" crashes  completes  before  3", "crashes completes before 3"),
        ("random  3 ", "random 3"),
        ("exhaustive orders: 0, 1,0", "exhaustive orders: 0,1,0"),
        ("undisturbed restarts", "undisturbed restarts"),
        ("undisturbed 12", "undisturbed 12"),
    ],
)
def test_blanks_do_not_matter_in_a_name(name: str, case: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--seed", name]) == 0
    assert capsys.readouterr().out.startswith(f"{case}: nothing is broken")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nonsense", f"no group 'nonsense', but {', '.join(NAMES)}"),
        ("-1", "no group '-1'"),
        ("crashes complets", "no life 'complets', but 147 others, such as: completes; "),
        ("crashes completes befor 3", "but 42 others, such as: crashes completes before 3; "),
        ("undisturbed restart", "such as: restarts; "),
        ("undisturbed 2000", "no life '2000'"),
        ("random", "random needs a number, as in: random 17"),
        ("random abc", "random needs a number, as in: random 17"),
        ("random -1", "random needs a number, as in: random 17"),
        ("exhaustive", "no search '', but: orders; "),
        ("exhaustive orders", "needs choices, as in: exhaustive orders: 0"),
        ("exhaustive orders: ", "needs choices, as in: exhaustive orders: 0"),
        ("exhaustive orders: 1,x", "'x' is none"),
        ("exhaustive orders: 1,,1", "'' is none"),
        ("exhaustive orders: -1", "'-1' is none"),
        ("exhaustive orders: 99,99", "choice 1 is 99, but there only 0 to 1 can be chosen"),
        ("exhaustive orders and a crash: 0,0,2", "choice 3 is 2, but there only 0 to 1 can be chosen"),
        (f"exhaustive orders: {'0,' * 100}1", "101 choices, but only 44 can be made"),
    ],
)
def test_a_name_of_nothing_is_refused_with_what_there_is(
    name: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([f"--seed={name}"]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
    assert len(told) < 400


@pytest.mark.parametrize("option", ["--schedules", "--processes"])
@pytest.mark.parametrize("number", ["0", "-5", "many"])
def test_a_run_of_nothing_is_refused(option: str, number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        command.main([f"{option}={number}"])
    assert refused.value.code == 2
    assert f"{option}: {number} is no number from 1 on" in capsys.readouterr().err


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
    assert {batch.group for batch in batches("clocks", schedules=1000, base=0)} == {"clocks"}
    assert {batch.group for batch in batches("", schedules=1, base=0)} == {*NAMES}


def test_random_lives_are_those_that_were_broken_once_and_others_from_a_base_on() -> None:
    once, *drawn = batches("random", schedules=1000, base=12_345)
    assert [batch.part for batch in drawn] == [*range(12_345, 13_345, 100)]
    assert [verdict.case for verdict in once.verdicts()] == [f"random {number}" for number in ONCE_BROKEN]


def test_each_run_begins_at_a_number_of_its_own_unless_it_is_told_where() -> None:
    assert command.parsed(["--base", "17"]).base == 17
    assert command.parsed([]).base != command.parsed([]).base


def test_the_base_is_told_at_the_beginning_and_in_the_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("simulator.batches.SEEDS_AT_ONCE", 2)
    arguments = ["--only", "random", "--schedules", "2", "--base", "31337", "--processes", "1"]
    assert command.main(arguments) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert "random lives from BASE=31337 on" in first
    assert any("random from 31337 on" in line for line in rest)


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
