"""What documents say to `docker` is understood, and means an image of ours."""

from pathlib import Path

import pytest

from testbed import docker, images
from testbed.docker import full_name, main, on_our_bases
from testbed.images import PADDLE_NAME

OURS = "registry.example.com/ours:1"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("ubuntu", "docker.io/library/ubuntu:latest"),
        ("ubuntu:18.04", "docker.io/library/ubuntu:18.04"),
        ("paddle-operator/paddle:3.0.0", "docker.io/paddle-operator/paddle:3.0.0"),
        ("registry.example.com/a/b:1", "registry.example.com/a/b:1"),
        ("registry:5000/a", "registry:5000/a:latest"),
        ("localhost/a@sha256:0", "localhost/a@sha256:0"),
    ],
)
def test_names_are_completed(name: str, full: str) -> None:
    assert full_name(name) == full


@pytest.mark.parametrize(
    ("written", "built"),
    [
        ("FROM ubuntu:18.04", f"FROM {PADDLE_NAME}"),
        (f"FROM {OURS}", f"FROM {OURS}"),
        ("FROM also-ours", f"FROM {OURS}"),
        (f"from {OURS} as one\nFROM one", f"from {OURS} as one\nFROM one"),
        (f"FROM --platform=linux/amd64 {OURS}", f"FROM --platform=linux/amd64 {OURS}"),
        ("FROM scratch\nRUN echo FROM ubuntu", "FROM scratch\nRUN echo FROM ubuntu"),
        (f"ARG BASE={OURS}\nFROM ${{BASE}} AS b", f"ARG BASE={OURS}\nFROM {OURS} AS b"),
        (f"ARG GIVEN={OURS}\nFROM $GIVEN", f"ARG GIVEN={OURS}\nFROM {PADDLE_NAME}"),
    ],
)
def test_a_base_that_is_not_ours_becomes_one_that_is(written: str, built: str) -> None:
    in_store = {OURS: OURS, "docker.io/library/also-ours:latest": OURS}
    assert on_our_bases(written, {"GIVEN": "debian:12"}, in_store) == f"{built}\n"


def test_what_was_not_built_cannot_be_pushed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["push", "example/train:1"]) == 1
    assert "docker build -t docker.io/example/train:1" in capsys.readouterr().err


def test_a_folder_without_a_dockerfile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", "-t", "example/train:1", str(tmp_path)]) == 1
    assert f"there is no {tmp_path}/Dockerfile" in capsys.readouterr().err


def test_a_dockerfile_of_ours_is_built_as_the_tests_build_it(monkeypatch: pytest.MonkeyPatch) -> None:
    built = []

    def ensure(image: images.Image) -> Path:
        built.append(image)
        image.archive.parent.mkdir(parents=True, exist_ok=True)
        image.archive.touch()
        return image.archive

    imported = []

    class Node:
        def import_image(self, archive: Path) -> None:
            imported.append(archive)

    monkeypatch.setattr(images, "ensure", ensure)
    monkeypatch.setattr(docker, "_node", Node)
    assert main(["build", "-t", images.OPERATOR_NAME, str(images.TOP)]) == 0
    assert main(["build", "-t", "example/mine:1", str(images.TOP)]) == 0
    mine = images.Image(("docker.io/example/mine:1",), images.OPERATOR.recipe)
    assert built == [images.OPERATOR, mine]
    for name in (images.OPERATOR_NAME, "example/mine:1"):
        assert main(["push", name]) == 0
    assert imported == [images.OPERATOR.archive, mine.archive]
