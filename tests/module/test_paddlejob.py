"""The module for training scripts, as a script uses it: in a process of its own, with a file to write to."""

import ast
import fcntl
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
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(MODULE), "OMP_NUM_THREADS": "1", **variables},
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
    for process in processes:
        del process["localRank"]
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
    assert "one of 1 that train together, but the job has 2 pods of 1" in done.stderr
    assert said(message) == [{"rank": 0, "world": 1, "error": "TrainsAlone"}]


def test_who_is_alone_on_purpose_may_be(message: Path) -> None:
    play("paddlejob.begin(0, 1, alone=True)", TERMINATION_MESSAGE_PATH=str(message), NNODES="2")
    assert said(message) == [{"rank": 0, "world": 1, "alone": True}]


def test_two_processes_of_one_pod_are_alone_too(message: Path) -> None:
    variables = {"TERMINATION_MESSAGE_PATH": str(message), "NNODES": "2", "PADDLE_LOCAL_SIZE": "2"}
    done = play("paddlejob.begin(0, 2)", check=False, **variables)
    assert "one of 2 that train together, but the job has 2 pods of 2" in done.stderr


@pytest.mark.paddle
def test_who_has_met_nobody_is_alone_whatever_the_variables_say(message: Path) -> None:
    """Before init_parallel_env Paddle tells the size of the world by the operator's variables."""
    variables = {"NNODES": "2", "PADDLE_TRAINERS_NUM": "2", "PADDLE_TRAINER_ID": "0"}
    variables |= {"TERMINATION_MESSAGE_PATH": str(message)}
    done = play("import paddle\npaddlejob.begin()", check=False, **variables)
    assert "TrainsAlone" in done.stderr
    (process,) = said(message)
    assert process["world"] == 1


# As Paddle looks after fleet.init without PADDLE_TRAINER_ENDPOINTS, which fleet alone counts.
FLEET = """
from types import SimpleNamespace as Fake
distributed = Fake(get_rank=lambda: 0, get_world_size=lambda: 2, is_initialized=lambda: True)
sys.modules["paddle"] = Fake(distributed=distributed)
fleet = Fake(fleet=Fake(_role_maker=object()), worker_num=lambda: 1, worker_index=lambda: 0)
sys.modules["paddle.distributed.fleet"] = fleet
paddlejob.begin()
"""


def test_of_what_fleet_and_paddle_count_the_smaller_is_the_world(message: Path) -> None:
    done = play(FLEET, check=False, TERMINATION_MESSAGE_PATH=str(message), NNODES="2")
    assert "TrainsAlone" in done.stderr


@pytest.mark.parametrize("nodes", ["1:4", "two", ""])
def test_a_number_of_pods_that_is_none_ends_no_training(message: Path, nodes: str) -> None:
    play("paddlejob.begin(0, '2')", TERMINATION_MESSAGE_PATH=str(message), NNODES=nodes)
    assert said(message) == [{"rank": 0, "world": 2}]


def test_a_process_that_was_stopped_does_not_stop_the_others(message: Path) -> None:
    with message.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        play("paddlejob.LOCK_TRIES = 2\npaddlejob.begin(0, 2)", TERMINATION_MESSAGE_PATH=str(message))
    assert message.read_text() == ""


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
    os.environ["PADDLE_LOCAL_RANK"] = str(rank)
    paddlejob.begin(rank, 8)
    for number in range(50):
        paddlejob.checkpoint(number)
with multiprocessing.get_context("fork").Pool(8) as pool:
    pool.map(train, range(8), chunksize=1)
"""
    play(script, TERMINATION_MESSAGE_PATH=str(message))
    assert said(message) == [{"rank": rank, "world": 8, "checkpointStep": 49} for rank in range(8)]


def test_a_message_has_at_most_2048_bytes_and_the_lowest_ranks_are_in_it(message: Path) -> None:
    script = """
for rank in range(200):
    os.environ["PADDLE_LOCAL_RANK"] = str(rank)
    paddlejob.begin(rank, 200)
    paddlejob.checkpoint(10**9)
"""
    play(script, TERMINATION_MESSAGE_PATH=str(message))
    assert message.stat().st_size <= MOST_BYTES / 2, "as a kubelet shares out what there is"
    ranks = [one["rank"] for one in said(message)]
    assert ranks[:20] == [*range(20)]


def test_what_was_said_in_another_world_is_forgotten(message: Path) -> None:
    """An elastic launcher starts its trainers anew in the same container."""
    play("paddlejob.begin(1, 2)", TERMINATION_MESSAGE_PATH=str(message))
    play("paddlejob.begin(0, 3)", TERMINATION_MESSAGE_PATH=str(message))
    assert said(message) == [{"rank": 0, "world": 3}]


def test_another_rank_in_the_same_place_is_of_a_time_before(message: Path) -> None:
    """An elastic launcher may give its trainers other ranks of a world of the same size."""
    play("paddlejob.begin(0, 4)", TERMINATION_MESSAGE_PATH=str(message))
    play("paddlejob.begin(2, 4)", TERMINATION_MESSAGE_PATH=str(message))
    assert said(message) == [{"rank": 2, "world": 4}]


@pytest.mark.parametrize(
    "found", ["", "\udcff", "the end of a log", '{"processes": 7}', '{"processes": [7, {}]}']
)
def test_what_stands_in_the_file_already_is_no_trouble(found: str, message: Path) -> None:
    message.write_bytes(found.encode(errors="surrogateescape"))
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
