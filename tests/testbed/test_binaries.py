import fcntl
import shutil
import stat
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from testbed import binaries, toolchain
from testbed.binaries import ETCD, HELM, KUBERNETES, PROGRAMS, Module, binary_path, ensure_program
from testbed.cache import cache_folder
from testbed.errors import BuildError
from testbed.toolchain import Toolchain, select_toolchain

GO = Toolchain(Path("/nowhere/go"), "go1.99.0", packaged=False)
TINY = {
    "go.mod": "module tiny\n\ngo 1.21\n\nrequire example.com/upstream v1.2.3\n",
    "go.sum": "",
    "main.go": 'package main\n\nfunc main() { println("hello") }\n',
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own for every test. Go's own build cache stays the user's, which keeps this fast."""
    if shutil.which("go"):
        answer = subprocess.run(["go", "env", "GOCACHE"], capture_output=True, text=True, check=True)
        monkeypatch.setenv("GOCACHE", answer.stdout.strip())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return tmp_path / "cache" / "paddle-operator"


@pytest.fixture
def tiny(tmp_path: Path) -> binaries.Program:
    """A program that builds in a moment and needs no network."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    for name, content in TINY.items():
        (folder / name).write_text(content)
    return binaries.Program("tiny", Module("tiny", "example.com/upstream", folder), ".", "1 second")


def write_executable(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    path.chmod(0o755)
    return path


def test_versions_come_from_go_mod() -> None:
    assert KUBERNETES.version.startswith("v1.")
    assert ETCD.version.startswith("v3.")
    assert f"gitVersion={KUBERNETES.version}" in KUBERNETES.build_flags[-1]
    assert "-X" not in ETCD.build_flags[-1]
    assert f"version.version={HELM.version} " in HELM.build_flags[-1]


def test_helm_renders_for_the_kubernetes_of_the_testbed_when_it_cannot_ask() -> None:
    _, minor, _ = KUBERNETES.version.split(".")
    assert f"chartutil.k8sVersionMinor={minor} " in HELM.build_flags[-1]


def test_a_control_plane_alone_needs_neither_a_node_nor_what_is_installed_on_it() -> None:
    assert set(binaries.CONTROL_PLANE_PROGRAMS) == {
        "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"
    }  # fmt: skip


@pytest.mark.parametrize("file", ["go.mod", "go.sum"])
def test_key_changes_with_the_pinned_modules(tiny: binaries.Program, file: str) -> None:
    before = tiny.module.cache_key("go1.26.0")
    with (tiny.module.folder / file).open("a") as opened:
        opened.write("// changed\n")
    assert tiny.module.cache_key("go1.26.0") != before


def test_key_changes_with_the_version_of_go(tiny: binaries.Program) -> None:
    assert tiny.module.cache_key("go1.26.0") != tiny.module.cache_key("go1.26.1")


def test_key_changes_with_the_flags(tiny: binaries.Program) -> None:
    # The upstream decides about the version stamps, and so about the flags.
    stamped = replace(tiny.module, upstream="k8s.io/kubernetes")
    (tiny.module.folder / "go.mod").write_text(TINY["go.mod"] + "require k8s.io/kubernetes v1.2.3\n")
    assert stamped.build_flags != tiny.module.build_flags
    assert stamped.cache_key("go1.26.0") != tiny.module.cache_key("go1.26.0")


def test_a_go_mod_without_the_version_is_told(tiny: binaries.Program) -> None:
    (tiny.module.folder / "go.mod").write_text("module tiny\n")
    with pytest.raises(BuildError, match=r"go\.mod requires example\.com/upstream[\s\S]*remedy"):
        _ = tiny.module.version


def test_assets_are_used_instead_of_building(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = write_executable(tmp_path / "assets" / "etcd", "#!/bin/sh\n")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(given.parent))
    assert binaries.ensure(["etcd"]) == {"etcd": given}


def test_what_the_assets_lack_comes_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "assets").mkdir()
    # There, but not executable: as good as missing.
    (tmp_path / "assets" / "kubectl").write_text("")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    monkeypatch.setattr(binaries, "select_toolchain", lambda *_: GO)
    cached = write_executable(binary_path(PROGRAMS["kubectl"], GO), "#!/bin/sh\n")
    assert binaries.ensure(["kubectl"]) == {"kubectl": cached}


def test_without_go_the_packaged_one_is_chosen_but_not_yet_installed(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    chosen = select_toolchain("1.21", cache)
    assert chosen.packaged
    assert chosen.version.removeprefix("go") in toolchain.LOCK_FILE.read_text()
    assert chosen.executable.is_relative_to(cache / "go")
    assert not cache.exists()


@pytest.mark.parametrize("script", ["echo go1.20.3", "exit 1"], ids=["too old", "broken"])
def test_an_unusable_go_counts_as_none(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    write_executable(tmp_path / "bin" / "go", f"#!/bin/sh\n{script}\n")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert select_toolchain("1.24.0", cache).packaged


def test_a_new_enough_go_is_used(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = write_executable(tmp_path / "bin" / "go", "#!/bin/sh\necho go1.24.0\n")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert select_toolchain("1.24.0", cache) == Toolchain(own, "go1.24.0", packaged=False)


def test_the_packaged_go_is_installed_whole_or_not_at_all(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The installer is replaced by one that leaves half a Go and fails: there is no network in tests."""
    broken = (
        'import pathlib, sys; pathlib.Path(sys.argv[4], "go/bin").mkdir(parents=True); sys.exit("no network")'
    )
    monkeypatch.setattr(toolchain, "_installer", lambda: [sys.executable, "-c", broken])
    monkeypatch.setenv("PATH", str(tmp_path))
    chosen = select_toolchain("1.21", cache)
    with pytest.raises(BuildError, match=r"no network[\s\S]*remedy: .*install Go"):
        chosen.install()
    assert list((cache / "go").iterdir()) == []


needs_go = pytest.mark.skipif(shutil.which("go") is None, reason="builds with the machine's Go")


@needs_go
def test_builds_once_then_takes_it_from_the_cache(
    tiny: binaries.Program, capsys: pytest.CaptureFixture[str]
) -> None:
    built = ensure_program(tiny)
    assert stat.S_IMODE(built.stat().st_mode) & stat.S_IXUSR
    assert subprocess.run([built], capture_output=True, text=True, check=True).stderr == "hello\n"
    assert "tiny v1.2.3: built in" in capsys.readouterr().out
    modified = built.stat().st_mtime_ns
    assert ensure_program(tiny) == built
    assert built.stat().st_mtime_ns == modified
    assert capsys.readouterr().out == "tiny v1.2.3: cached\n"


@needs_go
def test_half_built_leftovers_are_ignored_and_removed(tiny: binaries.Program) -> None:
    path = binary_path(tiny, select_toolchain("1.21", cache_folder()))
    leftover = write_executable(path.with_name("tiny.partial-1"), "half a binary")
    built = ensure_program(tiny)
    assert built == path
    assert subprocess.run([built], capture_output=True, check=True).stderr == b"hello\n"
    assert not leftover.exists()


@needs_go
def test_a_build_that_fails_says_where_and_leaves_no_binary(tiny: binaries.Program) -> None:
    (tiny.module.folder / "main.go").write_text("package main\n\nfunc main() { nonsense() }\n")
    with pytest.raises(BuildError, match=r"undefined: nonsense[\s\S]*remedy"):
        ensure_program(tiny)
    path = binary_path(tiny, select_toolchain("1.21", cache_folder()))
    assert {file.name for file in path.parent.iterdir()} == {"tiny.log", "tiny.lock"}


def test_who_waits_for_another_builder_takes_its_binary(
    tiny: binaries.Program, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # No real Go here: waiting for its answer may sleep too, and below a sleep means waiting for the lock.
    monkeypatch.setattr(binaries, "select_toolchain", lambda *_: GO)
    path = binary_path(tiny, GO)
    path.parent.mkdir(parents=True)
    with path.with_name("tiny.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)

        def other_builder_finishes(_seconds: float) -> None:
            write_executable(path, "built by the other")
            fcntl.flock(other, fcntl.LOCK_UN)

        monkeypatch.setattr(time, "sleep", other_builder_finishes)
        assert ensure_program(tiny).read_text() == "built by the other"
    assert "another process is building it" in capsys.readouterr().out


def test_a_cache_that_cannot_be_written_is_told(
    tiny: binaries.Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "select_toolchain", lambda *_: GO)
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(BuildError, match=r"cannot write[\s\S]*remedy: .*XDG_CACHE_HOME"):
        ensure_program(tiny)
