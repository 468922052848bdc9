"""Pods, config maps and the like, cut down to the fields that we read (4 KB a pod instead of 44)."""

from datetime import datetime

import msgspec

from .meta import KubeObject, Record

ENDED_PHASES = frozenset({"Succeeded", "Failed"})
"""Of a pod that has no containers any more, and will have none."""


class Waiting(Record, frozen=True):
    reason: str = ""
    message: str = ""


class Running(Record, frozen=True):
    started_at: datetime | None = None


class Terminated(Record, frozen=True):
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    """The end of the log, where the template asks for that. It may hold secrets: searched, never shown."""
    finished_at: datetime | None = None


class ContainerState(Record, frozen=True):
    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Record, frozen=True):
    name: str
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    """How it ended before it was restarted in place."""

    @property
    def has_started(self) -> bool:
        return self.state.running is not None or self.state.terminated is not None or self.restart_count > 0


class PodAddress(Record, frozen=True):
    ip: str = ""


class ContainerName(Record, frozen=True):
    name: str


class PodSpec(Record, frozen=True):
    node_name: str = ""
    restart_policy: str = ""
    active_deadline_seconds: int | None = None
    containers: tuple[ContainerName, ...] = ()


class PodCondition(Record, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class PodStatus(Record, frozen=True):
    phase: str = "Pending"
    reason: str = ""
    start_time: datetime | None = None
    """When its node took it up."""
    conditions: tuple[PodCondition, ...] = ()
    pod_ip: str = msgspec.field(name="podIP", default="")
    pod_ips: tuple[PodAddress, ...] = msgspec.field(name="podIPs", default=())
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(KubeObject, frozen=True):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    def condition(self, kind: str) -> PodCondition | None:
        for one in self.status.conditions:
            if one.type == kind:
                return one
        return None


class Service(KubeObject, frozen=True):
    """A service without its spec: we made it, and never change it."""


class ConfigMap(KubeObject, frozen=True):
    """A config map without its data: whose it is, and of which attempt, is all that we ask."""


class LeaseSpec(Record, frozen=True):
    holder_identity: str | None = None
    """Nobody, if it was given back."""
    lease_duration_seconds: int | None = None
    renew_time: datetime | None = None
    lease_transitions: int | None = None


class Lease(KubeObject, frozen=True):
    """Which of several managers leads, and until when."""

    spec: LeaseSpec = LeaseSpec()
