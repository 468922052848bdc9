"""Everything that a decision about one PaddleJob may look at."""

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import msgspec

from paddle_operator.api.core import ConfigMap, ContainerStatus, Pod, Service, Terminated
from paddle_operator.api.meta import find_condition
from paddle_operator.api.names import (
    ANNOTATION_NUDGE,
    ANNOTATION_PEERS,
    CREATED,
    LABEL_ATTEMPT,
    LABEL_RES_TYPE,
    TRAINING_CONTAINER,
    pod_name,
)
from paddle_operator.api.paddlejob import (
    PaddleJob,
    PaddleJobStatus,
    Phase,
    Role,
    read_template,
    training_container_of,
)
from paddle_operator.plan import Refusal

from . import ranks
from .endpoints import Slot, fingerprint, ipv4_address, size, slots_of
from .labels import attempt_of
from .verdicts import Verdict, has_started, judge, training_status


@dataclass(frozen=True)
class Settings:
    """What the manager was told when it was started."""

    init_image: str = ""
    scheduling: str = ""
    """The scheduler that is to place the pods of a job together, or not at all."""


NO_SETTINGS = Settings()
# Times are stored in whole seconds, cut: who counts from one of them adds this, so as never to be early.
RESOLUTION = timedelta(seconds=1)


@dataclass(frozen=True)
class Observed:
    job: PaddleJob
    now: datetime
    pods: tuple[Pod, ...] = ()
    """Every pod that names a PaddleJob of this name as its owner: ours, and those of a dead namesake."""
    services: tuple[Service, ...] = ()
    """Every service of ours that names a PaddleJob of this name as its owner."""
    config_map: ConfigMap | None = None
    """The config map with the job's name, whoever made it."""
    free_host_port: int = 0
    """Where a Host job that has no ports yet can have them; 0: nowhere."""
    ports_are_of: str = ""
    """An older live job that has some of the ports of this one: two managers gave them out at once."""
    settings: Settings = NO_SETTINGS
    refusals: tuple[Refusal, ...] = ()
    """What the server turned down in the pass before."""
    status_written_at: datetime | None = None
    missing_config_maps: tuple[str, ...] = ()
    """Of those that templates mount, the ones that nobody has made; asked for while pods do not start."""

    def with_status(self, status: PaddleJobStatus) -> "Observed":
        """The same world, once this is written."""
        return replace(self, job=msgspec.structs.replace(self.job, status=status))

    @property
    def stamp(self) -> datetime:
        """The time for a status: Kubernetes writes whole seconds."""
        return self.now.replace(microsecond=0)

    @cached_property
    def slots(self) -> dict[str, Slot]:
        """Pod name to slot, servers first: the order in which pods are created."""
        return slots_of(self.job)

    @cached_property
    def _of_job(self) -> dict[str, Pod]:
        """Of two pictures of one pod the later one is the newer."""
        return {pod.metadata.name: pod for pod in self.pods if pod.metadata.controlled_by(self.job.uid)}

    def attempt_of(self, pod: Pod) -> int:
        """By its label; if somebody took that off, by the status, which lists the pods of this try."""
        is_listed = LABEL_ATTEMPT not in pod.metadata.labels and pod.metadata.uid in self._listed
        return self.job.status.attempt if is_listed else attempt_of(pod.metadata)

    @cached_property
    def _listed(self) -> frozenset[str]:
        statuses = [getattr(self.job.status, role) for role in Role]
        return frozenset(one.uid for status in statuses if status is not None for one in status.refs)

    @property
    def all_pods(self) -> tuple[Pod, ...]:
        """Of this job, in whatever try."""
        return tuple(self._of_job.values())

    @cached_property
    def own(self) -> dict[str, Pod]:
        """Our pods of this try, by name. Whose a pod is, the owner's UID says; labels are not asked.

        But for the try that it belongs to: pods of an earlier one are on their way out and never counted.
        """
        return {
            name: pod
            for name, pod in self._of_job.items()
            if name in self.slots and self.attempt_of(pod) == self.job.status.attempt
        }

    @cached_property
    def leftovers(self) -> tuple[Pod | ConfigMap | Service, ...]:
        """Of earlier tries; and a list of peers that is wrong, as long as nobody has begun with it."""
        others = [pod for name, pod in self._of_job.items() if name not in self.own]
        pods = [pod for pod in others if self._had_slot(pod)]
        services = [one for one in self.own_services if one.metadata.name not in self.slots]
        found = self.config_map
        is_ours = found is not None and found.metadata.controlled_by(self.job.uid)
        is_old = is_ours and self.own_config_map is None
        is_wrong = not self.started and self.tells_wrong_peers
        return (*pods, *services, *((found,) if found is not None and (is_old or is_wrong) else ()))

    @property
    def contradicts_the_job(self) -> bool:
        """Something of this very try is none of its: the job may have been resized, and we have not heard."""
        return any(
            self.attempt_of(one) == self.job.status.attempt
            if isinstance(one, Pod)
            else isinstance(one, Service) or attempt_of(one.metadata) == self.job.status.attempt
            for one in self.leftovers
            if not one.metadata.terminating
        )

    def _had_slot(self, pod: Pod) -> bool:
        """One that names the job as its owner, but fills no slot that it ever had, is not ours to delete."""
        if pod.metadata.name in self.slots:
            return True
        slot = rf"{re.escape(self.job.metadata.name)}-({'|'.join(Role)})-\d+"
        is_marked = bool({LABEL_ATTEMPT, LABEL_RES_TYPE} & pod.metadata.labels.keys())
        return is_marked and re.fullmatch(slot, pod.metadata.name) is not None

    @cached_property
    def own_services(self) -> tuple[Service, ...]:
        return tuple(one for one in self.services if one.metadata.controlled_by(self.job.uid))

    @cached_property
    def namesakes(self) -> tuple[Pod | Service, ...]:
        """What an earlier job of this name has left behind."""
        children: tuple[Pod | Service, ...] = (*self.pods, *self.services)
        return tuple(one for one in children if not one.metadata.controlled_by(self.job.uid))

    @property
    def own_config_map(self) -> ConfigMap | None:
        """Ours, and of this try."""
        found = self.config_map
        if found is None or not found.metadata.controlled_by(self.job.uid):
            return None
        return found if attempt_of(found.metadata) == self.job.status.attempt else None

    @property
    def _told_peers(self) -> str:
        """What the map of this try lists, in short; empty if there is none, or if it is the Go operator's."""
        found = self.own_config_map
        return found.metadata.annotations.get(ANNOTATION_PEERS, "") if found is not None else ""

    @property
    def was_resized(self) -> bool:
        """The list is of another number of peers: the job was suspended and resumed, or will be, unseen."""
        return bool(self._told_peers) and self._told_peers.partition(" ")[0] != size(self.job)

    @cached_property
    def tells_wrong_peers(self) -> bool:
        """The map of this try lists other hosts than there are: a pod has got another address since, say."""
        if not self._told_peers:
            return False
        if self.job.found_by_name:
            return self._told_peers != fingerprint(self.job, map(self.job.service_host, self.slots))
        hosts = [self.addresses.get(name, "") for name in self.slots]
        return all(hosts) and self._told_peers != fingerprint(self.job, hosts)  # else not known, or not yet

    @cached_property
    def reads_an_old_list(self) -> bool:
        """Somebody has begun, and there is no list of this try: it may have read one of an earlier try.

        Another leader was late and made that anew; or somebody has deleted the right one, and that cannot be
        told apart. Whoever was woken has its own list. Where names tell who the peers are, all are the same.
        """
        if self.job.found_by_name or not self.job.status.attempt or self.own_config_map is not None:
            return False
        begun = [self.own[name].metadata.annotations for name in self.started]
        is_well = Verdict.SUCCEEDED in self.verdicts.values()
        return not is_well and any(ANNOTATION_NUDGE not in annotations for annotations in begun)

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
        """It is not there, somebody waits for it, and every peer's address is known and will last."""
        if self.own_config_map is not None:
            return False
        if self.job.found_by_name:
            return bool(self.missing) or len(self.started) < len(self.own)
        if len(self.own) < len(self.slots) or len(self.started) == len(self.own):
            return False
        return all(self.addresses[name] and not pod.metadata.terminating for name, pod in self.own.items())

    @property
    def peers_are_told(self) -> bool:
        """Somebody has met its peers, or may have: from here on no pod can be replaced by another."""
        begun = bool(self.started) or bool(self._succeeded_before)
        if self.job.status.phase == Phase.RUNNING:
            return True
        if self.job.found_by_name:
            # The first pods may have begun before the last were made, and wait for these by name.
            return begun and self._all_were_created
        return begun or self.own_config_map is not None

    @property
    def all_were_there(self) -> bool:
        """Every pod of this try has existed: one that is missing now is lost, not late."""
        if self._all_were_created or self.job.status.phase == Phase.RUNNING:
            return True
        # A list of addresses is made when all have one; and nobody trains without it.
        trains = any((one := self.training_status(name)) and one.has_started for name in self.own)
        return not self.job.found_by_name and (trains or self.own_config_map is not None)

    @property
    def _all_were_created(self) -> bool:
        """That is written only after it was done."""
        created = find_condition(self.job.status.conditions, CREATED)
        return created is not None and created.status == "True"

    @cached_property
    def all_run(self) -> bool:
        """Or have run, and ended well."""
        active = [one for one in self.verdicts.values() if one in {Verdict.RUNNING, Verdict.SUCCEEDED}]
        return bool(self.slots) and len(active) == len(self.slots)

    @cached_property
    def restarts_in_place(self) -> dict[str, int]:
        """How often containers of each pod were restarted by their kubelet, where the template asks for it.

        Side-cars among the init containers are always restarted: that says nothing of training.
        """
        return {
            name: sum(
                one.restart_count
                for one in (*pod.status.init_container_statuses, *pod.status.container_statuses)
                if one.restart_count and one.name not in self._sidecars[self.slots[name].role]
            )
            if pod.spec.restart_policy == "OnFailure"
            else 0
            for name, pod in self.own.items()
        }

    @cached_property
    def _sidecars(self) -> dict[Role, frozenset[str]]:
        initial = {role: pod.get("initContainers") or () for role, pod in self.templates.items()}
        return {
            role: frozenset(one.get("name", "") for one in found if one.get("restartPolicy") == "Always")
            for role, found in initial.items()
        }

    @cached_property
    def templates(self) -> dict[Role, dict[str, Any]]:
        """The pods of each role as their user wrote them; to be read only."""
        return {role: read_template(spec.template).get("spec") or {} for role, spec in self.job.roles.items()}

    def container_in_template(self, role: Role, name: str) -> dict[str, Any]:
        pod = self.templates[role]
        containers = [*(pod.get("initContainers") or ()), *(pod.get("containers") or ())]
        return next((one for one in containers if one.get("name") == name), {})

    @cached_property
    def is_trained(self) -> bool:
        """Every worker ended well. Servers do not count: they serve until they are stopped.

        Of fewer workers than began, that says nothing.
        """
        if self.was_resized:
            return False
        return bool(self.workers) and all(
            self.verdicts.get(name) is Verdict.SUCCEEDED for name in self.workers
        )

    @property
    def workers(self) -> tuple[str, ...]:
        """The pods that decide how the job ends."""
        return tuple(name for name, slot in self.slots.items() if slot.role is not Role.PS)

    @cached_property
    def _succeeded_before(self) -> frozenset[str]:
        statuses = {role: getattr(self.job.status, role) for role in self.job.roles}
        return frozenset(
            pod_name(self.job.metadata.name, role, rank)
            for role, status in statuses.items()
            if status is not None
            for rank in ranks.from_text(status.succeeded_ranks, below=self.job.roles[role].replicas)
        )

    def training_status(self, name: str) -> ContainerStatus | None:
        """None, too, if the pod is gone."""
        pod = self.own.get(name)
        return training_status(pod, self.training_container(name)) if pod is not None else None

    def training_end(self, name: str) -> Terminated | None:
        """Of the run at hand: None while it runs, and if the pod is gone."""
        training = self.training_status(name)
        return training.state.terminated if training is not None else None

    def training_container(self, name: str) -> str:
        """By the template: what others have put into the live pod before it does not train.

        But an edit of the template does not reach a live pod.
        """
        return self._training_containers[name]

    @cached_property
    def _training_containers(self) -> dict[str, str]:
        wanted = {role: training_container_of(pod).get("name", "") for role, pod in self.templates.items()}
        return {name: _one_of(pod, wanted[self.slots[name].role]) for name, pod in self.own.items()}


def _one_of(pod: Pod, wanted: str) -> str:
    live = [container.name for container in pod.spec.containers]
    if wanted in live or not live:
        return wanted
    return TRAINING_CONTAINER if TRAINING_CONTAINER in live else live[0]
