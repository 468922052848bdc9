"""The images of the real node, from Dockerfiles of this repository and without a registry.

    python -m testbed.images     # builds what is missing and prints where it is

Layout: <cache>/images/tiny-<key>.tar, OCI archives for `ctr images import`. The key is made of all that goes
in. A file of that name is always whole: builds take place in a folder of their own, and rename.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from testbed import box, image_build
from testbed.cache import build_lock, cache_folder
from testbed.image_build import Debian, Recipe
from testbed.node_services import PAUSE_IMAGE

TOP = Path(__file__).resolve().parent.parent
ARCHIVES_KEPT = 3
"""Of each image, those last used: two checkouts do not drive out each other's, and the disk does not fill."""


@dataclass(frozen=True)
class Image:
    names: tuple[str, ...]
    """In full, as containerd completes what a YAML says."""
    recipe: Recipe

    @property
    def title(self) -> str:
        return self.recipe.dockerfile.parent.name

    @property
    def archive(self) -> Path:
        """Where it is, or will be. The key changes whenever the image might."""
        return images_folder() / f"{self.title}-{image_build.digest_of(*self.names, self.recipe.key())}.tar"


def _of_this_repository(*patterns: str) -> dict[str, Path]:
    paths = [path for pattern in patterns for path in sorted(TOP.glob(pattern))]
    return {str(path.relative_to(TOP)): path for path in paths}


TINY = Image(
    (PAUSE_IMAGE,),
    Recipe(TOP / "images/tiny/Dockerfile", {"busybox": Path("/bin/busybox")}, first_build="a second"),
)
PADDLE = Image(
    (
        "docker.io/paddle-operator/paddle:3.0.0",
        # So that YAML written for the original operator runs as it is.
        "registry.baidubce.com/paddle-operator/demo-resnet:v1",
        "registry.baidubce.com/kuizhiqing/demo-resnet:v1",
    ),
    Recipe(
        TOP / "images/paddle/Dockerfile",
        _of_this_repository("requirements-paddle.lock", "examples/*/*.py"),
        first_build="2 minutes",
        base=Debian(("libgomp1", "python3", "python3-venv")),
        wheels="requirements-paddle.lock",
    ),
)
IMAGES = {image.title: image for image in (TINY, PADDLE)}


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
                image_build.build(image.title, image.recipe, image.names, archive, lock)
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
    for image in IMAGES.values():
        started = time.monotonic()
        archive = ensure(image)
        seconds, megabytes = time.monotonic() - started, archive.stat().st_size / 1e6
        print(f"{archive} ({megabytes:.0f} MB, {seconds:.1f} s): {', '.join(image.names)}")


if __name__ == "__main__":
    main()
