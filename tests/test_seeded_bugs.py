"""Do our tests see? Each bug is put into the operator, and the tests that are to catch it must fail.

They run in a process of their own, once as they are and once for each bug (seeded_bugs/plugin.py). What only
whole lives show is in tests/simulation/test_seeded_bugs.py.
"""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from seeded_bugs import BUGS, CLASSES, Bug, Level
from seeded_bugs.plugin import HEALTHY, Verdict

ROOT = Path(__file__).resolve().parents[1]
# What a test says that finds something wrong. Anything else might be the fault of the bug's own code.
COMPLAINTS = {"AssertionError", "Failed"}
NOT_AS_MANY = "values to unpack"  # `(one,) = ...` is a way to assert
LONGEST_RUN_SECONDS = 600


def bugs_of(level: Level) -> list[Bug]:
    return [bug for bug in BUGS.values() if bug.level is level]


def run_with_bugs(bugs: list[Bug], verdicts: Path) -> list[Verdict]:
    tests = sorted({test for bug in bugs for test in bug.caught_by})
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "seeded_bugs.plugin"]
    path = os.pathsep.join([str(ROOT / "tests"), str(ROOT)])
    ended = subprocess.run(
        [*command, f"--verdicts={verdicts}", *tests],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=LONGEST_RUN_SECONDS,
        check=False,
    )
    # Some fail, as they should; what pytest cannot do at all has another code.
    assert ended.returncode in {0, 1}, ended.stdout + ended.stderr
    return msgspec.json.decode(verdicts.read_bytes(), type=list[Verdict])


def complaints_about(bug: Bug, verdicts: list[Verdict]) -> list[str]:
    """Of a bug: which of its tests did not see it, or stumbled over something else."""
    told = {
        test: [one for one in verdicts if (one.bug, one.test) == (bug.name, test)] for test in bug.caught_by
    }
    seen = {test: [one for one in told[test] if one.error] for test in told}
    for test, found in seen.items():
        print(f"{bug.name}: {test}: {found[0].text.splitlines()[:1] if found else 'not seen'}")
    return [
        f"{bug.name}: {test} ends with {[one.error for one in told[test]]}"
        for test, found in seen.items()
        if not found or not all(is_a_complaint(one, bug) for one in found)
    ]


def is_a_complaint(verdict: Verdict, bug: Bug) -> bool:
    return verdict.error in {*COMPLAINTS, bug.error} or NOT_AS_MANY in verdict.text


def check(bugs: list[Bug], verdicts: list[Verdict]) -> None:
    healthy = {one.test: one for one in verdicts if one.bug == HEALTHY}
    assert healthy.keys() == {test for bug in bugs for test in bug.caught_by}
    assert not [one for one in verdicts if one.bug == HEALTHY and one.error]
    assert not [complaint for bug in bugs for complaint in complaints_about(bug, verdicts)]


def test_tables_catch_the_bugs_that_they_are_to_catch(tmp_path: Path) -> None:
    bugs = bugs_of(Level.TABLE)
    check(bugs, run_with_bugs(bugs, tmp_path / "verdicts.json"))


@pytest.mark.apiserver
def test_a_real_server_shows_the_bugs_that_nothing_else_can(tmp_path: Path) -> None:
    bugs = bugs_of(Level.SERVER)
    check(bugs, run_with_bugs(bugs, tmp_path / "verdicts.json"))


def test_every_class_of_bugs_has_a_bug_or_a_reason_why_not() -> None:
    caught = {number for bug in BUGS.values() for number in bug.classes}
    absent = {number for number, one in CLASSES.items() if one.absent}
    assert caught | absent == CLASSES.keys()
    assert not caught & absent
