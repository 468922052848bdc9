"""What one instance consists of on disk: its folder, its lock, its record, its credentials."""

import base64
import fcntl
import json
import os
import re
import secrets
import socket
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import yaml

from testbed.certificates import Authority, write_private, write_service_account_keys
from testbed.components import API_SERVER, AUDIT_POLICY, HOST, SERVER_NAMES, Layout
from testbed.errors import ControlPlaneError
from testbed.progress import Progress

ADMIN = "admin"
# User -> groups. Separate users let the audit log tell who did what. Operators and `author` can do
# nothing until a test gives them a role.
USERS: Mapping[str, tuple[str, ...]] = {
    ADMIN: ("system:masters",),
    "fake-node": ("system:masters",),
    "paddle-operator": (),
    "second-operator": (),
    "author": (),
    "system:kube-controller-manager": (),
    "system:kube-scheduler": (),
    # Of a real node. CoreDNS looks at services and pods everywhere.
    "system:node:node-1": ("system:nodes",),
    "system:kube-proxy": (),
    "coredns": ("system:masters",),
}
LOCK_TIMEOUT_SECONDS = 300.0


@dataclass(frozen=True)
class Record:
    """Written when all files of an instance are in place and before its first process starts."""

    components: tuple[str, ...]
    ports: dict[str, int]
    tokens: dict[str, str]
    programs: dict[str, str]
    api_address: str = HOST

    @property
    def has_node(self) -> bool:
        """A real one, for which the API server does not listen on loopback."""
        return self.api_address != HOST

    def address(self, component: str) -> str:
        return self.api_address if component == API_SERVER else HOST

    @property
    def url(self) -> str:
        return f"https://{self.api_address}:{self.ports[API_SERVER]}"


def load_record(layout: Layout) -> Record | None:
    """None when `up` never came that far, or was killed while it wrote."""
    try:
        content = json.loads(layout.record.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    return Record(**{**content, "components": tuple(content["components"])})


def instance_folder(name: str) -> Path:
    """The same for every command of this user; nothing is created."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,39}", name):
        raise ControlPlaneError(
            f"{name!r} is no name for a testbed", remedy="use up to 40 of a-z, 0-9 and -, not starting with -"
        )
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        root = Path(runtime) / "paddle-operator-testbed"
    else:
        root = Path(tempfile.gettempdir()) / f"paddle-operator-testbed-{os.getuid()}"
    return root.absolute() / name


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """The folder exists and is ours alone while in here; it may be deleted inside.

    The lock is on the folder itself, so that no lock file is left, and ends with the process that holds it.
    """
    descriptor = _lock(folder)
    try:
        yield
    finally:
        os.close(descriptor)


def _lock(folder: Path) -> int:
    progress = None
    deadline = time.monotonic() + LOCK_TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        descriptor = _open_private(folder)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever had the lock before may have deleted the folder: a lock on a ghost protects nothing.
            if folder.exists() and os.path.samestat(folder.stat(), os.fstat(descriptor)):
                if progress is not None:
                    progress.done("waited")
                return descriptor
        except BlockingIOError:
            progress = progress or Progress(folder.name, "another up or down is at work, waiting")
            progress.tick()
            time.sleep(0.1)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    raise ControlPlaneError(
        f"the folder {folder} has been locked for {LOCK_TIMEOUT_SECONDS:.0f} s",
        remedy=f"see who holds it with `lsof {folder}` and end that process",
    )


def _open_private(folder: Path) -> int:
    while True:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # The root may stand in a folder where everybody writes, so somebody else may have put it there first.
        status = folder.parent.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
            raise ControlPlaneError(
                f"{folder.parent} is not a folder that only you can enter",
                remedy="remove it, or set XDG_RUNTIME_DIR to a private folder",
            )
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            return os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            # A concurrent `down` removed it in between.
            continue


@contextmanager
def reserved_ports(names: Iterable[str]) -> Iterator[dict[str, int]]:
    """Free ports on loopback, kept for us until the end of the block.

    They are bound with SO_REUSEPORT, as the components do, so a component of the same user can take its port
    while nobody else can: neither another instance that starts now nor an outgoing connection.
    """
    with ExitStack() as stack:
        ports = {}
        for name in names:
            reservation = stack.enter_context(socket.socket())
            reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            reservation.bind((HOST, 0))
            ports[name] = reservation.getsockname()[1]
        yield ports


@contextmanager
def kept_ports(record: Record, component: str) -> Iterator[None]:
    """Those of a component of ours stay its own in here, also while it is away: see `reserved_ports`."""
    with ExitStack() as stack:
        for name in (component, f"{component}-peer"):
            if name in record.ports:
                reservation = stack.enter_context(socket.socket())
                reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                reservation.bind((record.address(component), record.ports[name]))
        yield


def prepare(
    layout: Layout, components: Iterable[str], ports: dict[str, int], programs: Mapping[str, Path]
) -> Record:
    """Writes everything that the components read, into an empty folder."""
    for folder in (layout.certificates, layout.kubeconfigs, layout.logs):
        folder.mkdir(mode=0o700)
    authority = Authority(layout.certificates)
    authority.issue("server", SERVER_NAMES)
    authority.issue("etcd-client")
    write_service_account_keys(layout.certificates)
    tokens = {user: secrets.token_urlsafe(32) for user in USERS}
    lines = [f'{tokens[user]},{user},{user},"{",".join(groups)}"\n' for user, groups in USERS.items()]
    write_private(layout.tokens, "".join(lines).encode())
    layout.audit_policy.write_text(AUDIT_POLICY)
    paths = {name: str(path) for name, path in programs.items()}
    record = Record(tuple(components), ports, tokens, paths, layout.api_address)
    for user in USERS:
        write_private(layout.kubeconfig(user), _kubeconfig(record, user, layout.ca).encode())
    write_private(layout.record, json.dumps(asdict(record), indent=2).encode())
    return record


def _kubeconfig(record: Record, user: str, ca: Path) -> str:
    """Contains the certificate instead of its path: the file can be copied anywhere."""
    certificate = base64.b64encode(ca.read_bytes()).decode()
    cluster = {"server": record.url, "certificate-authority-data": certificate}
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "testbed", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": record.tokens[user]}}],
            "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": user}}],
            "current-context": "testbed",
        }
    )
