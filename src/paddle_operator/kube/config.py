"""Where the server is and how to prove who we are: a kubeconfig file, or the pod that we run in."""

import base64
import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec
import yaml

IN_CLUSTER = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class ConfigError(Exception):
    """The way to the cluster is not usable. The text says which file, which entry and what to do."""


@dataclass(frozen=True)
class Credentials:
    """A server address, what to trust, and a token that is read again when its file changes."""

    server: str
    tls: ssl.SSLContext | None
    token: str = ""
    token_file: Path | None = None
    namespace: str = "default"


class _Cluster(msgspec.Struct, rename="kebab"):
    server: str | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool | None = None
    proxy_url: Any = None
    tls_server_name: Any = None


class _User(msgspec.Struct, rename="kebab"):
    token: str | None = None
    token_file: str | None = msgspec.field(name="tokenFile", default=None)
    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    exec: Any = None
    auth_provider: Any = None
    username: Any = None
    as_: Any = msgspec.field(name="as", default=None)


class _Context(msgspec.Struct):
    cluster: str | None = None
    user: str | None = None
    namespace: str | None = None


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: _Cluster | None = None


class _NamedUser(msgspec.Struct):
    name: str
    user: _User | None = None


class _NamedContext(msgspec.Struct):
    name: str
    context: _Context | None = None


class _Kubeconfig(msgspec.Struct, rename="kebab"):
    """A kubeconfig, cut down to what we use. An entry may be null where kubectl lets it be."""

    current_context: str | None = None
    contexts: tuple[_NamedContext, ...] | None = None
    clusters: tuple[_NamedCluster, ...] | None = None
    users: tuple[_NamedUser, ...] | None = None


class _Named(Protocol):
    name: str


N = TypeVar("N", bound=_Named)


def load(kubeconfig: str | None) -> Credentials:
    """The file that is named, else $KUBECONFIG, else the pod's own account, else ~/.kube/config."""
    named = kubeconfig or os.environ.get("KUBECONFIG", "")
    if not named and os.environ.get("KUBERNETES_SERVICE_HOST") and IN_CLUSTER.is_dir():
        return from_pod()
    try:
        path = Path(named or "~/.kube/config").expanduser()
    except RuntimeError as error:
        raise ConfigError(f"{named}: no such file: {error}") from error
    return from_file(path)


def from_pod() -> Credentials:
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    bracketed = f"[{host}]" if ":" in host else host
    try:
        return Credentials(
            server=f"https://{bracketed}:{port}",
            tls=ssl.create_default_context(cafile=str(IN_CLUSTER / "ca.crt")),
            token_file=IN_CLUSTER / "token",
            namespace=(IN_CLUSTER / "namespace").read_text(encoding="utf-8").strip(),
        )
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{IN_CLUSTER}: the pod's service account cannot be used: {error}; "
            "is automountServiceAccountToken on?"
        ) from error


def from_file(path: Path) -> Credentials:
    config = _read(path)
    if not config.current_context:
        raise ConfigError(f"{path}: no current-context; choose one with `kubectl config use-context`")
    context = _find(path, "context", config.contexts, config.current_context).context or _Context()
    cluster = _find(path, "cluster", config.clusters, context.cluster or "").cluster or _Cluster()
    user = _find(path, "user", config.users, context.user or "").user or _User()
    _refuse_what_we_cannot(path, cluster, user)
    server = cluster.server or ""
    if not server.startswith(("https://", "http://")):
        raise ConfigError(f"{path}: cluster {context.cluster!r} has no http(s) server address")
    token = (user.token or "").strip()
    if not (token.isascii() and token.isprintable()):
        raise ConfigError(f"{path}: the token of user {context.user!r} has characters that no token has")
    return Credentials(
        server=server.rstrip("/"),
        tls=_tls(path, cluster, user) if server.startswith("https://") else None,
        token=token,
        token_file=path.parent / user.token_file if user.token_file else None,
        namespace=context.namespace or "default",
    )


def _read(path: Path) -> _Kubeconfig:
    try:
        return msgspec.convert(yaml.safe_load(path.read_text(encoding="utf-8")), type=_Kubeconfig)
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: no such file; name a kubeconfig with --kubeconfig or $KUBECONFIG"
        ) from None
    except yaml.MarkedYAMLError as error:
        # Not the error's own text: it quotes the line, which may hold a token.
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"{path}: is not YAML: line {line}: {error.problem}") from None
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: is not a kubeconfig: {error}") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, LookupError, RecursionError, yaml.YAMLError) as error:
        # What PyYAML lets through of its own conversions; again without its text.
        raise ConfigError(f"{path}: is not YAML ({type(error).__name__})") from None


def _find(path: Path, kind: str, entries: tuple[N, ...] | None, name: str) -> N:
    for entry in entries or ():
        if entry.name == name:
            return entry
    raise ConfigError(f"{path}: names the {kind} {name!r}, which is not in its {kind}s")


def _refuse_what_we_cannot(path: Path, cluster: _Cluster, user: _User) -> None:
    """What kubectl understands and we do not; passed over, it would lead elsewhere or be somebody else."""
    entries = {
        "exec": user.exec,
        "auth-provider": user.auth_provider,
        "username": user.username,
        "as": user.as_,
        "proxy-url": cluster.proxy_url,
        "tls-server-name": cluster.tls_server_name,
    }
    for name, entry in entries.items():
        if entry is not None:
            raise ConfigError(
                f"{path}: {name!r} is not supported yet; use a token (`kubectl create token ACCOUNT` makes "
                "one) or a client certificate, and a server address that is reached directly"
            )


def _tls(path: Path, cluster: _Cluster, user: _User) -> ssl.SSLContext:
    try:
        authority = _pem(path, cluster.certificate_authority_data, cluster.certificate_authority)
        context = ssl.create_default_context(cadata=authority or None)
        if cluster.insecure_skip_tls_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        certificate = _pem(path, user.client_certificate_data, user.client_certificate)
        key = _pem(path, user.client_key_data, user.client_key)
        if certificate and key:
            _load_client_certificate(context, certificate, key)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: a certificate or key cannot be used: {error}") from error
    if bool(certificate) != bool(key):
        raise ConfigError(f"{path}: client-certificate and client-key belong together, and one is missing")
    return context


def _pem(path: Path, inline: str | None, file: str | None) -> str:
    """Inline data wins, as with kubectl; paths in a kubeconfig are relative to the file itself.

    Only comments in a PEM are not ASCII, and nobody reads them.
    """
    if inline:
        content = base64.b64decode("".join(inline.split()), validate=True)
    elif file:
        content = (path.parent / file).read_bytes()
    else:
        return ""
    if not content.strip():
        # Taken for none, an empty authority would mean to trust whomever the machine trusts.
        raise ValueError(f"{file or 'the inline data'} is empty")
    return content.decode("ascii", errors="ignore")


def _load_client_certificate(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Python's ssl reads keys only by name; an anonymous file in memory never touches a disk."""
    descriptor = os.memfd_create("client-certificate", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, f"{certificate}\n{key}".encode())
        # Without a password OpenSSL would ask for one on the terminal, and wait.
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password="")
    finally:
        os.close(descriptor)
