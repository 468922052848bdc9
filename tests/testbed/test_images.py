"""Images are built once, are whole, and bear the names that the YAML uses."""

import hashlib
import json
import signal
import subprocess
import sys
import tarfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed import binaries, image_build, images
from testbed.errors import BuildError
from testbed.image_build import Debian, Recipe
from testbed.images import OPERATOR, PADDLE, TINY, Image
from testbed.node_services import PAUSE_IMAGE

TOP = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One of its own, or the first test to build would be the only one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return images.images_folder()


@pytest.fixture
def image(tmp_path: Path) -> Image:
    for name, text in (("Dockerfile", "FROM scratch"), ("a", "one"), ("b", "two")):
        (tmp_path / name).write_text(text)
    files = {name: tmp_path / name for name in ("a", "b")}
    return Image(("example/one:1",), Recipe(tmp_path / "Dockerfile", files, first_build="never"))


class TestKey:
    @pytest.mark.parametrize("name", ["Dockerfile", "a"])
    def test_changes_with_the_content(self, image: Image, tmp_path: Path, name: str) -> None:
        before = image.archive
        assert image.archive == before
        (tmp_path / name).write_text("changed")
        assert image.archive != before

    def test_changes_with_names_places_and_arguments(self, image: Image) -> None:
        swapped = dict(zip(image.recipe.files, reversed(list(image.recipe.files.values())), strict=True))
        others = [
            replace(image, names=("example/one:2",)),
            replace(image, recipe=replace(image.recipe, files=swapped)),
            replace(image, recipe=replace(image.recipe, arguments={"BASE": Debian(("python3",))})),
            replace(image, recipe=replace(image.recipe, arguments={"BASE": Debian(("python3", "libgomp1"))})),
            replace(image, recipe=replace(image.recipe, arguments={"BASE": image.recipe})),
            replace(image, recipe=replace(image.recipe, arguments={"BASE": "python3"})),
            replace(image, recipe=replace(image.recipe, arguments={"OTHER": "python3"})),
        ]
        assert len({one.archive for one in (image, *others)}) == 8

    def test_changes_with_a_base_and_with_a_program(self, image: Image, tmp_path: Path) -> None:
        def archives() -> list[Path]:
            return [replace(image, recipe=recipe).archive for recipe in (on_top, with_program)]

        on_top = Recipe(TOP / "images/tiny/Dockerfile", {}, "never", arguments={"BASE": image.recipe})
        module = binaries.Module("tiny", "example.com/upstream", tmp_path)
        program = binaries.Program("tiny", module, ".", "never")
        (tmp_path / "go.mod").write_text("go 1.21\nrequire example.com/upstream v1.2.3\n")
        (tmp_path / "go.sum").write_text("")
        with_program = replace(image.recipe, programs={"tiny": program})
        before = archives()
        (tmp_path / "a").write_text("changed")
        (tmp_path / "go.sum").write_text("changed")
        assert all(one != other for one, other in zip(before, archives(), strict=True))

    def test_changes_with_an_image_on_top(self, image: Image) -> None:
        whole = replace(image, on_top=(replace(image, names=("example/top:1",)),))
        assert whole.archive != image.archive
        renamed = replace(image, on_top=(replace(image, names=("example/top:2",)),))
        assert renamed.archive != whole.archive


def containers(file: Path) -> list[dict[str, Any]]:
    documents = yaml.safe_load_all(file.read_text())
    (job,) = (one for one in documents if one["kind"] == "PaddleJob")
    roles = [job["spec"][role] for role in ("ps", "worker") if role in job["spec"]]
    return [container for role in roles for container in role["template"]["spec"]["containers"]]


OURS = sorted(TOP.glob("examples/*/job*.yaml"))
SEEDS = sorted([*TOP.glob("tests/golden/seeds/*.yaml"), *TOP.glob("deploy/examples/*.yaml")])


@pytest.mark.parametrize("file", OURS, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_the_image_of_an_example_has_its_script(file: Path) -> None:
    scripts = {Path(name).name for name in PADDLE.recipe.files}
    for container in containers(file):
        assert f"docker.io/{container['image']}" in PADDLE.names
        words = [*container["command"], *container.get("args", ())]
        named = [word for word in words if word.endswith((".py", ".sh"))]
        assert named
        assert {*named} <= scripts


@pytest.mark.parametrize("file", SEEDS, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_every_image_of_the_seeds_is_in_the_archive(file: Path) -> None:
    assert {container["image"] for container in containers(file)} <= set(PADDLE.all_names)


def test_a_demo_image_has_the_script_that_its_dockerfile_and_the_seeds_run() -> None:
    for image in PADDLE.on_top:
        (inside,) = image.recipe.files
        folder, script = inside.split("/")
        text = image.recipe.dockerfile.read_text()
        assert f"\nADD {folder} /{folder}\nWORKDIR /{folder}\n" in text
        assert f'"{script}"]' in text


def test_scripts_of_different_examples_do_not_hide_each_other() -> None:
    scripts = [path.name for path in PADDLE.recipe.files.values()]
    assert len(scripts) == len(set(scripts))


def test_the_operator_s_image_is_made_of_the_whole_package_and_bears_its_version() -> None:
    package = {path for path in (TOP / "src").rglob("*") if path.is_file() and path.suffix != ".pyc"}
    assert package <= set(OPERATOR.recipe.files.values())
    version = subprocess.run(
        [sys.executable, "-m", "paddle_operator", "--version"], capture_output=True, text=True, check=True
    )
    assert OPERATOR.all_names == [
        f"registry.baidubce.com/paddle-operator/controller:v{version.stdout.strip()}"
    ]


def test_images_get_all_their_names(tmp_path: Path) -> None:
    ref = "org.opencontainers.image.ref.name"
    written = [{"digest": f"sha256:{title}", "annotations": {ref: title}} for title in ("one", "two")]
    (tmp_path / "index.json").write_text(json.dumps({"manifests": written}))
    image_build.give_names(tmp_path, {"one": ["a/b:1", "c/d:2"], "two": ["e/f:3"]})
    manifests = json.loads((tmp_path / "index.json").read_text())["manifests"]
    assert [(one["digest"], one["annotations"]["io.containerd.image.name"]) for one in manifests] == [
        ("sha256:one", "a/b:1"),
        ("sha256:one", "c/d:2"),
        ("sha256:two", "e/f:3"),
    ]


def test_of_each_image_only_the_archives_last_used_stay(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.mkdir(parents=True)
    for name in ("tiny-1.tar", "paddle-1.tar", "tiny-2.tar"):
        (cache / name).touch()
        time.sleep(0.01)
    monkeypatch.setattr(images, "ARCHIVES_KEPT", 1)
    images._forget_old("tiny")
    assert sorted(path.name for path in cache.iterdir()) == ["paddle-1.tar", "tiny-2.tar"]


def blob(archive: Path, name: str) -> Any:
    with tarfile.open(archive) as tar:
        member = tar.extractfile(name)
        assert member is not None
        return json.load(member)


def blob_of(archive: Path, descriptor: dict[str, Any]) -> Any:
    return blob(archive, f"blobs/{descriptor['digest'].replace(':', '/')}")


@pytest.mark.node
@pytest.mark.usefixtures("means")
class TestBuild:
    def test_the_tiny_image(self, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
        archive = images.ensure(TINY)
        (entry,) = blob(archive, "index.json")["manifests"]
        assert entry["annotations"]["io.containerd.image.name"] == PAUSE_IMAGE
        config = blob_of(archive, blob_of(archive, entry)["config"])["config"]
        assert config["Cmd"] == ["sleep", "2147483647"]
        assert sorted(path.name for path in cache.iterdir()) == ["lock", "store", archive.name]

        before = (archive.stat().st_ino, hashlib.sha256(archive.read_bytes()).digest())
        capsys.readouterr()
        assert images.ensure(TINY) == archive
        assert (archive.stat().st_ino, hashlib.sha256(archive.read_bytes()).digest()) == before
        assert capsys.readouterr().out == "image tiny: cached\n"

    def test_a_build_that_was_killed_does_not_count(self, cache: Path) -> None:
        command = [sys.executable, "-c", "from testbed import images; images.ensure(images.TINY)"]
        with subprocess.Popen(command, cwd=TOP, stdout=subprocess.DEVNULL) as process:
            while not (cache / "build" / "context").exists():
                assert process.poll() is None
                time.sleep(0.001)
            process.kill()
        assert process.returncode == -signal.SIGKILL
        assert not TINY.archive.exists()
        assert images.ensure(TINY).exists()
        assert not (cache / "build").exists()
        assert str(cache) not in Path("/proc/self/mounts").read_text()

    def test_a_failure_says_what_and_where(self, image: Image, tmp_path: Path) -> None:
        (tmp_path / "Dockerfile").write_text("FROM scratch\nCOPY nothing /\n")
        with pytest.raises(BuildError, match=r"buildah .* failed with code \d+(.|\n)*nothing"):
            images.ensure(image)
        assert not image.archive.exists()
