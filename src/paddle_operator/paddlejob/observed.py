"""Everything that a decision about one PaddleJob may look at."""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from paddle_operator.api.core import ConfigMap, Pod
from paddle_operator.api.names import TRAINING_CONTAINER, pod_name
from paddle_operator.api.paddlejob import PaddleJob, Role, read_template, training_container_of
from paddle_operator.plan import Refusal

from . import ranks
from .addresses import ipv4_address
from .verdicts import Verdict, has_started, judge


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

    @cached_property
    def verdicts(self) -> dict[str, Verdict]:
        """Where each pod is. That one ended well is written in the status, and holds for good."""
        seen = {name: judge(pod, self.training_container(name)) for name, pod in self.own.items()}
        return seen | dict.fromkeys(self._succeeded_before, Verdict.SUCCEEDED)

    @cached_property
    def started(self) -> frozenset[str]:
        """The pods whose training has begun: they have read the list of peers."""
        return frozenset(
            name for name, pod in self.own.items() if has_started(pod, self.training_container(name))
        )

    @cached_property
    def addresses(self) -> dict[str, str]:
        """Where peers find each of our pods; empty as long as it has no address that they can use."""
        return {name: ipv4_address(pod) for name, pod in self.own.items()}

    @cached_property
    def missing(self) -> dict[str, Slot]:
        """The slots that have neither a pod nor a record of one that ended well."""
        return {name: slot for name, slot in self.slots.items() if name not in self.verdicts}

    @cached_property
    def config_map_is_due(self) -> bool:
        """It is not there, somebody waits for it, and every pod has an address that will last."""
        if self.own_config_map is not None or len(self.own) < len(self.slots):
            return False
        waited_for = len(self.started) < len(self.own)
        lasting = (self.addresses[name] and not pod.metadata.terminating for name, pod in self.own.items())
        return waited_for and all(lasting)

    @property
    def peers_are_told(self) -> bool:
        """Somebody knows the addresses, or may: from here on no pod can be replaced by another."""
        told = self.own_config_map is not None or self.job.status.start_time is not None
        return told or bool(self.started) or bool(self._succeeded_before)

    @cached_property
    def _succeeded_before(self) -> frozenset[str]:
        statuses = {role: getattr(self.job.status, role) for role in self.job.roles}
        return frozenset(
            pod_name(self.job.metadata.name, role, rank)
            for role, status in statuses.items()
            if status is not None
            for rank in ranks.from_text(status.succeeded_ranks, below=self.job.roles[role].replicas)
        )

    def training_container(self, name: str) -> str:
        """By the template; but an edit of the template does not reach a live pod."""
        wanted = self._training_containers[self.slots[name].role]
        live = [container.name for container in self.own[name].spec.containers]
        if wanted in live or not live:
            return wanted
        return TRAINING_CONTAINER if TRAINING_CONTAINER in live else live[0]

    @cached_property
    def _training_containers(self) -> dict[Role, str]:
        """By the template: what others have put into the live pod before it does not train."""
        return {
            role: training_container_of(read_template(spec.template).get("spec")).get("name", "")
            for role, spec in self.job.roles.items()
        }
