"""What the fake node reads of a pod, and what follows from it: its environment, its script. No I/O.

The structs hold only the fields that a fake kubelet acts upon; msgspec skips all others while it decodes.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from msgspec import Struct, field

UNSCHEDULABLE = "fake-node/unschedulable"
RUN_SECONDS = "fake-node/run-seconds"
EXIT_CODE = "fake-node/exit-code"
REASON = "fake-node/reason"
START_SECONDS = "fake-node/start-seconds"
TERMINATION_SECONDS = "fake-node/termination-seconds"

FINAL_PHASES = frozenset({"Succeeded", "Failed"})


class _Slim(Struct, frozen=True, rename="camel"):
    """A part of a Kubernetes object; fields that are not declared are skipped."""


class MapRef(_Slim, frozen=True):
    name: str = ""
    optional: bool | None = None


class MapKeyRef(_Slim, frozen=True):
    key: str
    name: str = ""
    optional: bool | None = None


class FieldRef(_Slim, frozen=True):
    field_path: str


class EnvSource(_Slim, frozen=True):
    field_ref: FieldRef | None = None
    config_map_key_ref: MapKeyRef | None = None


class EnvVar(_Slim, frozen=True):
    name: str
    value: str = ""
    value_from: EnvSource | None = None


class EnvFrom(_Slim, frozen=True):
    prefix: str = ""
    config_map_ref: MapRef | None = None


class Container(_Slim, frozen=True):
    name: str
    image: str = ""
    env: list[EnvVar] = []
    env_from: list[EnvFrom] = []


class PodSpec(_Slim, frozen=True):
    # Null, not absent, in the object that a bookmark carries.
    containers: list[Container] | None = None
    node_name: str = ""
    host_network: bool = False
    service_account_name: str = ""
    active_deadline_seconds: int | None = None
    termination_grace_period_seconds: int = 30


class PodStatus(_Slim, frozen=True):
    phase: str = ""
    pod_ip: str = field(default="", name="podIP")
    start_time: str = ""


class Meta(_Slim, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None


class KubeObject(_Slim, frozen=True):
    metadata: Meta

    @property
    def key(self) -> tuple[str, str]:
        return self.metadata.namespace, self.metadata.name


class Pod(KubeObject, frozen=True):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def containers(self) -> list[Container]:
        return self.spec.containers or []

    @property
    def is_being_deleted(self) -> bool:
        return self.metadata.deletion_timestamp is not None


class ConfigMap(KubeObject, frozen=True):
    data: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How the containers of one pod act, all alike.

    `start_seconds` pass before the first look at the config maps (sandbox, image); `run_seconds` count from
    the moment when the server took the phase Running. `reason` is Completed for 0 and Error for the rest,
    unless it is given. `termination_seconds` beyond the pod's grace period end in a kill, 137. A pod that is
    being deleted goes `cleanup_seconds` after its containers have ended, as a kubelet has volumes to unmount.
    """

    run_seconds: float = 0.2
    exit_code: int = 0
    reason: str | None = None
    start_seconds: float = 0.0
    termination_seconds: float = 0.0
    termination_exit_code: int = 143
    cleanup_seconds: float = 0.0
    runs_for_ever: bool = False


DEFAULT_BEHAVIOUR = Behaviour()


def behaviour_of_annotations(annotations: Mapping[str, str]) -> Behaviour:
    """The default, changed by the pod's annotations; `run-seconds: "inf"` runs until told to stop."""
    read: dict[str, tuple[str, type[float | int | str]]] = {
        RUN_SECONDS: ("run_seconds", float),
        EXIT_CODE: ("exit_code", int),
        REASON: ("reason", str),
        START_SECONDS: ("start_seconds", float),
        TERMINATION_SECONDS: ("termination_seconds", float),
    }
    changes: dict[str, Any] = {
        name: convert(annotations[key]) for key, (name, convert) in read.items() if key in annotations
    }
    return replace(DEFAULT_BEHAVIOUR, **changes) if changes else DEFAULT_BEHAVIOUR


def fingerprint(pod: Pod) -> tuple[object, ...]:
    """What makes a kubelet look at a pod again when it changes; our own status patches leave it equal."""
    return (
        pod.metadata.labels,
        pod.metadata.annotations,
        pod.spec.active_deadline_seconds,
        tuple(container.image for container in pod.containers),
    )


class ConfigError(Exception):
    """A container cannot be made yet; the text is the kubelet's."""


def maps_of(container: Container) -> set[str]:
    """Names of all config maps that the container's environment mentions, optional ones too."""
    names = {source.config_map_ref.name for source in container.env_from if source.config_map_ref}
    for variable in container.env:
        if variable.value_from and variable.value_from.config_map_key_ref:
            names.add(variable.value_from.config_map_key_ref.name)
    return names


@dataclass(frozen=True, slots=True)
class Downward:
    """What a container may ask about its own pod by fieldRef."""

    pod: Pod
    node: str
    pod_ip: str
    host_ip: str

    def value(self, path: str) -> str:
        meta = self.pod.metadata
        if match := re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path):
            source = meta.labels if match[1] == "labels" else meta.annotations
            return source.get(match[2], "")
        return {
            "metadata.name": meta.name,
            "metadata.namespace": meta.namespace,
            "metadata.uid": meta.uid,
            "spec.nodeName": self.node,
            "spec.serviceAccountName": self.pod.spec.service_account_name,
            "status.hostIP": self.host_ip,
            "status.hostIPs": self.host_ip,
            "status.podIP": self.pod_ip,
            "status.podIPs": self.pod_ip,
        }[path]


def environment(
    container: Container, downward: Downward, maps: Mapping[str, Mapping[str, str]]
) -> dict[str, str]:
    """The variables that a kubelet would give the container; ConfigError while a config map is missing.

    Not played: variables of services, secrets and resources.
    """
    result: dict[str, str] = {}
    for source in container.env_from:
        if (ref := source.config_map_ref) is None:
            continue
        if ref.name in maps:
            result.update({source.prefix + key: value for key, value in maps[ref.name].items()})
        elif not ref.optional:
            raise ConfigError(f'configmap "{ref.name}" not found')
    for variable in container.env:
        value = _value(variable, result, downward, maps)
        if value is not None:
            result[variable.name] = value
    return result


def _value(
    variable: EnvVar, known: Mapping[str, str], downward: Downward, maps: Mapping[str, Mapping[str, str]]
) -> str | None:
    source = variable.value_from
    if variable.value or source is None:
        return expand(variable.value, known)
    if source.field_ref is not None:
        return downward.value(source.field_ref.field_path)
    if (ref := source.config_map_key_ref) is None:
        return None
    if ref.name in maps and ref.key in maps[ref.name]:
        return maps[ref.name][ref.key]
    if ref.optional:
        return None
    if ref.name in maps:
        raise ConfigError(
            f"couldn't find key {ref.key} in ConfigMap {downward.pod.metadata.namespace}/{ref.name}"
        )
    raise ConfigError(f'configmap "{ref.name}" not found')


_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")


def expand(text: str, known: Mapping[str, str]) -> str:
    """Kubernetes' `$(NAME)`: an unknown name stays as it is written, `$$` is one `$`."""
    if "$" not in text:
        return text
    return _REFERENCE.sub(lambda m: "$" if m[1] is None else known.get(m[1], m[0]), text)
