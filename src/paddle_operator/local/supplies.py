"""What a pod may draw on besides its own text: config maps and secrets, by name."""

from base64 import b64decode
from dataclasses import dataclass, field

from paddle_operator.api.meta import Key, Manifest
from paddle_operator.api.resources import CONFIG_MAPS
from paddle_operator.memory.cluster import MemoryCluster

NOT_CONFIGURED = "CreateContainerConfigError"


class NotYet(Exception):  # noqa: N818 (a state, not a fault)
    """The container cannot be made now; it is tried again when something has changed."""

    def __init__(self, message: str, reason: str = NOT_CONFIGURED) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass
class Supplies:
    memory: MemoryCluster
    secrets: dict[Key, Manifest] = field(default_factory=dict)
    """Those of the user's file: the cluster in memory keeps none, so that none can leak from it."""

    def config_map(self, key: Key, *, binary: bool = True) -> dict[str, bytes] | None:
        found = self.memory.manifest(CONFIG_MAPS, key)
        return None if found is None else _decoded(found, plain="data", encoded="binaryData" * binary)

    def secret(self, key: Key) -> dict[str, bytes] | None:
        found = self.secrets.get(key)
        return None if found is None else _decoded(found, plain="stringData", encoded="data")

    def demand(
        self, kind: str, key: Key, *, optional: bool, binary: bool = True, reason: str = NOT_CONFIGURED
    ) -> dict[str, bytes]:
        """The entries of a config map or secret; none if it may be missing.

        Variables know nothing of a config map's binaryData; to them ``binary`` is False.
        """
        found = self.config_map(key, binary=binary) if kind == "configmap" else self.secret(key)
        if found is None and not optional:
            raise NotYet(f'{kind} "{key.name}" not found', reason)
        return found or {}


def _decoded(document: Manifest, *, plain: str, encoded: str) -> dict[str, bytes]:
    binary = {name: b64decode(text) for name, text in (document.get(encoded) or {}).items()}
    return binary | {name: text.encode() for name, text in (document.get(plain) or {}).items()}
