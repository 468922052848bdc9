"""Volumes as folders of this machine, and where a container sees them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from paddle_operator.api.meta import Key, Manifest

from .process import Mount
from .supplies import NotYet, Supplies

LEADS_OUT = "leads out of its volume; write a relative path without .."
SHARED_MEMORY = "/dev/shm"  # noqa: S108 (a path inside the container)


@dataclass(frozen=True)
class Shelf:
    """Where the folders are: ``pods`` for what dies with its pod, ``claims`` for what stays."""

    pods: Path
    claims: Path
    supplies: Supplies

    def mounts(self, container: Manifest, pod: Manifest) -> tuple[Mount, ...]:
        """Makes what is missing; NotYet while a config map or secret is."""
        volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
        return tuple(
            self._mount(wanted, volumes[wanted["name"]], pod)
            for wanted in container.get("volumeMounts") or ()
        )

    def claim(self, key: Key) -> Path:
        return _inside(self.claims / key.namespace, key.name)

    def _mount(self, wanted: Manifest, volume: Manifest, pod: Manifest) -> Mount:
        target = str(Path("/", wanted["mountPath"]))
        if in_memory(volume) and users_of(volume["name"], pod) == 1:
            return Mount(target, "")
        kind = next((name for name in volume if name != "name"), "emptyDir")
        details = volume.get(kind) or {}
        own = _inside(self.pods / pod["metadata"]["uid"] / "volumes", volume["name"])
        source = MAKERS[kind](self, details, own, pod)
        if part := wanted.get("subPath"):
            source = _inside(source, part)
            if not source.exists():
                source.mkdir(parents=True)
        read_only = kind in COPIES or bool(wanted.get("readOnly") or details.get("readOnly"))
        return Mount(target, str(source), read_only)

    def _empty(self, _source: Manifest, own: Path, _pod: Manifest) -> Path:
        own.mkdir(parents=True, exist_ok=True)
        return own

    def _host_path(self, source: Manifest, _own: Path, _pod: Manifest) -> Path:
        path, kind = Path(source["path"]), source.get("type") or ""
        if kind == "DirectoryOrCreate":
            path.mkdir(parents=True, exist_ok=True)
        elif kind == "FileOrCreate" and not path.exists():
            path.touch()
        if problem := host_path_problem(source):
            raise NotYet(f"hostPath type check failed: {problem}", "ContainerCreating")
        return path

    def _config_map(self, source: Manifest, own: Path, pod: Manifest) -> Path:
        return self._written("configmap", source["name"], source, own, pod)

    def _secret(self, source: Manifest, own: Path, pod: Manifest) -> Path:
        return self._written("secret", source["secretName"], source, own, pod)

    def _written(self, kind: str, name: str, source: Manifest, own: Path, pod: Manifest) -> Path:
        key = Key(pod["metadata"]["namespace"], name)
        optional = source.get("optional", False)
        entries = self.supplies.demand(kind, key, optional=optional, reason="ContainerCreating")
        items = source.get("items") or [{"key": entry, "path": entry} for entry in entries]
        if not optional and (missing := sorted({item["key"] for item in items} - set(entries))):
            raise NotYet(
                f"{kind} {key} references non-existent key: {', '.join(missing)}", "ContainerCreating"
            )
        own.mkdir(parents=True, exist_ok=True, mode=0o700)
        for item in items:
            if item["key"] in entries:
                file = _inside(own, item["path"])
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(entries[item["key"]])
                file.chmod(item.get("mode") or source.get("defaultMode") or 0o644)
        return own

    def _claim(self, source: Manifest, _own: Path, pod: Manifest) -> Path:
        folder = self.claim(Key(pod["metadata"]["namespace"], source["claimName"]))
        folder.mkdir(parents=True, exist_ok=True)
        return folder


MAKERS: dict[str, Callable[[Shelf, Manifest, Path, Manifest], Path]] = {
    "emptyDir": Shelf._empty,  # noqa: SLF001
    "hostPath": Shelf._host_path,  # noqa: SLF001
    "configMap": Shelf._config_map,  # noqa: SLF001
    "secret": Shelf._secret,  # noqa: SLF001
    "persistentVolumeClaim": Shelf._claim,  # noqa: SLF001
}


COPIES = ("configMap", "secret")
"""What a pod writes there would be lost, so it is not let."""

HOST_PATH_TYPES: dict[str, Callable[[Path], bool]] = {
    "": Path.exists,
    "DirectoryOrCreate": Path.is_dir,
    "Directory": Path.is_dir,
    "FileOrCreate": Path.is_file,
    "File": Path.is_file,
    "Socket": Path.is_socket,
    "CharDevice": Path.is_char_device,
    "BlockDevice": Path.is_block_device,
}


def host_path_problem(source: Manifest) -> str:
    path, kind = source["path"], source.get("type") or ""
    if HOST_PATH_TYPES.get(kind, Path.exists)(Path(path)):
        return ""
    return f"{path} is no {kind}" if Path(path).exists() else f"{path} does not exist on this machine"


def leaves_its_folder(path: str) -> bool:
    return Path(path).is_absolute() or ".." in Path(path).parts


def _inside(folder: Path, path: str) -> Path:
    if leaves_its_folder(path):
        raise NotYet(f"{path!r} {LEADS_OUT}")
    return folder / path


def in_memory(volume: Manifest) -> bool:
    return "emptyDir" in volume and (volume["emptyDir"] or {}).get("medium") == "Memory"


def users_of(name: str, pod: Manifest) -> int:
    spec = pod["spec"]
    containers = [*(spec.get("initContainers") or ()), *spec["containers"]]
    mounts = [mount for container in containers for mount in container.get("volumeMounts") or ()]
    return sum(mount["name"] == name for mount in mounts)
