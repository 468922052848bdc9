"""Everything that a decision about one PaddleJob may look at."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from paddle_operator.api.core import ConfigMap, Pod
from paddle_operator.api.names import pod_name
from paddle_operator.api.paddlejob import PaddleJob, Role
from paddle_operator.plan import Refusal


class Slot(NamedTuple):
    """One place in the job: a role and a rank in it; the pod's name follows from it."""

    role: Role
    rank: int


@dataclass(frozen=True)
class Observed:
    job: PaddleJob
    now: datetime
    pods: tuple[Pod, ...] = ()
    """Every pod that names a PaddleJob of this name as its owner: ours, and those of a dead namesake."""
    config_map: ConfigMap | None = None
    """The config map with the job's name, whoever made it."""
    refusals: tuple[Refusal, ...] = ()
    """What the server turned down in the pass before."""
    status_written_at: datetime | None = None

    @property
    def stamp(self) -> datetime:
        """The time for a status: Kubernetes writes whole seconds."""
        return self.now.replace(microsecond=0)

    @cached_property
    def slots(self) -> dict[str, Slot]:
        """Pod name to slot, servers first: the order in which pods are created."""
        return {
            pod_name(self.job.metadata.name, role, rank): Slot(role, rank)
            for role, spec in self.job.roles.items()
            for rank in range(spec.replicas)
        }

    @cached_property
    def own(self) -> dict[str, Pod]:
        """Our pods by name. Whose a pod is, the owner's UID says; labels are not asked."""
        return {
            pod.metadata.name: pod
            for pod in self.pods
            if pod.metadata.name in self.slots and pod.metadata.controlled_by(self.job.uid)
        }

    @cached_property
    def namesakes(self) -> tuple[Pod, ...]:
        """Pods that an earlier job of this name has left behind."""
        return tuple(pod for pod in self.pods if not pod.metadata.controlled_by(self.job.uid))

    @property
    def own_config_map(self) -> ConfigMap | None:
        mine = self.config_map is not None and self.config_map.metadata.controlled_by(self.job.uid)
        return self.config_map if mine else None

    @property
    def missing(self) -> Iterator[tuple[str, Slot]]:
        return ((name, slot) for name, slot in self.slots.items() if name not in self.own)

    def pods_in_order(self) -> tuple[Pod, ...]:
        """Our pods in the order of their slots; only whole when none is missing."""
        return tuple(self.own[name] for name in self.slots if name in self.own)
