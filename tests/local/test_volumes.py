"""Volumes as folders of this machine."""

import socket
from base64 import b64encode
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from paddle_operator.api.meta import Key, Manifest
from paddle_operator.api.resources import CONFIG_MAPS
from paddle_operator.local.process import Mount
from paddle_operator.local.supplies import NotYet, Supplies
from paddle_operator.local.volumes import Shelf, in_memory, users_of
from paddle_operator.memory.cluster import MemoryCluster

UID = "uid-1"
MAP = {
    "data": {"run.sh": "echo hello", "conf": "a=1"},
    "binaryData": {"picture": b64encode(b"\xff\x00").decode()},
}
SECRET = {"data": {"token": b64encode(b"\xff\x00").decode()}, "stringData": {"word": "plain"}}
ESCAPES = ["../out", "a/../../out", "..", "/out", "a/b/../../../out"]


@pytest.fixture
async def shelf(tmp_path: Path) -> Shelf:
    memory = MemoryCluster(lambda: datetime(2026, 11, 18, tzinfo=UTC), {})
    await memory.create(CONFIG_MAPS, {"metadata": {"name": "map", "namespace": "team"}, **MAP})
    return Shelf(tmp_path / "pods", tmp_path / "claims", Supplies(memory, {Key("team", "secret"): SECRET}))


def pod(volume: Manifest, *containers: Manifest) -> Manifest:
    spec = {"volumes": [{"name": "data", **volume}], "containers": list(containers)}
    return {"metadata": {"namespace": "team", "uid": UID}, "spec": spec}


def user(*paths: str, **mount: Any) -> Manifest:
    return {"volumeMounts": [{"name": "data", "mountPath": path, **mount} for path in paths or ("/data",)]}


def mounted(shelf: Shelf, volume: Manifest, **mount: Any) -> Mount:
    container = user(**mount)
    (found,) = shelf.mounts(container, pod(volume, container))
    return found


def files(folder: str) -> dict[str, bytes]:
    root = Path(folder)
    return {str(file.relative_to(root)): file.read_bytes() for file in root.rglob("*") if file.is_file()}


def test_a_container_without_mounts_has_none(shelf: Shelf) -> None:
    assert shelf.mounts({}, pod({"emptyDir": {}}, {})) == ()


@pytest.mark.parametrize(
    ("written", "target"),
    [("/data", "/data"), ("/data/", "/data"), ("data/deep", "/data/deep"), ("/a//b/./c", "/a/b/c")],
)
def test_a_mount_path_is_made_absolute(shelf: Shelf, written: str, target: str) -> None:
    container = user(written)
    assert shelf.mounts(container, pod({"emptyDir": {}}, container))[0].target == target


# emptyDir


def test_an_empty_folder_dies_with_its_pod_and_is_shared_in_it(shelf: Shelf) -> None:
    one, other = user("/here"), user("/there")
    shared = pod({"emptyDir": {}}, one, other)
    (here,), (there,) = shelf.mounts(one, shared), shelf.mounts(other, shared)
    assert here.source == there.source == str(shelf.pods / UID / "volumes" / "data")
    assert Path(here.source).is_dir()
    assert (here.target, there.target) == ("/here", "/there")
    assert not here.read_only


def test_a_restarted_container_finds_what_it_wrote(shelf: Shelf) -> None:
    before = mounted(shelf, {"emptyDir": {}})
    Path(before.source, "checkpoint").write_text("step 3")
    assert files(mounted(shelf, {"emptyDir": {}}).source) == {"checkpoint": b"step 3"}


def test_a_folder_in_memory_is_the_containers_own(shelf: Shelf) -> None:
    assert mounted(shelf, {"emptyDir": {"medium": "Memory"}}) == Mount("/data", "")


@pytest.mark.parametrize("containers", [(user("/a"), user("/b")), (user("/a", "/b"),)])
def test_a_folder_in_memory_that_is_shared_is_a_folder(
    shelf: Shelf, containers: tuple[Manifest, ...]
) -> None:
    shared = pod({"emptyDir": {"medium": "Memory"}}, *containers)
    mounts = [mount for container in containers for mount in shelf.mounts(container, shared)]
    assert [Path(mount.source).is_dir() for mount in mounts] == [True, True]
    assert len({mount.source for mount in mounts}) == 1


@pytest.mark.parametrize(
    ("volume", "answer"),
    [
        ({"emptyDir": {"medium": "Memory"}}, True),
        ({"emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}, True),
        ({"emptyDir": {"medium": ""}}, False),
        ({"emptyDir": {}}, False),
        ({"emptyDir": None}, False),
        ({"hostPath": {"path": "/dev/shm"}}, False),
    ],
)
def test_which_folders_are_in_memory(volume: Manifest, answer: bool) -> None:
    assert in_memory(volume) is answer


def test_users_are_counted_among_init_containers_too() -> None:
    described = pod({"emptyDir": {}}, user(), {}, user("/x"))
    described["spec"]["initContainers"] = [user()]
    assert users_of("data", described) == 3
    assert users_of("other", described) == 0


# hostPath


@pytest.fixture
def things(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
    return tmp_path


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (None, "folder"),
        ("", "file"),
        ("Directory", "folder"),
        ("DirectoryOrCreate", "folder"),
        ("DirectoryOrCreate", "new/deep"),
        ("File", "file"),
        ("FileOrCreate", "file"),
        ("FileOrCreate", "new-file"),
        ("Socket", "socket"),
    ],
)
def test_a_path_of_the_machine(shelf: Shelf, things: Path, kind: str | None, name: str) -> None:
    found = mounted(shelf, {"hostPath": {"path": str(things / name), "type": kind}})
    assert found == Mount("/data", str(things / name))
    assert (things / name).exists()
    assert (things / name).is_dir() == ("folder" in name or "deep" in name)


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        (None, "none", "does not exist on this machine"),
        ("Directory", "none", "does not exist on this machine"),
        ("File", "none", "does not exist on this machine"),
        ("Directory", "file", "is no Directory"),
        ("File", "folder", "is no File"),
        ("FileOrCreate", "folder", "is no FileOrCreate"),
        ("Socket", "file", "is no Socket"),
        ("CharDevice", "file", "is no CharDevice"),
        ("BlockDevice", "file", "is no BlockDevice"),
    ],
)
def test_a_path_of_the_wrong_kind(
    shelf: Shelf, things: Path, kind: str | None, name: str, words: str
) -> None:
    with pytest.raises(NotYet) as caught:
        mounted(shelf, {"hostPath": {"path": str(things / name), "type": kind}})
    assert str(caught.value) == f"hostPath type check failed: {things / name} {words}"
    assert caught.value.reason == "ContainerCreating"
    assert not (things / "none").exists()


def test_a_file_is_not_made_in_a_folder_that_is_missing(shelf: Shelf, things: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        mounted(shelf, {"hostPath": {"path": str(things / "no" / "file"), "type": "FileOrCreate"}})


# configMap and secret


def item(key: str, path: str) -> Manifest:
    return {"key": key, "path": path}


def from_map(*items: Manifest, name: str = "map", **fields: Any) -> Manifest:
    return {"configMap": {"name": name, **fields, **({"items": list(items)} if items else {})}}


def from_secret(*items: Manifest, name: str = "secret", **fields: Any) -> Manifest:
    return {"secret": {"secretName": name, **fields, **({"items": list(items)} if items else {})}}


@pytest.mark.parametrize(
    ("volume", "content"),
    [
        (from_map(), {"run.sh": b"echo hello", "conf": b"a=1", "picture": b"\xff\x00"}),
        (from_map(item("conf", "a/b.conf")), {"a/b.conf": b"a=1"}),
        (from_map(item("conf", "x"), item("conf", "y")), {"x": b"a=1", "y": b"a=1"}),
        (from_map(item("conf", "..a/b..c")), {"..a/b..c": b"a=1"}),
        (from_map(name="none", optional=True), {}),
        (from_map(item("k", "p"), name="none", optional=True), {}),
        # What may be missing is left out, not made empty.
        (from_map(item("none", "x"), item("conf", "y"), optional=True), {"y": b"a=1"}),
        (from_secret(), {"token": b"\xff\x00", "word": b"plain"}),
        (from_secret(item("word", "w")), {"w": b"plain"}),
        (from_secret(name="none", optional=True), {}),
    ],
)
def test_entries_are_files(shelf: Shelf, volume: Manifest, content: dict[str, bytes]) -> None:
    found = mounted(shelf, volume)
    assert files(found.source) == content
    assert found.read_only


@pytest.mark.parametrize(
    ("volume", "words"),
    [
        (from_map(name="none"), 'configmap "none" not found'),
        (from_secret(name="map"), 'secret "map" not found'),
        (from_map(item("b", "x"), item("a", "y")), "configmap team/map references non-existent key: a, b"),
        (from_secret(item("k", "x")), "secret team/secret references non-existent key: k"),
    ],
)
def test_a_missing_one_holds_the_container_back(shelf: Shelf, volume: Manifest, words: str) -> None:
    with pytest.raises(NotYet) as caught:
        mounted(shelf, volume)
    assert (str(caught.value), caught.value.reason) == (words, "ContainerCreating")


@pytest.mark.parametrize(
    ("fields", "mode"),
    [
        ({}, 0o644),
        ({"defaultMode": 0o755}, 0o755),
        ({"items": [{"key": "run.sh", "path": "run.sh", "mode": 0o700}]}, 0o700),
        ({"items": [{"key": "run.sh", "path": "run.sh", "mode": 0o500}], "defaultMode": 0o600}, 0o500),
        ({"items": [{"key": "run.sh", "path": "run.sh"}], "defaultMode": 0o400}, 0o400),
    ],
)
def test_modes_of_files(shelf: Shelf, fields: Manifest, mode: int) -> None:
    volume = {"configMap": {"name": "map", **fields}}
    for _ in range(2):  # a restart writes them again
        found = mounted(shelf, volume)
        assert Path(found.source, "run.sh").stat().st_mode & 0o7777 == mode


# persistentVolumeClaim


def test_a_claim_outlives_its_pod_and_belongs_to_its_namespace(shelf: Shelf) -> None:
    found = mounted(shelf, {"persistentVolumeClaim": {"claimName": "models"}})
    assert found == Mount("/data", str(shelf.claims / "team" / "models"))
    assert Path(found.source).is_dir()
    assert shelf.claim(Key("other", "models")) == shelf.claims / "other" / "models"


# subPath and readOnly


@pytest.mark.parametrize(
    ("part", "name"), [("sub", "sub"), ("a/b", "a/b"), ("./a", "a"), ("a..b", "a..b"), ("...", "...")]
)
def test_a_part_of_a_volume_is_made_if_it_is_missing(shelf: Shelf, part: str, name: str) -> None:
    found = mounted(shelf, {"emptyDir": {}}, subPath=part)
    assert found.source == str(shelf.pods / UID / "volumes" / "data" / name)
    assert Path(found.source).is_dir()


def test_one_file_of_a_config_map(shelf: Shelf) -> None:
    found = mounted(shelf, {"configMap": {"name": "map"}}, subPath="conf")
    assert Path(found.source).read_text() == "a=1"


@pytest.mark.parametrize(
    ("volume", "mount", "answer"),
    [
        ({"emptyDir": {}}, {}, False),
        ({"emptyDir": {}}, {"readOnly": False}, False),
        ({"emptyDir": {}}, {"readOnly": True}, True),
        ({"emptyDir": None}, {}, False),
        ({"persistentVolumeClaim": {"claimName": "c"}}, {}, False),
        ({"persistentVolumeClaim": {"claimName": "c", "readOnly": True}}, {}, True),
        # As by every kubelet since 1.10.
        ({"configMap": {"name": "map"}}, {"readOnly": False}, True),
        ({"secret": {"secretName": "secret"}}, {}, True),
        ({"configMap": {"name": "map"}}, {"subPath": "conf"}, True),
    ],
)
def test_what_is_read_only(shelf: Shelf, volume: Manifest, mount: Manifest, answer: bool) -> None:
    assert mounted(shelf, volume, **mount).read_only is answer


@pytest.mark.parametrize("path", ESCAPES)
@pytest.mark.parametrize("where", ["subPath", "items", "claimName", "name"])
def test_no_path_leads_out_of_its_volume(shelf: Shelf, tmp_path: Path, where: str, path: str) -> None:
    container = user(subPath=path) if where == "subPath" else user()
    volume: Manifest = {"emptyDir": {}}
    if where == "items":
        volume = {"configMap": {"name": "map", "items": [{"key": "conf", "path": path}]}}
    elif where == "claimName":
        volume = {"persistentVolumeClaim": {"claimName": path}}
    described = pod(volume, container)
    if where == "name":
        described["spec"]["volumes"][0]["name"] = container["volumeMounts"][0]["name"] = path
    with pytest.raises(NotYet, match="leads out of its volume; write a relative path without"):
        shelf.mounts(container, described)
    assert not [file for file in tmp_path.rglob("*") if "out" in file.name]
    assert not Path("/out").exists()
