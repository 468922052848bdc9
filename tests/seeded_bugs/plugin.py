"""Runs tests with bugs in the operator: each test once as it is, and once for each bug that it must catch.

    PYTHONPATH=tests:. python -m pytest -p seeded_bugs.plugin --seeded-bug NAME TEST

Without --seeded-bug all bugs are put in that name the test. What came of it is written to --verdicts.
"""

import difflib
from collections.abc import Generator
from pathlib import Path

import msgspec
import pytest
import world

from seeded_bugs import BUGS, Level

HEALTHY = "healthy"
# On a real server a bug shows by something that does not come; it need not be waited for so long.
PATIENCE_SECONDS = 15.0
WHERE_ALL_ARE = "docs/en/reliability.md"
IN_WHOLE_LIVES = "PYTHONPATH=tests:. .venv/bin/python -m pytest tests/simulation/test_seeded_bugs.py"


class Verdict(msgspec.Struct, frozen=True):
    """How one test has ended with one bug. Of one with parameters there are several."""

    bug: str
    test: str
    error: str
    """What was raised; empty: it passed."""
    text: str = ""


_verdicts: list[Verdict] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seeded-bug", action="append", help="only this one; may be given several times")
    parser.addoption("--verdicts", type=Path, help="a file for what came of it, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    for name in _asked(config):
        if name not in BUGS:
            raise pytest.UsageError(_unknown(name))


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, BUGS)
    meant = f"Did you mean {' or '.join(near)}? " if near else ""
    return f"no seeded bug is called {name}. {meant}All are listed in {WHERE_ALL_ARE}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """It may be right to see what a new test makes of such a bug, so this is no error."""
    for name in _asked(config):
        if BUGS[name].level is Level.SIMULATION:
            told = f"only whole lives are sure to show {name}: a test that passes with it tells nothing"
            terminalreporter.write_line(f"{told}. Try it: {IN_WHOLE_LIVES} -k {name} -s")


def _asked(config: pytest.Config) -> list[str]:
    return config.getoption("--seeded-bug") or []


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    test = _test_of(metafunc.definition.nodeid)
    bugs = _asked(metafunc.config) or [bug.name for bug in BUGS.values() if test in bug.caught_by]
    metafunc.parametrize("seeded_bug", [HEALTHY, *bugs], indirect=True)


@pytest.fixture(autouse=True)
def seeded_bug(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param != HEALTHY:
        monkeypatch.setattr(world, "PATIENCE_SECONDS", PATIENCE_SECONDS)
        BUGS[request.param].seed(monkeypatch)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Function, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    bug, test, error = str(item.callspec.params["seeded_bug"]), _test_of(item.nodeid), call.excinfo
    if call.when == "setup" and error is not None:
        _verdicts.append(Verdict(bug, test, "no test was made", str(error.value)))
    elif call.when == "call":
        # What is left behind by a test that has failed does not matter.
        kind, text = ("", "") if error is None else (error.typename, str(error.value))
        _verdicts.append(Verdict(bug, test, kind, text))
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    if (file := session.config.getoption("--verdicts")) is not None:
        file.write_bytes(msgspec.json.encode(_verdicts))


def _test_of(node_id: str) -> str:
    return node_id.partition("[")[0]
