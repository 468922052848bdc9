"""What an image stands for: a command and a folder."""

from pathlib import Path
from typing import Any

import pytest

from paddle_operator.local.images import EXAMPLES, LAUNCHED, REGISTRIES, BadImage, Image, Images, Invocation

MINE = "my/image:v1"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the user's file, and where the shell stands; it has a folder `src`."""
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def container(image: str = MINE, **fields: Any) -> dict[str, Any]:
    return {"name": "paddle", "image": image, **fields}


@pytest.mark.parametrize(
    ("entry", "name", "command", "folder"),
    [
        (f"{MINE}=python train.py@./src", MINE, ("python", "train.py"), "src"),
        (f"{MINE}=python train.py@src", MINE, ("python", "train.py"), "src"),
        (f"{MINE}=python train.py", MINE, ("python", "train.py"), None),
        (f"{MINE}=python train.py@", MINE, ("python", "train.py"), None),
        (f"{MINE}=@src", MINE, (), "src"),
        (f"{MINE}=sh -c 'a b' --x=1@src", MINE, ("sh", "-c", "a b", "--x=1"), "src"),
        (f"{MINE}=mail me@home.org@src", MINE, ("mail", "me@home.org"), "src"),
        ("host:5000/a/b:v1=run", "host:5000/a/b:v1", ("run",), None),
        ("a@sha256:0123=run@src", "a@sha256:0123", ("run",), "src"),
    ],
)
def test_an_entry(home: Path, entry: str, name: str, command: tuple[str, ...], folder: str | None) -> None:
    assert Images.of([entry], home).known[name] == Image(command, home / folder if folder else None)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (MINE, "write NAME=COMMAND@FOLDER, for example --image 'my/image:v1=python train.py@./src'"),
        (f"{MINE}=", "write NAME=COMMAND@FOLDER"),
        ("=run", "write NAME=COMMAND@FOLDER"),
        ("", "write NAME=COMMAND@FOLDER"),
        (f"{MINE}=run@none", "there is no folder 'none'; name one after the @"),
        (f"{MINE}=run 'it@src", "the command cannot be read: No closing quotation"),
    ],
)
def test_a_bad_entry_is_refused_with_what_was_written(home: Path, entry: str, words: str) -> None:
    with pytest.raises(BadImage) as caught:
        Images.of([entry], home)
    assert str(caught.value).startswith(f"--image {entry!r}: {words}")


@pytest.mark.parametrize(
    ("fields", "command", "folder"),
    [
        ({}, ("python", "train.py"), "src"),
        ({"args": ["--fast"]}, ("python", "train.py", "--fast"), "src"),
        ({"command": ["sh"]}, ("sh",), "src"),
        ({"command": ["sh"], "args": ["-c", "x"]}, ("sh", "-c", "x"), "src"),
        ({"command": [], "args": []}, ("python", "train.py"), "src"),
        ({"workingDir": "deep/er"}, ("python", "train.py"), "src/deep/er"),
        ({"workingDir": "/data"}, ("python", "train.py"), "src"),
        ({"image": "other", "command": ["sh"], "workingDir": "/data"}, ("sh",), "/data"),
        # An image that nobody knows runs what the YAML says, beside the YAML.
        ({"image": "other", "command": ["sh"]}, ("sh",), "."),
        ({"image": "other", "command": ["sh"], "workingDir": "deep"}, ("sh",), "deep"),
        ({"image": "other", "args": ["x"]}, (), "."),
        ({"image": "other"}, (), "."),
    ],
)
def test_what_a_container_runs(
    home: Path, fields: dict[str, Any], command: tuple[str, ...], folder: str
) -> None:
    images = Images.of([f"{MINE}=python train.py@src"], home)
    assert images.invocation(container(**fields)) == Invocation(command, home / folder)


def test_the_last_entry_of_a_name_counts_and_may_replace_a_demo(home: Path) -> None:
    demo = f"{REGISTRIES[0]}/demo-resnet:v1"
    images = Images.of([f"{MINE}=one", f"{MINE}=two", f"{demo}=mine"], home)
    assert images.known[MINE].command == ("two",)
    assert images.known[demo] == Image(("mine",), None)


@pytest.mark.parametrize("registry", REGISTRIES)
def test_the_demo_of_the_seeds_runs_as_it_is_written(home: Path, registry: str) -> None:
    demo = container(f"{registry}/demo-resnet:v1")
    images = Images.of([], home)
    assert images.invocation(demo) == Invocation(LAUNCHED, EXAMPLES / "02-collective")


@pytest.mark.parametrize("name", ["demo-resnet", "demo-resnet:v2", f"{MINE}:v1", ""])
def test_other_names_are_unknown(home: Path, name: str) -> None:
    assert Images.of([f"{MINE}=run"], home).invocation(container(name)) == Invocation((), home)
