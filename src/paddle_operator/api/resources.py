"""The kinds that we talk about: where the server keeps them and the struct that they decode to."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from .core import ConfigMap, Lease, Pod, Service
from .meta import Key, KubeObject
from .names import GROUP
from .paddlejob import PaddleJob

T_co = TypeVar("T_co", bound=KubeObject, covariant=True)


@dataclass(frozen=True)
class Resource(Generic[T_co]):
    group: str
    version: str
    plural: str
    kind: str
    type: type[T_co]

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return self.plural


AnyResource = Resource[KubeObject]


@dataclass(frozen=True)
class Target:
    """One object that exists, by UID: a namesake made later is not meant."""

    resource: AnyResource
    key: Key
    uid: str
    resource_version: str = ""

    @classmethod
    def of(cls, resource: AnyResource, thing: KubeObject) -> "Target":
        meta = thing.metadata
        return cls(resource, meta.key, meta.uid, meta.resource_version)

    def __str__(self) -> str:
        return f"{self.resource.kind} {self.key.name}"


PADDLE_JOBS = Resource(GROUP, "v1", "paddlejobs", "PaddleJob", PaddleJob)
PODS = Resource("", "v1", "pods", "Pod", Pod)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", ConfigMap)
SERVICES = Resource("", "v1", "services", "Service", Service)
EVENTS = Resource("", "v1", "events", "Event", KubeObject)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", Lease)
