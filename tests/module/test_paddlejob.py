"""The module for training scripts, as a script uses it: in a process of its own, with a file to write to."""

import ast
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from paddle_operator.api.report import MOST_BYTES, read_report

MODULE = Path(__file__).parents[2] / "module"
UV = Path(sys.executable).with_name("uv")


def play(script: str, *, check: bool = True, **variables: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import paddlejob, sys, os\n{script}"],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(MODULE), **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert not check or done.returncode == 0, done
    return done


def said(path: Path) -> list[dict[str, Any]]:
    text = path.read_text()
    # What the module writes, the operator reads.
    assert read_report(text) is not None
    processes: list[dict[str, Any]] = json.loads(text)["processes"]
    return processes


@pytest.fixture
def message(tmp_path: Path) -> Path:
    return tmp_path / "message"


def test_a_script_says_who_it_is_how_far_it_has_come_and_what_is_saved(message: Path) -> None:
    script = """
paddlejob.begin(rank=1, world=2)
for number in range(3):
    paddlejob.step(number, samples=64)
paddlejob.checkpoint(1)
"""
    play(script, TERMINATION_MESSAGE_PATH=str(message))
    (process,) = said(message)
    assert process.pop("samplesPerSecond") > 0
    assert process == {"rank": 1, "world": 2, "step": 2, "checkpointStep": 1}


def test_without_paddle_the_variables_tell_who_it_is(message: Path) -> None:
    variables = {"PADDLE_TRAINER_ID": "3", "PADDLE_TRAINERS_NUM": "4", "NNODES": "4"}
    play("paddlejob.begin()", check=True, TERMINATION_MESSAGE_PATH=str(message), **variables)
    assert said(message) == [{"rank": 3, "world": 4}]


def test_who_trains_alone_is_told_at_once_and_says_so(message: Path) -> None:
    done = play("paddlejob.begin(0, 1)", check=False, TERMINATION_MESSAGE_PATH=str(message), NNODES="2")
    assert done.returncode == 1
    assert "in a world of 1, but the job has 2 pods" in done.stderr
    assert said(message) == [{"rank": 0, "world": 1, "error": "TrainsAlone"}]


def test_who_is_alone_on_purpose_may_be(message: Path) -> None:
    play("paddlejob.begin(0, 1, alone=True)", TERMINATION_MESSAGE_PATH=str(message), NNODES="2")
    assert said(message) == [{"rank": 0, "world": 1}]


def test_of_an_error_only_its_class_is_said(message: Path) -> None:
    script = "paddlejob.begin(0, 1)\npaddlejob.step(7)\nraise ValueError('the password is 1234')"
    done = play(script, check=False, TERMINATION_MESSAGE_PATH=str(message))
    assert "1234" in done.stderr
    assert said(message) == [{"rank": 0, "world": 1, "step": 7, "error": "ValueError"}]


def test_an_error_that_says_that_a_peer_is_gone_is_told_as_such(message: Path) -> None:
    script = "paddlejob.begin(0, 2)\nraise RuntimeError('[/gloo/transport/tcp/pair.cc:584] TIMEOUT')"
    play(script, check=False, TERMINATION_MESSAGE_PATH=str(message))
    assert said(message) == [{"rank": 0, "world": 2, "error": "RuntimeError", "lostPeer": True}]


def test_a_process_that_is_killed_leaves_what_it_said_last(message: Path) -> None:
    script = "paddlejob.begin(0, 1)\npaddlejob.checkpoint(5)\nos.kill(os.getpid(), 9)"
    play(script, check=False, TERMINATION_MESSAGE_PATH=str(message))
    assert said(message) == [{"rank": 0, "world": 1, "checkpointStep": 5}]


def test_processes_of_a_container_share_the_file(message: Path) -> None:
    script = """
import multiprocessing
def train(rank):
    paddlejob.begin(rank, 8)
    for number in range(50):
        paddlejob.checkpoint(number)
with multiprocessing.get_context("fork").Pool(8) as pool:
    pool.map(train, range(8), chunksize=1)
"""
    play(script, TERMINATION_MESSAGE_PATH=str(message))
    assert said(message) == [{"rank": rank, "world": 8, "checkpointStep": 49} for rank in range(8)]


def test_a_message_has_at_most_4096_bytes_and_the_lowest_ranks_are_in_it(message: Path) -> None:
    script = """
for rank in range(200):
    paddlejob._process = None
    paddlejob.begin(rank, 200)
    paddlejob.checkpoint(10**9)
"""
    play(script, TERMINATION_MESSAGE_PATH=str(message))
    assert message.stat().st_size <= MOST_BYTES
    ranks = [one["rank"] for one in said(message)]
    assert ranks[:50] == [*range(50)]


def test_what_was_said_in_another_world_is_forgotten(message: Path) -> None:
    """An elastic launcher starts its trainers anew in the same container."""
    play("paddlejob.begin(1, 2)", TERMINATION_MESSAGE_PATH=str(message))
    play("paddlejob.begin(0, 3)", TERMINATION_MESSAGE_PATH=str(message))
    assert said(message) == [{"rank": 0, "world": 3}]


@pytest.mark.parametrize("found", ["", "the end of a log", '{"processes": 7}', '{"processes": [7, {}]}'])
def test_what_stands_in_the_file_already_is_no_trouble(found: str, message: Path) -> None:
    message.write_text(found)
    play("paddlejob.begin(0, 1)", TERMINATION_MESSAGE_PATH=str(message))
    assert said(message) == [{"rank": 0, "world": 1}]


def test_without_the_operator_nothing_is_written_and_nothing_breaks(tmp_path: Path) -> None:
    path = tmp_path / "no" / "such" / "folder"
    play("paddlejob.step(1, samples=2); paddlejob.checkpoint(1)", TERMINATION_MESSAGE_PATH=str(path))
    play("paddlejob.step(1)")
    assert [*tmp_path.iterdir()] == []


def test_it_is_a_distribution_of_one_file_that_needs_nothing(tmp_path: Path) -> None:
    copied = tmp_path / "module"
    copied.mkdir()
    for name in ("paddlejob.py", "pyproject.toml", "README.md"):
        (copied / name).write_bytes((MODULE / name).read_bytes())
    built = tmp_path / "dist"
    options = ["--quiet", "--no-build-isolation", "--offline", "--out-dir", str(built)]
    subprocess.run([UV, "build", *options, str(copied)], check=True, timeout=120)
    (wheel,), (source,) = built.glob("*.whl"), built.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
        (about,) = (name for name in archive.namelist() if name.endswith("METADATA"))
        metadata = archive.read(about).decode()
    assert names == ["paddlejob.py"]
    assert "Requires-Dist" not in metadata
    with tarfile.open(source) as archive_of_sources:
        assert any(name.endswith("/paddlejob.py") for name in archive_of_sources.getnames())


def test_it_is_written_for_the_pythons_of_old_images() -> None:
    tree = ast.parse((MODULE / "paddlejob.py").read_text(), feature_version=(3, 7))
    imported = [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
    assert sorted(imported) == ["atexit", "fcntl", "json", "os", "sys", "time"]
