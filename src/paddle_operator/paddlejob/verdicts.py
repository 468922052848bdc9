"""How one pod is judged. The training container alone counts: a side-car neither starts nor ends a worker."""

from enum import StrEnum

from paddle_operator.api.core import ContainerStatus, Pod
from paddle_operator.api.names import TRAINING_CONTAINER


class Verdict(StrEnum):
    """Where one pod is; the values are the counters of the status."""

    PENDING = "pending"
    STARTING = "starting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNKNOWN = "unknown"


def judge(pod: Pod) -> Verdict:
    match pod.status.phase:
        case "Succeeded":
            return Verdict.SUCCEEDED
        case "Failed":
            return Verdict.FAILED
        case "Running":
            return _judge_running(pod)
        case "Unknown":
            return Verdict.UNKNOWN
    return Verdict.PENDING


def _judge_running(pod: Pod) -> Verdict:
    """A pod runs on while a side-car does; if nothing is restarted, the training container decides."""
    training = training_status(pod)
    ended = training.state.terminated if training is not None else None
    if ended is not None and pod.spec.restart_policy == "Never":
        return Verdict.SUCCEEDED if ended.exit_code == 0 else Verdict.FAILED
    ready = all(container.ready for container in pod.status.container_statuses)
    return Verdict.RUNNING if ready else Verdict.STARTING


def training_status(pod: Pod) -> ContainerStatus | None:
    names = [container.name for container in pod.spec.containers]
    chosen = TRAINING_CONTAINER if TRAINING_CONTAINER in names else next(iter(names), "")
    return next((status for status in pod.status.container_statuses if status.name == chosen), None)


def has_started(pod: Pod) -> bool:
    """Training has begun, so its environment is fixed. A side-car may start without the config map."""
    training = training_status(pod)
    ended = pod.status.phase in {"Succeeded", "Failed"}
    return ended or (training is not None and training.has_started)
