"""What a person is shown of a run at one moment: plain values, no matter how they are drawn."""

from dataclasses import dataclass

from paddle_operator.api.paddlejob import Failure


@dataclass(frozen=True)
class Measurement:
    """What a training script said of its progress; a script may count no steps."""

    step: int | None
    loss: float


@dataclass(frozen=True)
class ProcessScene:
    """One of several processes that a launcher keeps in a pod."""

    name: str
    local_rank: int
    last_line: str
    latest: Measurement | None


@dataclass(frozen=True)
class PodScene:
    name: str
    role: str
    rank: int
    address: str
    """Empty until the pod has one."""
    state: str
    """One of Pending, Starting, Running, Succeeded, Failed, Stopped, Terminating."""
    reason: str
    """Why it is in that state, if that needs a word: `CreateContainerConfigError`, `exit code 1`, ..."""
    restarts: int
    """In place, of this pod; those of the whole job are the job's."""
    last_line: str
    """The last line that it printed, as it printed it: may be long, may hold control characters.

    Of several processes, that of the first one; so it is with the measurement.
    """
    latest: Measurement | None
    attempt: int = 0
    """The job's try that it belongs to: a pod that is made anew keeps its name."""
    processes: tuple[ProcessScene, ...] = ()
    """By local rank; none where there is but one."""


@dataclass(frozen=True)
class JobScene:
    name: str
    """`namespace/name`."""
    mode: str
    phase: str
    """Empty before the operator has seen it."""
    condition: str
    """The newest condition in one line: `Running (AllPodsRun): 2 of 2 pods run`."""
    seconds: float
    """Since it was created; stands still once it has ended."""
    pods: tuple[PodScene, ...]
    curve: tuple[Measurement, ...]
    """The loss over time, oldest first, of the lowest rank that prints one, by its first such process."""
    finished: bool
    restarts: int = 0
    """Of the whole job."""
    failures: tuple[Failure, ...] = ()
    """How each try ended that has failed, oldest first; also after the job has made good for them."""


@dataclass(frozen=True)
class Scene:
    jobs: tuple[JobScene, ...]


def process_name(pod: str, local_rank: int) -> str:
    return f"{pod}:{local_rank}"
