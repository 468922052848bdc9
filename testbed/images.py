"""The images of the real node, from Dockerfiles of this repository and without a registry.

    python -m testbed.images     # builds what is missing and prints where it is

Layout: <cache>/images/tiny-<key>.tar, OCI archives for `ctr images import`. The key is made of all that goes
in. A file of that name is always whole: builds take place in a folder of their own, and rename.
"""

import os
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

from testbed import binaries, box, image_build
from testbed.cache import build_lock, cache_folder
from testbed.image_build import Debian, Recipe
from testbed.node_services import PAUSE_IMAGE

TOP = Path(__file__).resolve().parent.parent
VERSION = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["version"]
OPERATOR_NAME = f"registry.baidubce.com/paddle-operator/controller:v{VERSION}"
PADDLE_NAME = "docker.io/paddle-operator/paddle:3.0.0"
ARCHIVES_KEPT = 3
"""Of each image, those last used: two checkouts do not drive out each other's, and the disk does not fill."""


@dataclass(frozen=True)
class Image:
    names: tuple[str, ...]
    """In full, as containerd completes what a YAML says."""
    recipe: Recipe
    on_top: tuple["Image", ...] = ()
    """Images that begin with this one. All are in one archive, which holds what they share once."""

    @property
    def title(self) -> str:
        return self.recipe.title

    @property
    def archive(self) -> Path:
        """Where it is, or will be. The key changes whenever one of its images might."""
        ingredients = [part for one in self.family for part in (*one.names, one.recipe.key())]
        return images_folder() / f"{self.title}-{image_build.digest_of(*ingredients)}.tar"

    @property
    def family(self) -> tuple["Image", ...]:
        return (self, *self.on_top)

    @property
    def all_names(self) -> list[str]:
        """That an import of the archive brings."""
        return [name for one in self.family for name in one.names]


def _of_this_repository(*patterns: str) -> dict[str, Path]:
    paths = [path for pattern in patterns for path in sorted(TOP.glob(pattern)) if path.is_file()]
    return {str(path.relative_to(TOP)): path for path in paths if "__pycache__" not in path.parts}


DEBIAN = Debian(("libgomp1", "python3", "python3-venv"))


TINY = Image(
    (PAUSE_IMAGE,),
    Recipe(TOP / "images/tiny/Dockerfile", {"busybox": Path("/bin/busybox")}, first_build="a second"),
)
# So that YAML written for the original operator runs as it is: its images, by all names that it has for them.
DEMO_WIDE_AND_DEEP = Image(
    (
        "registry.baidubce.com/paddle-operator/demo-wide-and-deep:v1",
        "registry.baidubce.com/kuizhiqing/demo-wide-and-deep:v1",
    ),
    Recipe(
        TOP / "images/demo-wide-and-deep/Dockerfile",
        {"wide_and_deep/train.py": TOP / "examples/04-wide-and-deep/train.py"},
        first_build="a second",
        arguments={"BASE": PADDLE_NAME},
    ),
)
DEMO_RESNET = Image(
    (
        "registry.baidubce.com/paddle-operator/demo-resnet:v1",
        "registry.baidubce.com/kuizhiqing/demo-resnet:v1",
    ),
    Recipe(
        TOP / "images/demo-resnet/Dockerfile",
        {"resnet/train_fleet.py": TOP / "examples/02-collective/train_fleet.py"},
        first_build="a second",
        arguments={"BASE": PADDLE_NAME},
    ),
)
PADDLE = Image(
    # Of the other name only Paddle is asked: there the script is on a volume.
    (PADDLE_NAME, "registry.baidubce.com/kuizhiqing/paddle-ubuntu:2.0.0-18.04"),
    Recipe(
        TOP / "images/paddle/Dockerfile",
        _of_this_repository(
            "requirements-paddle.lock", "examples/*/*.py", "examples/*/*.sh", "module/paddlejob.py"
        ),
        first_build="2 minutes",
        arguments={"BASE": DEBIAN},
        wheels=("requirements-paddle.lock",),
    ),
    on_top=(DEMO_WIDE_AND_DEEP, DEMO_RESNET),
)
OPERATOR = Image(
    (OPERATOR_NAME,),
    Recipe(
        TOP / "Dockerfile",
        _of_this_repository(
            ".dockerignore", "LICENSE", "README.md", "images/operator/**/*", "pyproject.toml",
            "requirements-build.lock", "requirements.lock", "src/**/*",
        ),
        first_build="2 minutes",
        arguments={
            "BUILDER": DEBIAN,
            "BASE": Recipe(TOP / "images/python/Dockerfile", {}, "a second", arguments={"BASE": DEBIAN}),
        },
        wheels=("requirements-build.lock", "requirements.lock"),
        stage="build",
        own_title="operator",
    ),
)  # fmt: skip
GO_OPERATOR = Image(
    # As its own deploy/v1/operator.yaml has it.
    (f"registry.baidubce.com/paddlecloud/controller:{binaries.GO_OPERATOR.version}",),
    Recipe(
        TOP / "images/go-operator/Dockerfile",
        {},
        first_build="2 minutes",
        programs={"manager": binaries.PROGRAMS["go-paddle-operator"]},
    ),
)
ARCHIVED = (TINY, PADDLE, OPERATOR, GO_OPERATOR)
IMAGES = {image.title: archived for archived in ARCHIVED for image in archived.family}
"""By the title of each, that whose archive has it."""


def images_folder() -> Path:
    return cache_folder() / "images"


def ensure(image: Image) -> Path:
    """The archive; it exists and is whole. Built if it is not in the cache."""
    box.require_means()
    archive = image.archive
    if not archive.exists():
        # One lock for all: they share a store and a base.
        with build_lock(images_folder() / "lock", f"image {image.title}") as lock:
            # Whoever held the lock before may have built it.
            if not archive.exists():
                image_build.build([(one.recipe, one.names) for one in image.family], archive, lock)
                _forget_old(image.title)
                return archive
    os.utime(archive)
    print(f"image {image.title}: cached")
    return archive


def _forget_old(title: str) -> None:
    archives = images_folder().glob(f"{title}-*.tar")
    for old in sorted(archives, key=lambda archive: archive.stat().st_mtime, reverse=True)[ARCHIVES_KEPT:]:
        old.unlink()


def main() -> None:
    for image in ARCHIVED:
        started = time.monotonic()
        archive = ensure(image)
        seconds, megabytes = time.monotonic() - started, archive.stat().st_size / 1e6
        print(f"{archive} ({megabytes:.0f} MB, {seconds:.1f} s): {', '.join(image.all_names)}")


if __name__ == "__main__":
    main()
