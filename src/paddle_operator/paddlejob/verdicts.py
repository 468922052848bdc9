"""How one pod is judged. The training container alone counts: a side-car neither starts nor ends a worker."""

from enum import StrEnum
from typing import NamedTuple

from paddle_operator.api.core import ENDED_PHASES, ContainerStatus, Pod

DISRUPTED = "DisruptionTarget"
"""The condition of a pod that the cluster is about to end, or has ended."""


class Verdict(StrEnum):
    """Where one pod is; the values are the counters of the status."""

    PENDING = "pending"
    STARTING = "starting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Question(NamedTuple):
    """Whom to ask how they are before a job is judged, and which answers speak for it."""

    pods: tuple[str, ...] = ()
    helps: frozenset[Verdict] = frozenset()


def judge(pod: Pod, training_container: str) -> Verdict:
    training = training_status(pod, training_container)
    end = training.state.terminated if training is not None else None
    if disruption(pod) and (end is not None or pod.status.phase in ENDED_PHASES):
        # It was told to end, and did so politely perhaps: that is not to have come to an end.
        return Verdict.FAILED
    if end is not None and end.exit_code == 0 and not pod.status.reason:
        # Whatever becomes of the side-cars. (A pod with a reason was ended from outside, politely.)
        return Verdict.SUCCEEDED
    match pod.status.phase:
        case "Succeeded":
            return Verdict.SUCCEEDED
        case "Failed":
            return Verdict.FAILED
        case "Unknown":
            return Verdict.UNKNOWN
        case "Running" if end is not None and pod.spec.restart_policy == "Never":
            return Verdict.FAILED
        case "Running":
            return Verdict.RUNNING if training is not None and training.ready else Verdict.STARTING
    return Verdict.PENDING


def disruption(pod: Pod) -> str:
    """Why others have marked it to be ended; empty if nobody has."""
    found = pod.condition(DISRUPTED)
    return (found.reason or DISRUPTED) if found is not None and found.status == "True" else ""


def has_started(pod: Pod, training_container: str) -> bool:
    """Training has begun, so its environment is fixed. A side-car may start without the config map."""
    training = training_status(pod, training_container)
    ended = pod.status.phase in ENDED_PHASES
    return ended or (training is not None and training.has_started)


def training_status(pod: Pod, training_container: str) -> ContainerStatus | None:
    for status in pod.status.container_statuses:
        if status.name == training_container:
            return status
    return None
