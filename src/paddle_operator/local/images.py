"""What an image stands for on a machine that runs none: a command, and the folder that it runs in."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from paddle_operator.api.meta import Manifest

# The demo images of the Go operator's documentation, under both registry paths that it uses.
REGISTRIES = ("registry.baidubce.com/paddle-operator", "registry.baidubce.com/kuizhiqing")
LAUNCHED = ("python", "-m", "paddle.distributed.launch", "train_fleet.py")
DEMOS = {
    "demo-resnet:v1": (LAUNCHED, "02-collective"),
    "demo-wide-and-deep:v1": (("python", "train.py"), "04-wide-and-deep"),
}
EXAMPLES = Path(__file__).parents[3] / "examples"


class BadImage(Exception):  # noqa: N818 (reads as what it is)
    """The text of an --image cannot be used."""


@dataclass(frozen=True)
class Image:
    command: tuple[str, ...]
    folder: Path | None
    """None: that of the user's file."""


@dataclass(frozen=True)
class Invocation:
    """What a container runs before $(NAME) is expanded; no command if nobody names one."""

    command: tuple[str, ...]
    folder: Path


@dataclass(frozen=True)
class Images:
    known: Mapping[str, Image]
    home: Path
    """The folder of the user's file, where commands run whose image says nothing."""

    @classmethod
    def of(cls, entries: Iterable[str], home: Path) -> Self:
        demos = {
            f"{registry}/{name}": Image(command, EXAMPLES / folder)
            for registry in REGISTRIES
            for name, (command, folder) in DEMOS.items()
            if (EXAMPLES / folder).is_dir()
        }
        return cls(demos | dict(map(_entry, entries)), home)

    def invocation(self, container: Manifest) -> Invocation:
        """As Kubernetes: a command in the YAML replaces the image's, arguments alone are added to it."""
        image = self.known.get(container["image"], Image((), None))
        command = tuple(container.get("command") or image.command)
        if command:
            command += tuple(container.get("args") or ())
        folder = container.get("workingDir") or "."
        if image.folder is not None and Path(folder).is_absolute():
            # It is a path of the image, and the user has said where the image's files are.
            folder = "."
        return Invocation(command, Path(image.folder or self.home, folder))


def _entry(text: str) -> tuple[str, Image]:
    name, equals, rest = text.partition("=")
    command, _, folder = rest.rpartition("@") if "@" in rest else (rest, "", "")
    if not name or not equals or not rest:
        raise BadImage(
            f"--image {text!r}: write NAME=COMMAND@FOLDER, for example "
            "--image 'my/image:v1=python train.py@./src'"
        )
    place = Path(folder).absolute() if folder else None
    if place is not None and not place.is_dir():
        raise BadImage(f"--image {text!r}: there is no folder {folder!r}; name one after the @")
    try:
        return name, Image(tuple(shlex.split(command)), place)
    except ValueError as error:
        raise BadImage(f"--image {text!r}: the command cannot be read: {error}") from None
