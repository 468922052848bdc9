"""The folder of a run: gone when it ends, whichever way it ends."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from paddle_operator.run.workspace import PREFIX, volumes_folder, workspace


@pytest.fixture(autouse=True)
def temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The machine's folder for temporary files."""
    folder = tmp_path / "temp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def left_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_it_is_ready_and_nobody_elses(temp: Path) -> None:
    with workspace(None) as place:
        assert place.root.parent == temp
        assert place.root.stat().st_mode & 0o077 == 0
        assert place.logs.is_dir()
        assert place.scratch.is_dir()
        assert {place.logs.parent, place.objects.parent, place.operator_log.parent} == {place.root}


def test_it_is_gone_at_the_end(temp: Path) -> None:
    with workspace(None) as place:
        place.pods.mkdir()
        (place.pods / "file").write_text("x")
    assert left_in(temp) == []


def test_it_is_gone_after_a_fault(temp: Path) -> None:
    with pytest.raises(ZeroDivisionError), workspace(None):
        raise ZeroDivisionError
    assert left_in(temp) == []


@pytest.mark.parametrize("exists", [False, True])
def test_what_is_kept_is_kept_and_no_more(temp: Path, tmp_path: Path, exists: bool) -> None:
    keep = tmp_path / "deep" / "kept"
    if exists:
        keep.mkdir(parents=True)
    with workspace(keep) as place:
        (place.logs / "log").write_text("x")
        place.objects.write_text("x")
        place.pods.mkdir()
    assert left_in(temp) == []
    assert left_in(keep) == ["logs", "objects.yaml"]


def test_two_at_once_leave_each_other_alone(temp: Path) -> None:
    with workspace(None) as first:
        with workspace(None) as second:
            assert first.root != second.root
            assert first.scratch.is_dir()
        assert first.scratch.is_dir()
        assert not second.root.exists()


# What a kill leaves.


@contextmanager
def other_run(temp: Path) -> Iterator[subprocess.Popen[str]]:
    script = (
        "import time\n"
        "from paddle_operator.run.workspace import workspace\n"
        "with workspace(None) as place:\n"
        "    print(place.root, flush=True)\n"
        "    time.sleep(100)\n"
    )
    environment = os.environ | {"TMPDIR": str(temp)}
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process
        process.kill()


def test_the_next_run_removes_what_a_killed_one_left_but_not_what_lives(temp: Path) -> None:
    with other_run(temp) as killed, other_run(temp) as alive:
        assert killed.stdout is not None
        assert alive.stdout is not None
        gone, stays = Path(killed.stdout.readline().strip()), Path(alive.stdout.readline().strip())
        killed.kill()
        killed.wait()
        assert gone.is_dir()
        with workspace(None):
            assert not gone.exists()
            assert stays.is_dir()


@pytest.mark.parametrize("name", ["something-else", f"not-{PREFIX}x", f"{PREFIX}without-lock"])
def test_other_folders_are_not_touched(temp: Path, name: str) -> None:
    (temp / name).mkdir()
    (temp / name / "file").write_text("x")
    with workspace(None):
        assert (temp / name / "file").exists()


def test_a_link_is_not_followed(temp: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "lock").write_text("")
    (temp / f"{PREFIX}link").symlink_to(tmp_path / "precious")
    with workspace(None):
        assert (tmp_path / "precious" / "lock").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_folders_of_other_users_are_theirs(temp: Path) -> None:
    theirs = temp / f"{PREFIX}theirs"
    theirs.mkdir()
    (theirs / "lock").touch()
    os.chown(theirs, 65534, 65534)
    with workspace(None):
        assert theirs.is_dir()


# Volumes that stay.


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"XDG_DATA_HOME": "/data"}, "/data/paddle-operator/volumes"),
        ({"XDG_DATA_HOME": "", "HOME": "/me"}, "/me/.local/share/paddle-operator/volumes"),
        ({"HOME": "/me"}, "/me/.local/share/paddle-operator/volumes"),
        ({"XDG_DATA_HOME": "~/data", "HOME": "/me"}, "/me/data/paddle-operator/volumes"),
    ],
)
def test_where_claims_are(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], folder: str) -> None:
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert volumes_folder() == Path(folder)
