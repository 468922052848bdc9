"""How an image is built: debootstrap makes Debian, buildah follows a Dockerfile, the archive gets all names.

A build takes place in one folder that the next one clears, and in mount namespaces of its own: when it is
killed no mount is left, and nothing that could be taken for whole. Only buildah's store and Python packages
outlive a build, so that a change of a script does not install everything again.
"""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from testbed import processes
from testbed.binaries import Program, ensure_program, path_of
from testbed.cache import finish
from testbed.errors import BuildError, tail
from testbed.progress import Progress

SUITE = "bookworm"
DEBIAN_DOCKERFILE = Path(__file__).resolve().parent.parent / "images/debian/Dockerfile"
# What debootstrap leaves behind or takes from this machine, what a container gets anew, what nobody reads.
LEFT_OUT = (
    "./dev/*", "./proc/*", "./sys/*", "./run/*", "./tmp/*",
    "./etc/apt/sources.list", "./etc/hostname", "./etc/resolv.conf",
    "./var/cache/*/*", "./var/lib/apt/lists/*", "./var/log/*",
    "./usr/share/doc/*/*", "./usr/share/info/*", "./usr/share/locale/*", "./usr/share/man/*",
)  # fmt: skip


def digest_of(*ingredients: str | bytes) -> str:
    # Digests of the parts: no two different lists of parts run together into the same text.
    parts = (one.encode() if isinstance(one, str) else one for one in ingredients)
    digests = b"".join(hashlib.sha256(part).digest() for part in parts)
    return hashlib.sha256(digests).hexdigest()[:16]


@dataclass(frozen=True)
class Debian:
    """A Debian with these packages and what they depend on."""

    packages: tuple[str, ...]

    @property
    def name(self) -> str:
        """Of the image in the store. Newer packages do not make another: delete the cache folder for that."""
        return (
            f"localhost/debian-{SUITE}:{digest_of(DEBIAN_DOCKERFILE.read_bytes(), *LEFT_OUT, *self.packages)}"
        )


@dataclass(frozen=True)
class Recipe:
    """A Dockerfile, and what it asks for."""

    dockerfile: Path
    files: Mapping[str, Path]
    """Path in the build context -> path on this machine."""
    first_build: str
    """How long a build without any cache takes, for a person who wonders whether to wait."""
    arguments: Mapping[str, "Debian | Recipe | str"] = field(default_factory=dict)
    """Argument of the Dockerfile -> value; an image is built first, and its name is the value."""
    wheels: tuple[str, ...] = ()
    """Those files are locks; the Python packages that they pin are put into the folder wheels."""
    programs: Mapping[str, Program] = field(default_factory=dict)
    """Path in the build context -> what has to be built first, and then is one of the files."""
    stage: str = ""
    """Of the Dockerfile, if it has several: one whose layers stay in the store for the next build."""
    own_title: str = ""

    @property
    def title(self) -> str:
        return self.own_title or self.dockerfile.parent.name

    @property
    def name(self) -> str:
        """Of the image in the store, if only others are built on it."""
        return f"localhost/{self.title}:{self.key()}"

    @property
    def words(self) -> list[str]:
        """The arguments, for a command line."""
        return [
            f"{name}={value if isinstance(value, str) else value.name}"
            for name, value in self.arguments.items()
        ]

    def key(self) -> str:
        contents = [part for name in sorted(self.files) for part in (name, self.files[name].read_bytes())]
        programs = [part for name, program in self.programs.items() for part in (name, str(path_of(program)))]
        recipe = (self.dockerfile.read_bytes(), "\0".join(self.words))
        return digest_of(*recipe, platform.machine(), *contents, *programs)


def build(images: Sequence[tuple[Recipe, Sequence[str]]], archive: Path, lock: int) -> None:
    """Each with its names, all into one archive; a later one may have the first as its base."""
    for recipe, _ in images:
        for program in recipe.programs.values():
            ensure_program(program)
    title, first_build = images[0][0].title, images[0][0].first_build
    folder = archive.with_name("build")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    log = archive.with_name(f"{title}.log")
    log.unlink(missing_ok=True)
    builder = _Builder(folder, archive.with_name("store"), log, lock)
    progress = Progress(f"image {title}", f"building (first time: about {first_build} on 2 cores)")
    layout = folder / "layout"
    try:
        for recipe, names in images:
            builder.build(recipe, names[0], progress)
            builder.push(recipe, names[0], layout, progress)
    except BaseException:
        progress.stop()
        raise
    give_names(layout, {recipe.title: names for recipe, names in images})
    with tarfile.open(folder / archive.name, "w") as tar:
        tar.add(layout, arcname="")
    (folder / archive.name).rename(archive)
    shutil.rmtree(folder)
    log.unlink()
    progress.done("built")


def give_names(layout: Path, names: Mapping[str, Sequence[str]]) -> None:
    """For containerd, by title; buildah writes one name only, and not where containerd looks."""
    index = json.loads((layout / "index.json").read_text())
    index["manifests"] = [
        image | {"annotations": {"io.containerd.image.name": name}}
        for image in index["manifests"]
        for name in names[image["annotations"]["org.opencontainers.image.ref.name"]]
    ]
    (layout / "index.json").write_text(json.dumps(index))


class _Builder:
    def __init__(self, folder: Path, store: Path, log: Path, lock: int) -> None:
        self._folder = folder
        self._in_store = ("buildah", f"--root={store}", f"--runroot={folder / 'run'}")
        self._wheels = folder.with_name("wheels")
        self._log = log
        self._lock = lock

    def build(self, recipe: Recipe, name: str, progress: Progress) -> None:
        """An image of that name in the store, after what it is built on."""
        for value in recipe.arguments.values():
            if not isinstance(value, str):
                self._ensure_base(value, progress)
        context = self._folder / "context"
        shutil.rmtree(context, ignore_errors=True)  # that of the image before
        context.mkdir()
        programs = {inside: path_of(program) for inside, program in recipe.programs.items()}
        for inside, path in {**recipe.files, **programs}.items():
            (context / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, context / inside)
        arguments = [f"--build-arg={word}" for word in recipe.words]
        if recipe.wheels:
            self._fetch_wheels(recipe, context, progress)
            arguments.append("--build-arg=PIP_NO_INDEX=1")
        self._buildah(progress, "rm", "--all")  # what a build that was killed has left in the store
        if recipe.stage:
            # Without a name of its own it would be pruned.
            kept = (f"localhost/{recipe.title}-{recipe.stage}", "--layers", f"--target={recipe.stage}")
            self._build(progress, recipe.dockerfile, context, *kept, *arguments)
        self._build(progress, recipe.dockerfile, context, name, "--layers", *arguments)
        self._buildah(progress, "rmi", "--prune")

    def push(self, recipe: Recipe, name: str, layout: Path, progress: Progress) -> None:
        """Adds to a folder in the layout of OCI. With zstd the import is twice as fast as uncompressed."""
        self._buildah(progress, "push", "--compression-format=zstd", name, f"oci:{layout}:{recipe.title}")

    def _fetch_wheels(self, recipe: Recipe, context: Path, progress: Progress) -> None:
        """By the pip of this machine, which has its settings: none of them has to go into the build.

        They are kept until the locks change: a change of ours then needs no network.
        """
        locks = [context / lock for lock in recipe.wheels]
        kept = self._wheels / f"{recipe.title}-{digest_of(*(lock.read_bytes() for lock in locks))}"
        if not kept.exists():
            for old in self._wheels.glob(f"{recipe.title}-*"):
                shutil.rmtree(old)
            fetched = self._folder / "wheels"
            self._run(
                progress, sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
                "--require-hashes", "--only-binary=:all:", "--python-version=3.11",
                *(f"--requirement={lock}" for lock in locks), f"--dest={fetched}",
            )  # fmt: skip
            kept.parent.mkdir(exist_ok=True)
            fetched.rename(kept)
        shutil.copytree(kept, context / "wheels", copy_function=os.link)

    def _ensure_base(self, base: Debian | Recipe, progress: Progress) -> None:
        if self._start(*self._in_store, "inspect", "--type=image", base.name).wait() == 0:
            return
        if isinstance(base, Recipe):
            self.build(base, base.name, progress)
        else:
            self._make_debian(base, progress)

    def _make_debian(self, debian: Debian, progress: Progress) -> None:
        root, context = self._folder / "root", self._folder / "debian"
        context.mkdir()
        include = f"--include={','.join(debian.packages)}"
        self._run(progress, "debootstrap", "--variant=minbase", include, SUITE, root, *_mirror())
        excluded = [f"--exclude={pattern}" for pattern in LEFT_OUT]
        self._run(
            progress, "tar", f"--directory={root}", "--numeric-owner", *excluded, "--create",
            f"--file={context / 'root.tar'}", ".",
        )  # fmt: skip
        self._build(progress, DEBIAN_DOCKERFILE, context, debian.name)

    def _build(self, progress: Progress, dockerfile: Path, context: Path, name: str, *options: str) -> None:
        self._buildah(
            progress, "build", "--isolation=chroot", "--pull-never", f"--file={dockerfile}", f"--tag={name}",
            *options, context,
        )  # fmt: skip

    def _buildah(self, progress: Progress, *words: str | Path) -> None:
        self._run(progress, *self._in_store, *words)

    def _run(self, progress: Progress, *command: str | Path) -> None:
        code = finish(self._start(*command), progress)
        if code != 0:
            raise BuildError(
                f"`{' '.join(map(str, command))}` failed with code {code}; "
                f"the end of {self._log}:\n{tail(self._log)}",
                remedy="see the message above: no network, a full disk?",
            )

    def _start(self, *command: str | Path) -> "subprocess.Popen[bytes]":
        with self._log.open("ab") as output:
            return subprocess.Popen(
                ["unshare", "--mount", "--propagation=private", *command],
                env=os.environ | {"PATH": processes.PATH},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(self._lock,),
            )


def _mirror() -> list[str]:
    """Where this machine has its packages from, if it is the same Debian; else debootstrap knows one."""
    wanted = ("Created-By: Packages", f"Codename: {SUITE}")
    command = ["apt-get", "indextargets", "--format=$(REPO_URI)", *wanted]
    targets = subprocess.run(command, capture_output=True, text=True, check=False)
    return targets.stdout.split()[:1]
