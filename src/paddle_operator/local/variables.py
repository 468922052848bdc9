"""The environment of a container, resolved as a kubelet does it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from paddle_operator.api.meta import Key, Manifest
from paddle_operator.api.quantities import quantity, shown

from .supplies import NotYet, Supplies

_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")
KINDS = {"configMap": "ConfigMap", "secret": "Secret"}
_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")


@dataclass(frozen=True)
class Surroundings:
    """All that a container's variables may speak of."""

    pod: Manifest
    address: str
    node: str
    node_address: str
    capacity: Mapping[str, str]
    supplies: Supplies

    def key(self, name: str) -> Key:
        return Key(self.pod["metadata"]["namespace"], name)


def environment(container: Manifest, around: Surroundings) -> dict[str, str]:
    """What the YAML asks for, sources first, as Kubernetes orders it; NotYet while one is missing."""
    result: dict[str, str] = {}
    for source in container.get("envFrom") or ():
        result.update(_whole(source, around))
    for variable in container.get("env") or ():
        value = _value(variable, container, result, around)
        if value is not None:
            result[variable["name"]] = value
    return result


def expand(text: str, known: Mapping[str, str]) -> str:
    """Kubernetes' `$(NAME)`: an unknown name stays as it is written, `$$` is one `$`."""
    return _REFERENCE.sub(lambda found: "$" if found[1] is None else known.get(found[1], found[0]), text)


def _whole(source: Manifest, around: Surroundings) -> dict[str, str]:
    prefix = source.get("prefix", "")
    for kind in KINDS:
        if ref := source.get(f"{kind}Ref"):
            return {prefix + name: _text(name, entry) for name, entry in _entries(kind, ref, around).items()}
    return {}


def _value(
    variable: Manifest, container: Manifest, known: Mapping[str, str], around: Surroundings
) -> str | None:
    source = variable.get("valueFrom")
    if not source:
        return expand(variable.get("value") or "", known)
    if ref := source.get("fieldRef"):
        return _field(ref["fieldPath"], around)
    if ref := source.get("resourceFieldRef"):
        return _resource(ref, container, around)
    for kind in KINDS:
        if ref := source.get(f"{kind}KeyRef"):
            return _entry(kind, ref, around)
    return None


def _entry(kind: str, ref: Manifest, around: Surroundings) -> str | None:
    found = _entries(kind, ref, around).get(ref["key"])
    if found is None and not ref.get("optional", False):
        raise NotYet(f"couldn't find key {ref['key']} in {KINDS[kind]} {around.key(ref['name'])}")
    return None if found is None else _text(ref["key"], found)


def _entries(kind: str, ref: Manifest, around: Surroundings) -> dict[str, bytes]:
    optional = ref.get("optional", False)
    return around.supplies.demand(kind.lower(), around.key(ref["name"]), optional=optional, binary=False)


def _text(name: str, entry: bytes) -> str:
    try:
        return entry.decode()
    except UnicodeDecodeError:
        raise NotYet(
            f"key {name} is no UTF-8 text, and a variable holds nothing else; mount it",
            "CreateContainerError",
        ) from None


FIELDS: dict[str, Callable[[Surroundings], str]] = {
    "metadata.name": lambda around: around.pod["metadata"]["name"],
    "metadata.namespace": lambda around: around.pod["metadata"]["namespace"],
    "metadata.uid": lambda around: around.pod["metadata"]["uid"],
    "spec.nodeName": lambda around: around.node,
    "spec.serviceAccountName": lambda around: around.pod["spec"].get("serviceAccountName") or "default",
    "status.hostIP": lambda around: around.node_address,
    "status.hostIPs": lambda around: around.node_address,
    "status.podIP": lambda around: around.address,
    "status.podIPs": lambda around: around.address,
}
NO_FIELD = f"is no field that a pod can tell; known are {', '.join(FIELDS)}, and labels and annotations"


def is_field(path: str) -> bool:
    return path in FIELDS or _SUBSCRIPT.fullmatch(path) is not None


def _field(path: str, around: Surroundings) -> str:
    if match := _SUBSCRIPT.fullmatch(path):
        return str((around.pod["metadata"].get(match[1]) or {}).get(match[2], ""))
    if path not in FIELDS:
        raise NotYet(f"fieldRef: {path!r} {NO_FIELD}")
    return FIELDS[path](around)


def _resource(ref: Manifest, container: Manifest, around: Surroundings) -> str:
    """No limit, or 0, means the whole machine; a request that is not set is the limit, or none."""
    which, _, name = ref["resource"].partition(".")
    others = [*(around.pod["spec"].get("initContainers") or ()), *around.pod["spec"]["containers"]]
    whose = ref.get("containerName") or container["name"]
    asked = next((one for one in others if one["name"] == whose), None)
    if asked is None:
        raise NotYet(f"container {whose} not found")
    resources = asked.get("resources") or {}
    limit = quantity((resources.get("limits") or {}).get(name, 0))
    if which == "limits":
        found = limit or quantity(around.capacity.get(name, 0))
    else:
        request = (resources.get("requests") or {}).get(name)
        found = limit if request is None else quantity(request)
    return shown(found, quantity(ref.get("divisor") or 1) or 1)
