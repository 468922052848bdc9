"""How one pod is judged. The training container alone counts: a side-car neither starts nor ends a worker."""

from enum import StrEnum

from paddle_operator.api.core import ContainerStatus, Pod


class Verdict(StrEnum):
    """Where one pod is; the values are the counters of the status."""

    PENDING = "pending"
    STARTING = "starting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNKNOWN = "unknown"


def judge(pod: Pod, training_container: str) -> Verdict:
    match pod.status.phase:
        case "Succeeded":
            return Verdict.SUCCEEDED
        case "Failed":
            return Verdict.FAILED
        case "Running":
            return _judge_running(pod, training_container)
        case "Unknown":
            return Verdict.UNKNOWN
    return Verdict.PENDING


def has_started(pod: Pod, training_container: str) -> bool:
    """Training has begun, so its environment is fixed. A side-car may start without the config map."""
    training = _training_status(pod, training_container)
    ended = pod.status.phase in {"Succeeded", "Failed"}
    return ended or (training is not None and training.has_started)


def _judge_running(pod: Pod, training_container: str) -> Verdict:
    """A pod runs on while a side-car does; if nothing is restarted, the end of training is the end."""
    training = _training_status(pod, training_container)
    ended = training.state.terminated if training is not None else None
    if ended is not None and pod.spec.restart_policy == "Never":
        return Verdict.SUCCEEDED if ended.exit_code == 0 else Verdict.FAILED
    return Verdict.RUNNING if training is not None and training.ready else Verdict.STARTING


def _training_status(pod: Pod, training_container: str) -> ContainerStatus | None:
    statuses = pod.status.container_statuses
    return next((status for status in statuses if status.name == training_container), None)
