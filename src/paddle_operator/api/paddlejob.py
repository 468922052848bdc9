"""PaddleJob: what a user writes under ``batch.paddlepaddle.org/v1`` and what we answer in its status.

These structs are the one source of the CRD (crd.py walks them), so descriptions and bounds stand here.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from .meta import Condition, KubeObject, ObjectMeta, Record
from .names import ANNOTATION_PORT, LAST_PORT, PADDLE_PORT, TRAINING_CONTAINER


class CleanPodPolicy(StrEnum):
    """When the pods of a finished job are deleted. Left empty: as OnCompletion."""

    UNSET = ""
    ALWAYS = "Always"
    NEVER = "Never"
    ON_FAILURE = "OnFailure"
    ON_COMPLETION = "OnCompletion"


class Intranet(StrEnum):
    """How pods reach each other. Left empty: as PodIP."""

    UNSET = ""
    POD_IP = "PodIP"
    SERVICE = "Service"
    HOST = "Host"
    HOST_NETWORK = "HostNetwork"


class Mode(StrEnum):
    PS = "PS"
    COLLECTIVE = "Collective"
    SINGLE = "Single"


class Phase(StrEnum):
    PENDING = "Pending"
    STARTING = "Starting"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    SUSPENDED = "Suspended"
    COMPLETED = "Completed"
    FAILED = "Failed"
    TERMINATING = "Terminating"


class Role(StrEnum):
    PS = "ps"
    WORKER = "worker"
    HETER = "heter"


PodTemplate = msgspec.Raw
"""A pod template as the user's own JSON: kept as bytes, copied into pods, read in few places."""


class RoleSpec(Record, frozen=True):
    template: Annotated[
        PodTemplate,
        Meta(
            description="The pod of this role. Training runs in the container named paddle, else the first."
        ),
    ]
    replicas: Annotated[
        int,
        Meta(
            ge=0,
            le=6000,
            description="How many pods of this role; 1 if left out. Changes only while the job is suspended.",
        ),
    ] = 1
    requests: (
        Annotated[int, Meta(ge=0, le=6000, description="Elastic jobs: the fewest pods to train with.")] | None
    ) = None
    limits: (
        Annotated[int, Meta(ge=0, le=6000, description="Elastic jobs: the most pods to train with.")] | None
    ) = None


class SchedulingPolicy(Record, frozen=True):
    min_available: Annotated[int, Meta(ge=1, description="How many pods must fit at once.")] | None = None
    queue: Annotated[str, Meta(max_length=253, description="The Volcano queue.")] = ""
    priority_class: Annotated[str, Meta(max_length=253, description="The PodGroup's priority class.")] = ""
    min_resources: Annotated[
        dict[str, int | str], Meta(description="Resources that must be free at once.")
    ] = msgspec.field(default_factory=dict)


class SampleSetRef(Record, frozen=True):
    name: Annotated[str, Meta(min_length=1, max_length=253, description="The SampleSet with the data.")]
    namespace: Annotated[str, Meta(max_length=63, description="Its namespace; must be the job's own.")] = ""
    mount_path: Annotated[str, Meta(max_length=4096, description="Where the pods see the data.")] = ""


MOST_SECONDS = 2**31 - 1


class RunPolicy(Record, frozen=True):
    """What becomes of a job when time passes, or things go wrong."""

    backoff_limit: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=1000,
                description="How often the job is restarted after failures of its own. Left out: 0, or 6 "
                "if a template says restartPolicy OnFailure, whose restarts count too.",
            ),
        ]
        | None
    ) = None
    max_disruptions: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=1000,
                description="How often the job is restarted when the cluster took a pod away (eviction, "
                "preemption, a lost node, a deleted pod). Left out: 3.",
            ),
        ]
        | None
    ) = None
    active_deadline_seconds: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=MOST_SECONDS,
                description="The job fails if it has not ended so long after it first ran, restarts "
                "included; counted anew after a suspension.",
            ),
        ]
        | None
    ) = None
    start_deadline_seconds: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=MOST_SECONDS,
                description="The job fails if not all of its pods run so long after they were made, or "
                "could have been: when the job was created, restarted or resumed.",
            ),
        ]
        | None
    ) = None
    ttl_seconds_after_finished: (
        Annotated[
            int, Meta(ge=0, le=MOST_SECONDS, description="The job is deleted so long after it has ended.")
        ]
        | None
    ) = None
    force_delete_after_seconds: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=MOST_SECONDS,
                description="A pod that should have been gone for so long (its node does not answer) is "
                "deleted by force. Left out: never, because its processes may still run.",
            ),
        ]
        | None
    ) = None
    suspend: Annotated[
        bool, Meta(description="true: the pods are deleted, and made anew when it is false again.")
    ] = False


NO_RUN_POLICY = RunPolicy()


class PaddleJobSpec(Record, frozen=True):
    worker: Annotated[RoleSpec, Meta(description="The trainers; at least one.")]
    clean_pod_policy: Annotated[
        CleanPodPolicy,
        Meta(description="When the pods of a finished job are deleted. Empty: as OnCompletion."),
    ] = CleanPodPolicy.UNSET
    clean_policy: Annotated[
        CleanPodPolicy, Meta(description="An older spelling of cleanPodPolicy; used if that is empty.")
    ] = CleanPodPolicy.UNSET
    intranet: Annotated[Intranet, Meta(description="How pods reach each other. Empty: as PodIP.")] = (
        Intranet.UNSET
    )
    with_gloo: (
        Annotated[
            int, Meta(ge=0, le=2, description="gloo in PS mode: 0 none, 1 workers, 2 workers and servers.")
        ]
        | None
    ) = None
    ps: Annotated[RoleSpec | None, Meta(description="The parameter servers; any make this a PS job.")] = None
    heter: Annotated[RoleSpec | None, Meta(description="Heterogeneous trainers.")] = None
    elastic: Annotated[int, Meta(ge=0, le=1, description="1: the number of workers may change.")] | None = (
        None
    )
    scheduling_policy: Annotated[SchedulingPolicy | None, Meta(description="Gang scheduling.")] = None
    sample_set_ref: Annotated[SampleSetRef | None, Meta(description="Cached training data.")] = None
    run_policy: Annotated[
        RunPolicy | None, Meta(description="Restarts, deadlines, suspension, and when to tidy up.")
    ] = None

    @property
    def mode(self) -> Mode:
        if self.ps is not None and self.ps.replicas > 0:
            return Mode.PS
        return Mode.COLLECTIVE if self.worker.replicas > 1 else Mode.SINGLE

    @property
    def effective_clean_pod_policy(self) -> CleanPodPolicy:
        return self.clean_pod_policy or self.clean_policy or CleanPodPolicy.ON_COMPLETION

    @property
    def effective_intranet(self) -> Intranet:
        """The network mode with the two spellings of the host network made one."""
        if self.intranet is Intranet.HOST_NETWORK:
            return Intranet.HOST
        return self.intranet or Intranet.POD_IP


class PodReference(Record, frozen=True):
    kind: Annotated[str, Meta(description="Pod.")] = ""
    name: Annotated[str, Meta(description="The name of the pod.")] = ""
    uid: Annotated[str, Meta(description="Tells it from namesakes of other times.")] = ""


class RoleStatus(Record, frozen=True):
    pending: Annotated[int, Meta(description="Pods that wait for a node or for their containers.")] = 0
    starting: Annotated[int, Meta(description="Pods that run but are not ready.")] = 0
    running: Annotated[int, Meta(description="Pods that run.")] = 0
    failed: Annotated[int, Meta(description="Pods that ended with an error.")] = 0
    succeeded: Annotated[int, Meta(description="Pods that ended well.")] = 0
    unknown: Annotated[int, Meta(description="Pods whose node does not answer.")] = 0
    replicas: Annotated[int, Meta(description="Pods that there are.")] = 0
    restarts: Annotated[int, Meta(description="How often containers were restarted in place.")] = 0
    succeeded_ranks: Annotated[
        str, Meta(max_length=65536, description="Which ended well, also if their pods are gone: 0-3,7.")
    ] = ""
    refs: Annotated[tuple[PodReference, ...], Meta(description="The pods themselves.")] = ()


class Failure(Record, frozen=True):
    """The pod that failed first: the place to look at, and what to do."""

    role: Annotated[str, Meta(description="The role of the pod.")] = ""
    rank: Annotated[int | None, Meta(description="The index of the pod in its role.")] = None
    pod: Annotated[str, Meta(description="The name of the pod.")] = ""
    node: Annotated[str, Meta(description="Where it ran.")] = ""
    container: Annotated[str, Meta(description="The container that ended.")] = ""
    exit_code: Annotated[int | None, Meta(description="How it ended.")] = None
    local_rank: Annotated[
        int | None,
        Meta(
            description="Which trainer of the pod it was, if Paddle's launcher or its peers have named one.",
        ),
    ] = None
    log: Annotated[str, Meta(description="The log of that trainer, inside the pod: log/workerlog.1.")] = ""
    reason: Annotated[str, Meta(description="One word: Error, OOMKilled, Evicted, PodLost...")] = ""
    kind: Annotated[
        str,
        Meta(description="code, OOM, node, preempted, image, config, rendezvous or victim."),
    ] = msgspec.field(name="class", default="")
    message: Annotated[str, Meta(description="What happened, in one sentence.")] = ""
    next_step: Annotated[str, Meta(description="What to do about it.")] = ""
    victims: Annotated[
        str, Meta(max_length=65536, description="Who only failed because of it: worker 0-3,7.")
    ] = ""
    attempt: Annotated[int, Meta(description="The try in which it happened, from 0.")] = 0


class PaddleJobStatus(Record, frozen=True):
    phase: Annotated[str, Meta(description="Where the job is in its life.")] = ""
    mode: Annotated[str, Meta(description="PS, Collective or Single.")] = ""
    ps: Annotated[RoleStatus | None, Meta(description="The parameter servers.")] = None
    worker: Annotated[RoleStatus | None, Meta(description="The trainers.")] = None
    heter: Annotated[RoleStatus | None, Meta(description="The heterogeneous trainers.")] = None
    start_time: Annotated[datetime | None, Meta(description="When all pods first ran.")] = None
    completion_time: Annotated[datetime | None, Meta(description="When the job ended.")] = None
    observed_generation: Annotated[int, Meta(description="The spec that this status speaks of.")] = 0
    attempt: Annotated[int, Meta(description="Which try this is, from 0.")] = 0
    attempt_time: Annotated[
        datetime | None, Meta(description="When this try began; empty: with the job itself.")
    ] = None
    resume_time: Annotated[
        datetime | None, Meta(description="When the job was last resumed after a suspension.")
    ] = None
    restarts: Annotated[int, Meta(description="How often the whole job was restarted.")] = 0
    failures: Annotated[
        int, Meta(description="How many tries, or restarts in place, failed by themselves: backoffLimit.")
    ] = 0
    disruptions: Annotated[
        int, Meta(description="How many tries the cluster put an end to: maxDisruptions.")
    ] = 0
    host_port: Annotated[
        int, Meta(description="On the host network: the first of the job's ports, 20 for each pod.")
    ] = 0
    conditions: Annotated[tuple[Condition, ...], Meta(description="What holds, and why.")] = ()
    failure: Annotated[Failure | None, Meta(description="Which pod failed first.")] = None

    @property
    def finished(self) -> bool:
        return self.phase in {Phase.COMPLETED, Phase.FAILED}


class PaddleJob(KubeObject, frozen=True):
    spec: PaddleJobSpec
    status: PaddleJobStatus = PaddleJobStatus()

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def run_policy(self) -> RunPolicy:
        return self.spec.run_policy or NO_RUN_POLICY

    @property
    def port(self) -> int:
        """Of pods that are yet to be made; those that exist say themselves what they were told."""
        return port_in(self.metadata)

    @property
    def on_host_network(self) -> bool:
        return self.spec.effective_intranet is Intranet.HOST

    @property
    def found_by_name(self) -> bool:
        """Peers find each other by names that are known before any pod exists."""
        return self.spec.effective_intranet is Intranet.SERVICE

    def service_host(self, pod: str) -> str:
        """The name by which peers find a pod through its service.

        Paddle's launcher takes a name for an address only if there is a dot in it. A parameter server binds
        its own name, which the pod's hosts file has without dots at once, and the cluster's DNS only after a
        while.
        """
        return pod if self.spec.mode is Mode.PS else f"{pod}.{self.metadata.namespace}.svc"

    @property
    def roles(self) -> dict[Role, RoleSpec]:
        """The roles that have pods, servers first: the order in which pods are created."""
        declared = {Role.PS: self.spec.ps, Role.WORKER: self.spec.worker, Role.HETER: self.spec.heter}
        return {role: spec for role, spec in declared.items() if spec is not None and spec.replicas > 0}


def port_in(metadata: ObjectMeta) -> int:
    written = metadata.annotations.get(ANNOTATION_PORT, "")
    return int(written) if is_port(written) else PADDLE_PORT


def is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= LAST_PORT


def training_container_of(pod: Any) -> dict[str, Any]:
    """The container named paddle, else the first; empty if there is none."""
    containers = [one for one in (pod or {}).get("containers") or () if isinstance(one, dict)]
    named = [one for one in containers if one.get("name") == TRAINING_CONTAINER]
    return next(iter([*named, *containers]), {})


def read_template(template: PodTemplate) -> dict[str, Any]:
    """A fresh copy of a pod template, to be changed at will; empty if it is no object at all."""
    decoded = msgspec.json.decode(template)
    return decoded if isinstance(decoded, dict) else {}
