"""What is read from a results file, what is forgiven, and what is said of a file that is none."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import chart, pages, report
from benchmarks.pages import NOTHING
from benchmarks.results import Results
from benchmarks.results_file import read
from benchmarks.suite import opened_after, write

KEY = {"workload": "1x8", "mode": "PodIP", "operator": "ours", "repeat": 0, "wall_seconds": 6.0}
CPU = {"operator": 1.0, "kube-apiserver": 2.0, "node": 0.5, "others": 0.0}
RUN: dict[str, Any] = {
    **KEY,
    "times": {},
    "cpu": CPU,
    "seconds": 5.0,
    "requests": 40,
    "peak_resident_mib": 50.0,
}
FAILED = {**KEY, "repeat": 1, "error": "it broke"}
ABOUT: dict[str, Any] = {
    "commit": "abc",
    "versions": {},
    "processor": "quick",
    "cores": None,
    "memory_gib": 24,
    "began": "now",
    "workloads": ["1x8"],
}
WHOLE: list[dict[str, Any]] = [
    {"about": ABOUT},
    {"missing": "go", "why": "no network"},
    RUN,
    FAILED,
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "suite.jsonl"


def lines_of(*lines: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def without(line: dict[str, Any], word: str) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key != word}


def test_a_whole_file_is_read(file: Path) -> None:
    file.write_bytes(lines_of(*WHOLE))
    assert [json.loads(line) for line in read(file)] == WHOLE


@pytest.mark.parametrize(
    ("line", "why"),
    [
        pytest.param(b"\x00\xff\x7fELF", "JSON is malformed: invalid character", id="binary"),
        pytest.param(b'{"error": "\xff"}', "codec can't decode", id="not UTF-8"),
        pytest.param(b"all went well", "JSON is malformed", id="prose"),
        pytest.param(b"{", "Input data was truncated", id="cut off, but not the last line"),
        pytest.param(b"", "Input data was truncated", id="empty"),
        pytest.param(b"[1]", "Expected `object`, got `array`", id="a list"),
        pytest.param(b"{}", "missing required field", id="an empty object"),
        pytest.param(lines_of({"about": 3})[:-1], "Expected `object`, got `int`", id="about nothing"),
        *(
            pytest.param(lines_of(without(RUN, word))[:-1], f"required field `{word}`", id=f"no {word}")
            for word in RUN
        ),
        pytest.param(lines_of({**RUN, "cpu": {}})[:-1], "required field", id="no process"),
        pytest.param(lines_of(without(FAILED, "mode"))[:-1], "required field `mode`", id="who failed?"),
    ],
)
def test_what_is_no_measurement_is_told_in_one_line(file: Path, line: bytes, why: str) -> None:
    file.write_bytes(lines_of(RUN) + line + b"\n" + lines_of(RUN))
    with pytest.raises(SystemExit) as ended:
        read(file)
    told = str(ended.value)
    assert told.startswith(f"{file}:2 is no measurement: ")
    assert why in told
    assert told.endswith("; make one with make bench")
    assert "\n" not in told


@pytest.mark.parametrize(("name", "why"), [("none", "No such file or directory"), (".", "Is a directory")])
def test_what_cannot_be_read_is_told_in_one_line(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(SystemExit) as ended:
        read(tmp_path / name)
    assert str(ended.value) == f"{tmp_path / name} cannot be read: {why}; make one with make bench"


@pytest.mark.parametrize("length", range(1, len(lines_of(FAILED)) - 1))
def test_a_last_line_that_was_cut_off_is_no_line(file: Path, length: int) -> None:
    file.write_bytes(lines_of(RUN) + lines_of(FAILED)[:length])
    assert read(file) == [lines_of(RUN)[:-1]]


def test_of_a_last_line_only_its_end_may_be_lost(file: Path) -> None:
    file.write_bytes(lines_of(RUN, FAILED)[:-1])
    assert len(read(file)) == 2


@pytest.mark.parametrize("rest", [b"the end", b"[1", b"{}", b"\x00"])
def test_a_last_line_that_never_was_one_of_ours_is_not_forgiven(file: Path, rest: bytes) -> None:
    file.write_bytes(lines_of(RUN) + rest)
    with pytest.raises(SystemExit, match=":2 is no measurement"):
        read(file)


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(lines_of(RUN), id="whole"),
        pytest.param(lines_of(RUN)[:-1], id="without its end"),
        pytest.param(lines_of(RUN, FAILED)[:-9], id="with a line that was cut off"),
    ],
)
def test_a_run_is_gone_on_with_on_a_line_of_its_own(file: Path, before: bytes) -> None:
    file.write_bytes(before)
    with opened_after(read(file), file) as out:
        assert file.read_bytes() == lines_of(RUN), "also when it is killed before it writes"
        write(out, FAILED)
    assert file.read_bytes() == lines_of(RUN, FAILED)


@pytest.mark.parametrize("before", [None, b"", lines_of(RUN), b'{"cut'])
def test_a_new_run_begins_with_an_empty_file(file: Path, before: bytes | None) -> None:
    if before is not None:
        file.write_bytes(before)
    with opened_after([], file) as out:
        write(out, FAILED)
    assert file.read_bytes() == lines_of(FAILED)


def test_a_file_that_cannot_be_written_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        opened_after([], tmp_path / "none" / "suite.jsonl")
    assert str(ended.value) == f"{tmp_path}/none/suite.jsonl cannot be written: No such file or directory"


@pytest.mark.parametrize("main", [report.main, chart.main, pages.main])
def test_every_command_says_it(main: Callable[[], None], file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text("prose\n")
    monkeypatch.setattr(sys, "argv", ["command", str(file)])
    with pytest.raises(SystemExit, match=":1 is no measurement"):
        main()


@pytest.mark.parametrize("text", [b"", b'{"about": {"com'])
def test_a_report_on_nothing_is_refused(file: Path, text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_bytes(text)
    monkeypatch.setattr(sys, "argv", ["report", str(file)])
    with pytest.raises(SystemExit) as ended:
        report.main()
    assert ended.value.code == f"nothing is measured in {file}", "text makes it 1"


def test_pages_can_be_made_before_anything_is_measured(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.touch()
    for language in ("en", "zh_CN"):
        (tmp_path / language).mkdir()
    monkeypatch.setattr(pages, "DOCS", tmp_path)
    monkeypatch.setattr(pages, "PICTURE", tmp_path / "picture.svg")
    monkeypatch.setattr(sys, "argv", ["pages", str(file)])
    pages.main()
    assert NOTHING in (tmp_path / "en" / "performance.md").read_text()
    assert (tmp_path / "picture.svg").exists()


def test_an_operator_that_is_no_more_is_called_what_the_file_calls_it() -> None:
    lines = lines_of({**FAILED, "operator": "old"}, {"missing": "older", "why": "gone"}).splitlines()
    told = report.failures(Results(lines))
    assert "| 1x8 | PodIP | old | 1 | it broke |" in told
    assert "|  |  | older |  | gone |" in told
