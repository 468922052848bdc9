"""Looks at the cluster in memory and at the logs, and says what there is to see."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from paddle_operator.api.core import ENDED_PHASES, ContainerState, ContainerStatus, Pod
from paddle_operator.api.meta import Condition
from paddle_operator.api.names import LABEL_INDEX, LABEL_RES_TYPE, TRAINING_CONTAINER
from paddle_operator.api.paddlejob import Failure, PaddleJob
from paddle_operator.api.resources import PADDLE_JOBS, PODS
from paddle_operator.cluster import Scope
from paddle_operator.local.logs import log_file
from paddle_operator.memory.cluster import MemoryCluster
from paddle_operator.paddlejob.cleanup import STOP_AFTER_SECONDS
from paddle_operator.paddlejob.labels import attempt_of

from .metrics import Metric
from .scene import JobScene, PodScene, Scene
from .setback import on_this_machine
from .streams import Training
from .tail import Tail

STOPPED = "Stopped"
"""Neither failed nor succeeded: a server whose work is done, or who outlived a failed peer.

Or whose try is over: all pods are made anew.
"""


@dataclass(frozen=True)
class Line:
    """One line of a log."""

    source: str
    """Who says it: a pod, `pod/container` where it does not train, `pod:1` for one of several processes."""
    index: int
    """The pod's place among all pods of the run, for its colour."""
    text: str


@dataclass
class _PodTrace:
    """What a pod has shown so far; it outlives the pod."""

    index: int
    uid: str
    """Of the newest pod of this name."""
    scene: PodScene
    training: Training
    others: dict[str, Tail] = field(default_factory=dict)
    """By the container."""

    @property
    def bytes_read(self) -> int:
        return self.training.bytes_read + sum(tail.bytes_read for tail in self.others.values())


@dataclass
class Gatherer:
    memory: MemoryCluster
    logs: Path
    metric: Metric
    now: Callable[[], datetime]
    _pods: dict[str, dict[str, _PodTrace]] = field(default_factory=dict)
    """By the job's name, then by the pod's."""
    _jobs: dict[str, PaddleJob] = field(default_factory=dict)
    """As they are, or were last: one that has ended may be deleted (ttlSecondsAfterFinished)."""
    _failures: dict[str, dict[int, Failure]] = field(default_factory=dict)
    """By the job's name, then by the try. A job forgets them, once it has completed all the same."""
    _born: dict[str, datetime] = field(default_factory=dict)
    _ended: dict[str, datetime] = field(default_factory=dict)

    async def follow_pods(self) -> None:
        """For ever: some pods are gone before anybody looks."""
        async for change in self.memory.watch(PODS, Scope(), "0"):
            if isinstance(change.object, Pod):
                self._remember(change.object)

    async def follow_jobs(self) -> None:
        """For ever: a try may fail, and the next one run, before anybody looks."""
        async for change in self.memory.watch(PADDLE_JOBS, Scope(), "0"):
            if isinstance(change.object, PaddleJob):
                self._remember_job(change.object)

    async def look(self) -> tuple[Scene, list[Line]]:
        """The jobs first: what is then read holds all that an ended one has printed."""
        for job in (await self.memory.list(PADDLE_JOBS, Scope())).items:
            if isinstance(job, PaddleJob):
                self._remember_job(job)
        lines = self.read()
        return self.scene(self._jobs.values()), lines

    def scene(self, jobs: Iterable[PaddleJob]) -> Scene:
        return Scene(tuple(map(self._job, jobs)))

    def _remember_job(self, job: PaddleJob) -> None:
        name, failure = str(job.metadata.key), job.status.failure
        self._jobs[name] = job
        if failure is not None:
            self._failures.setdefault(name, {})[failure.attempt] = failure

    def read(self) -> list[Line]:
        """What has been printed since; some of it, if that was very much."""
        return [line for trace in self._traces for line in _read_pod(trace)]

    @property
    def bytes_read(self) -> int:
        return sum(trace.bytes_read for trace in self._traces)

    @property
    def _traces(self) -> list[_PodTrace]:
        return [trace for traces in self._pods.values() for trace in traces.values()]

    def _remember(self, pod: Pod) -> None:
        owner = pod.metadata.controller
        if owner is None:
            return
        traces = self._pods.setdefault(f"{pod.metadata.namespace}/{owner.name}", {})
        scene, trace = _pod_scene(pod), traces.get(pod.metadata.name)
        logs = {name: log_file(self.logs, pod.metadata.key, name) for name in _containers(pod)}
        training, *others = logs
        if trace is None:
            place = sum(map(len, self._pods.values()))
            trace = _PodTrace(place, pod.metadata.uid, scene, Training(logs[training], self.metric))
            traces[pod.metadata.name] = trace
        elif trace.uid != pod.metadata.uid:
            # It has printed nothing yet. Its log goes on in the same file.
            trace.uid = pod.metadata.uid
            trace.training.begin_anew()
        trace.scene = scene
        for name in others:
            trace.others.setdefault(name, Tail(logs[name]))

    def _job(self, job: PaddleJob) -> JobScene:
        name, status = str(job.metadata.key), job.status
        traces = self._pods.get(name, {}).values()
        ordered = sorted(traces, key=lambda trace: (trace.scene.role, trace.scene.rank))
        # Times in objects are whole seconds; a person sees more.
        born = self._born.setdefault(name, self.now())
        until = self._ended.setdefault(name, self.now()) if status.finished else self.now()
        return JobScene(
            name=name,
            mode=status.mode or job.spec.mode,
            phase=status.phase,
            condition=_in_one_line(status.conditions),
            seconds=(until - born).total_seconds(),
            pods=tuple(map(_as_it_is, ordered)),
            curve=next((curve for trace in ordered if (curve := trace.training.curve)), ()),
            finished=status.finished,
            restarts=status.restarts,
            failures=tuple(self._failures.get(name, {}).values()),
        )


def _read_pod(trace: _PodTrace) -> Iterator[Line]:
    pod, is_complete = trace.scene.name, trace.scene.state in {*ENDED_PHASES, STOPPED}
    for source, lines in trace.training.read(pod, is_complete=is_complete):
        yield from (Line(source, trace.index, text) for text in lines)
    for container, tail in trace.others.items():
        for text in tail.new_lines(is_complete=is_complete):
            yield Line(f"{pod}/{container}", trace.index, text)


def _as_it_is(trace: _PodTrace) -> PodScene:
    training, name = trace.training, trace.scene.name
    return replace(
        trace.scene,
        last_line=training.last_line,
        latest=training.latest,
        processes=training.scenes(name),
    )


def _pod_scene(pod: Pod) -> PodScene:
    labels = pod.metadata.labels
    state, reason = _state(pod)
    owner = pod.metadata.controller
    if owner is not None and reason.endswith(f'configmap "{owner.name}" not found'):
        reason = "waits for its peers"  # the map with their addresses is on its way
    return PodScene(
        name=pod.metadata.name,
        role=labels.get(LABEL_RES_TYPE, ""),
        rank=int(labels.get(LABEL_INDEX, "0")),
        address=pod.status.pod_ip,
        state=state,
        reason=reason,
        restarts=sum(one.restart_count for one in pod.status.container_statuses),
        last_line="",
        latest=None,
        attempt=attempt_of(pod.metadata),
    )


def _state(pod: Pod) -> tuple[str, str]:
    """A side-car may fail and a peer may be ended: what became of training is what counts."""
    status, name = pod.status, _containers(pod)[0]
    everyone = (*status.init_container_statuses, *status.container_statuses)
    training = next((one for one in everyone if one.name == name), None)
    end = training.state.terminated if training is not None else None
    if status.phase in ENDED_PHASES and end is not None and end.exit_code == 0 and not status.reason:
        return "Succeeded", ""
    if status.phase in ENDED_PHASES:
        is_late = status.reason and pod.spec.active_deadline_seconds == STOP_AFTER_SECONDS
        # One that ended by itself is gone as soon as it is deleted.
        if is_late or pod.metadata.terminating:
            return STOPPED, "by the operator"
        return status.phase, status.reason or _first_reason(training, *everyone)
    if pod.metadata.terminating:
        return "Terminating", ""
    if status.phase == "Pending":
        return ("Starting" if status.pod_ip else "Pending"), _first_reason(training, *everyone)
    return status.phase, _reason(training)


def _first_reason(*containers: ContainerStatus | None) -> str:
    return next(filter(None, map(_reason, containers)), "")


def _reason(container: ContainerStatus | None) -> str:
    state = container.state if container is not None else ContainerState()
    if state.terminated is not None and state.terminated.exit_code:
        return f"exit code {state.terminated.exit_code}"
    if state.waiting is None:
        return ""
    return ": ".join(filter(None, (state.waiting.reason, state.waiting.message)))


def _containers(pod: Pod) -> list[str]:
    """The one that trains comes first."""
    names = [container.name for container in pod.spec.containers]
    training = TRAINING_CONTAINER if TRAINING_CONTAINER in names else names[0]
    initial = [status.name for status in pod.status.init_container_statuses]
    return [training, *(name for name in [*initial, *names] if name != training)]


def _in_one_line(conditions: tuple[Condition, ...]) -> str:
    """The condition that moved last; of those that moved in the same second, the last one that holds."""
    moved = [one for one in conditions if one.last_transition_time is not None]
    if not moved:
        return ""
    newest = max(
        enumerate(moved), key=lambda pair: (pair[1].last_transition_time, pair[1].status == "True", pair[0])
    )[1]
    name = newest.type if newest.status == "True" else f"not {newest.type}"
    message = on_this_machine(newest.message)
    return f"{name} ({newest.reason}): {message}" if message else f"{name} ({newest.reason})"
