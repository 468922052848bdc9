"""A stand-in for `docker` in documents: builds need no network, and the registry is the node of the testbed.

    python -m testbed.docker build -t example/train:1 [-f FILE] [--build-arg NAME=VALUE] FOLDER
    python -m testbed.docker push example/train:1

A Dockerfile of this repository is built as `testbed.images` builds it. In others, a base that is not ours
is our image with Debian, Python and Paddle.
"""

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from testbed import images
from testbed.box import LINK
from testbed.controlplane import ControlPlane
from testbed.errors import BuildError, ControlPlaneError, RemedyError
from testbed.image_build import Recipe, digest_of
from testbed.images import Image
from testbed.realnode import RealNode

FROM = re.compile(r"^FROM\s+(?:--\S+\s+)*(?P<base>\S+)(?:\s+AS\s+(?P<stage>\S+))?", re.IGNORECASE)
ARGUMENT = re.compile(r"^ARG\s+(?P<name>\w+)(?:=(?P<value>\S+))?", re.IGNORECASE)
VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")


def main(words: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(words)
    try:
        if options.command == "build":
            _build(options)
        else:
            archive = _archive(full_name(options.image))
            _node().import_image(archive)
    except RemedyError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="docker", description="Stands in for docker, in the testbed.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    build = commands.add_parser("build", help="build an image without a network")
    build.add_argument("-t", "--tag", required=True)
    build.add_argument("-f", "--file", type=Path)
    build.add_argument("--build-arg", action="append", default=[], metavar="NAME=VALUE")
    build.add_argument("folder", type=Path)
    push = commands.add_parser("push", help="put an image that was built on the node of the testbed")
    push.add_argument("image")
    return parser


def _build(options: argparse.Namespace) -> None:
    name = full_name(options.tag)
    dockerfile = (options.file or options.folder / "Dockerfile").resolve()
    ours = {image.recipe.dockerfile: image for image in images.ARCHIVED}
    if dockerfile not in ours:
        arguments = dict(word.split("=", 1) for word in options.build_arg)
        image = Image((name,), _recipe(dockerfile, options.folder, arguments))
    elif name in ours[dockerfile].names:
        image = ours[dockerfile]
    else:
        image = Image((name,), ours[dockerfile].recipe)
    archive = images.ensure(image)
    _note(name).parent.mkdir(exist_ok=True)
    _note(name).write_text(str(archive))


def _recipe(dockerfile: Path, folder: Path, arguments: Mapping[str, str]) -> Recipe:
    if not dockerfile.is_file():
        raise BuildError(f"there is no {dockerfile}", remedy="give the folder that has it, or -f FILE")
    in_store = {name: one.names[0] for image in images.ARCHIVED for one in image.family for name in one.names}
    text = on_our_bases(dockerfile.read_text(), arguments, in_store)
    for image in images.ARCHIVED:
        if any(name in text for name in image.all_names):
            images.ensure(image)
    ours = _folder() / "Dockerfile"
    ours.parent.mkdir(parents=True, exist_ok=True)
    ours.write_text(text)
    files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    return Recipe(ours, files, "a minute", arguments=arguments)


def on_our_bases(dockerfile: str, arguments: Mapping[str, str], in_store: Mapping[str, str]) -> str:
    """The same Dockerfile with names of images that are in the store; or of stages, for one may begin so."""
    values: dict[str, str] = {}
    stages = {"scratch"}
    lines = dockerfile.splitlines()
    for number, line in enumerate(lines):
        if argument := ARGUMENT.match(line):
            values[argument["name"]] = arguments.get(argument["name"], argument["value"] or "")
        elif start := FROM.match(line):
            base = VARIABLE.sub(lambda used: values.get(used[1] or used[2], ""), start["base"])
            if base not in stages:
                base = in_store.get(full_name(base), images.PADDLE_NAME)
            lines[number] = line[: start.start("base")] + base + line[start.end("base") :]
            stages.add(start["stage"])
    return "\n".join(lines) + "\n"


def full_name(name: str) -> str:
    """As docker and containerd complete it: the registry and the tag may be left out."""
    first, slash, _ = name.partition("/")
    if not slash:
        name = f"docker.io/library/{name}"
    elif not re.search(r"[.:]|^localhost$", first):
        name = f"docker.io/{name}"
    return name if re.search(r"[:@][^/]+$", name) else f"{name}:latest"


def _folder() -> Path:
    return images.images_folder() / "docker"


def _note(name: str) -> Path:
    """Where it is written which archive has the image."""
    return _folder() / f"{digest_of(name)}.archive"


def _archive(name: str) -> Path:
    note = _note(name)
    archive = Path(note.read_text()) if note.exists() else None
    if archive is None or not archive.exists():
        raise BuildError(f"there is no image {name}", remedy=f"docker build -t {name} FOLDER")
    return archive


def _node() -> RealNode:
    """A machine has one at most; its link tells whose it is."""
    try:
        folder = Path("/sys/class/net", LINK, "ifalias").read_text()
    except FileNotFoundError:
        raise ControlPlaneError("there is no real node", remedy="python -m testbed up --node") from None
    return ControlPlane(Path(folder.strip()).name).node


if __name__ == "__main__":
    sys.exit(main())
