"""Where the server is and how to prove who we are: a kubeconfig file, or the pod that we run in."""

import base64
import binascii
import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

IN_CLUSTER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
# Ways to log in that need the official client's plug-ins; named in the refusal.
_PLUGINS = ("exec", "auth-provider")


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


def load(kubeconfig: str | None) -> Credentials:
    """The file that is named, else $KUBECONFIG, else the pod's own account, else ~/.kube/config."""
    named = kubeconfig or os.environ.get("KUBECONFIG", "")
    if named:
        return from_file(Path(named).expanduser())
    if "KUBERNETES_SERVICE_HOST" in os.environ and IN_CLUSTER.is_dir():
        return from_pod()
    return from_file(Path("~/.kube/config").expanduser())


def from_pod() -> Credentials:
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    bracketed = f"[{host}]" if ":" in host else host
    return Credentials(
        server=f"https://{bracketed}:{port}",
        tls=ssl.create_default_context(cafile=str(IN_CLUSTER / "ca.crt")),
        token_file=IN_CLUSTER / "token",
        namespace=(IN_CLUSTER / "namespace").read_text().strip(),
    )


def from_file(path: Path) -> Credentials:
    try:
        document = yaml.safe_load(path.read_text())
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: no such file; name a kubeconfig with --kubeconfig or $KUBECONFIG"
        ) from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: cannot be read as a kubeconfig: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("current-context"), str):
        raise ConfigError(f"{path}: no current-context; choose one with `kubectl config use-context`")
    context = _entry(path, document, "contexts", document["current-context"], "context")
    cluster = _entry(path, document, "clusters", str(context.get("cluster", "")), "cluster")
    user = _entry(path, document, "users", str(context.get("user", "")), "user")
    _refuse_plugins(path, cluster, user)
    server = cluster.get("server")
    if not isinstance(server, str) or not server.startswith(("https://", "http://")):
        raise ConfigError(f"{path}: cluster {context.get('cluster')!r} has no http(s) server address")
    token_file = user.get("tokenFile")
    return Credentials(
        server=server.rstrip("/"),
        tls=_tls(path, cluster, user) if server.startswith("https://") else None,
        token=str(user.get("token", "")),
        token_file=path.parent / token_file if token_file else None,
        namespace=str(context.get("namespace") or "default"),
    )


def _entry(path: Path, document: dict[str, Any], plural: str, name: str, kind: str) -> dict[str, Any]:
    for entry in document.get(plural) or ():
        if isinstance(entry, dict) and entry.get("name") == name:
            return entry.get(kind) or {}
    raise ConfigError(f"{path}: names the {kind} {name!r}, which is not in its {plural}")


def _refuse_plugins(path: Path, cluster: dict[str, Any], user: dict[str, Any]) -> None:
    for name in _PLUGINS:
        if name in user:
            raise ConfigError(
                f"{path}: log-in by {name!r} is not supported yet; use a token or a client certificate "
                "(`kubectl create token ACCOUNT` makes one)"
            )
    if "proxy-url" in cluster:
        raise ConfigError(
            f"{path}: 'proxy-url' is not supported yet; use a server address that is reached directly"
        )


def _tls(path: Path, cluster: dict[str, Any], user: dict[str, Any]) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(
            cafile=_file(path, cluster, "certificate-authority"),
            cadata=_inline(cluster, "certificate-authority-data"),
        )
        if cluster.get("insecure-skip-tls-verify"):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        _load_client_certificate(context, path, user)
    except (OSError, ssl.SSLError, binascii.Error, ValueError) as error:
        raise ConfigError(f"{path}: a certificate or key cannot be used: {error}") from error
    return context


def _load_client_certificate(context: ssl.SSLContext, path: Path, user: dict[str, Any]) -> None:
    certificate, key = _file(path, user, "client-certificate"), _file(path, user, "client-key")
    if certificate and key:
        context.load_cert_chain(certificate, key)
        return
    inline = (_inline(user, "client-certificate-data"), _inline(user, "client-key-data"))
    if all(inline):
        # Python's ssl reads keys only by name; an anonymous file in memory never touches a disk.
        descriptor = os.memfd_create("client-certificate", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, "\n".join(part or "" for part in inline).encode())
            context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)


def _file(path: Path, section: dict[str, Any], name: str) -> str | None:
    """Paths in a kubeconfig are relative to the file itself."""
    return str(path.parent / section[name]) if section.get(name) else None


def _inline(section: dict[str, Any], name: str) -> str | None:
    return base64.b64decode(section[name]).decode() if section.get(name) else None
