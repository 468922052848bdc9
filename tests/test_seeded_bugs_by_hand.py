"""What a person is told who puts a seeded bug in by hand (seeded_bugs/plugin.py)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from seeded_bugs import BUGS, Level
from seeded_bugs.plugin import WHERE_ALL_ARE

ROOT = Path(__file__).resolve().parents[1]
SIMULATED, PLAIN = "gate_is_always_open", "gone_is_taken_for_a_cut"


def told_of(bug: str, folder: Path) -> tuple[int, str]:
    """The end of pytest, and what it said."""
    test = folder / "test_nothing.py"
    test.write_text("def test_nothing() -> None: ...\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "seeded_bugs.plugin"]
    ended = subprocess.run(
        [*command, f"--rootdir={folder}", f"--seeded-bug={bug}", str(test)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), str(ROOT)])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return ended.returncode, ended.stdout + ended.stderr


@pytest.mark.parametrize(
    ("name", "near"),
    [("gate_is_alway_open", "Did you mean gate_is_always_open"), ("nonsense", "All are listed in")],
)
def test_a_name_that_is_no_bug_is_told_once(name: str, near: str, tmp_path: Path) -> None:
    code, told = told_of(name, tmp_path)
    assert code == pytest.ExitCode.USAGE_ERROR
    last = told.strip().splitlines()[-1]
    assert last.startswith(f"ERROR: no seeded bug is called {name}. {near}")
    assert last.endswith(f"All are listed in {WHERE_ALL_ARE}")
    assert told.count("seeded bug") == 1


@pytest.mark.parametrize(("bug", "is_advised"), [(SIMULATED, True), (PLAIN, False)])
def test_of_a_bug_for_the_simulator_it_is_told_how_to_try_it(
    bug: str, is_advised: bool, tmp_path: Path
) -> None:
    assert (BUGS[bug].level is Level.SIMULATION) == is_advised
    code, told = told_of(bug, tmp_path)
    assert code == pytest.ExitCode.OK
    assert (f"tests/simulation/test_seeded_bugs.py -k {bug} -s\n" in told) == is_advised
