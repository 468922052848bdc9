"""Which run may be gone on with: one of the same program."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks import suite
from benchmarks.results import Results
from benchmarks.suite import about_the_run, commit, done_before

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


class Checkout:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.git("init", "--quiet")

    def git(self, *words: str) -> str:
        who = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.com"]
        command = ["git", *who, "-c", "commit.gpgsign=false", *words]
        return subprocess.run(
            command, cwd=self._folder, check=True, capture_output=True, text=True
        ).stdout.strip()

    def change(self, name: str) -> None:
        file = self._folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(file.read_text() + "more\n" if file.exists() else "first\n")

    def commit(self, name: str) -> str:
        self.change(name)
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", name)
        return self.git("rev-parse", "--short=12", "HEAD")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    monkeypatch.setattr(suite, "TOP", tmp_path)
    return Checkout(tmp_path)


def test_the_commit_is_the_last_that_changed_the_program(checkout: Checkout) -> None:
    checkout.commit("src/first.py")
    last = checkout.commit("benchmarks/suite.py")
    checkout.commit("benchmarks/results/suite.jsonl")
    checkout.commit("docs/en/performance.md")
    assert commit() == last
    assert checkout.commit("src/first.py") == commit() != last


@pytest.mark.parametrize(
    ("name", "mark"),
    [
        ("src/first.py", " dirty"),
        ("src/new.py", " dirty"),
        ("benchmarks/results/suite.jsonl", ""),
        ("docs/performance.svg", ""),
    ],
)
def test_what_is_not_committed_makes_it_dirty(checkout: Checkout, name: str, mark: str) -> None:
    last = checkout.commit("src/first.py")
    checkout.change(name)
    assert commit() == last + mark


def test_without_a_commit_it_is_unknown(checkout: Checkout) -> None:
    assert commit() == "unknown"


def begun(out: Path) -> dict[str, Any]:
    line = {"about": about_the_run(["1x8"])}
    out.write_text(json.dumps(line) + "\n")
    return line


def test_a_run_is_gone_on_with_after_its_results_were_committed(checkout: Checkout, tmp_path: Path) -> None:
    checkout.commit("src/first.py")
    out = tmp_path / "benchmarks" / "results" / "suite.jsonl"
    out.parent.mkdir(parents=True)
    line = begun(out)
    checkout.git("add", ".")
    checkout.git("commit", "--quiet", "--message", "results")
    assert Results(done_before(out)).abouts == [line["about"]]


def test_a_run_of_another_program_is_not(checkout: Checkout, tmp_path: Path) -> None:
    first = checkout.commit("src/first.py")
    out = tmp_path / "suite.jsonl"
    begun(out)
    checkout.commit("src/second.py")
    with pytest.raises(SystemExit, match=f"is of commit {first}, this is {commit()}: check that one out"):
        done_before(out)


def test_where_there_is_no_file_the_run_begins(tmp_path: Path) -> None:
    assert done_before(tmp_path / "none") == []
