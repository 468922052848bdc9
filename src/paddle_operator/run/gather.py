"""Looks at the cluster in memory and at the logs, and says what there is to see."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from paddle_operator.api.core import ContainerStatus, Pod
from paddle_operator.api.meta import Condition
from paddle_operator.api.names import LABEL_INDEX, LABEL_RES_TYPE, TRAINING_CONTAINER
from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.api.resources import PADDLE_JOBS, PODS
from paddle_operator.cluster import Scope
from paddle_operator.local.pod_life import log_file
from paddle_operator.memory.cluster import MemoryCluster

from .metrics import Metric
from .scene import JobScene, Measurement, PodScene, Scene
from .tail import Tail

MOST_MEASUREMENTS = 4096
ENDED = {"Succeeded", "Failed"}


@dataclass(frozen=True)
class Line:
    """One line of a container's log."""

    pod: str
    index: int
    """The pod's place among all pods of the run, for its colour."""
    text: str


@dataclass
class _PodTrace:
    """What a pod has shown so far; it outlives the pod."""

    index: int
    tail: Tail
    scene: PodScene
    measured: list[Measurement] = field(default_factory=list)


@dataclass
class Gatherer:
    memory: MemoryCluster
    logs: Path
    metric: Metric
    now: Callable[[], datetime]
    _pods: dict[str, dict[str, _PodTrace]] = field(default_factory=dict)
    """By the job's name, then by the pod's."""
    _born: dict[str, datetime] = field(default_factory=dict)
    _ended: dict[str, datetime] = field(default_factory=dict)

    async def follow_pods(self) -> None:
        """For ever: some pods are gone before anybody looks."""
        async for change in self.memory.watch(PODS, Scope(), "0"):
            if isinstance(change.object, Pod):
                self._remember(change.object)

    async def look(self) -> tuple[Scene, list[Line]]:
        jobs = (await self.memory.list(PADDLE_JOBS, Scope())).items
        lines = [line for traces in self._pods.values() for line in self._read(traces.values())]
        return Scene(tuple(self._job(job) for job in jobs if isinstance(job, PaddleJob))), lines

    def _remember(self, pod: Pod) -> None:
        owner = pod.metadata.controller
        if owner is None:
            return
        traces = self._pods.setdefault(f"{pod.metadata.namespace}/{owner.name}", {})
        name, trace = pod.metadata.name, traces.get(pod.metadata.name)
        if trace is None:
            tail = Tail(log_file(self.logs, pod.metadata.key, _training_container(pod)))
            index = sum(map(len, self._pods.values()))
            trace = traces[name] = _PodTrace(index, tail, _pod_scene(pod, "", None))
        latest = trace.measured[-1] if trace.measured else None
        trace.scene = _pod_scene(pod, trace.tail.last, latest)

    def _read(self, traces: Iterable[_PodTrace]) -> list[Line]:
        read: list[Line] = []
        for trace in traces:
            for text in trace.tail.new_lines(is_complete=trace.scene.state in ENDED):
                read.append(Line(trace.scene.name, trace.index, text))
                if (measurement := self.metric.measure(text)) is not None:
                    trace.measured = [*thinned(trace.measured), measurement]
            latest = trace.measured[-1] if trace.measured else None
            trace.scene = replace(trace.scene, last_line=trace.tail.last, latest=latest)
        return read

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
            pods=tuple(trace.scene for trace in ordered),
            curve=next((tuple(trace.measured) for trace in ordered if trace.measured), ()),
            finished=status.finished,
        )


def thinned(measured: list[Measurement]) -> list[Measurement]:
    """Every second one once there are too many: a curve needs no more, and a run may last for weeks."""
    return measured if len(measured) < MOST_MEASUREMENTS else measured[::2]


def _pod_scene(pod: Pod, last_line: str, latest: Measurement | None) -> PodScene:
    labels = pod.metadata.labels
    state, reason = _state(pod)
    return PodScene(
        name=pod.metadata.name,
        role=labels.get(LABEL_RES_TYPE, ""),
        rank=int(labels.get(LABEL_INDEX, "0")),
        address=pod.status.pod_ip,
        state=state,
        reason=reason,
        restarts=sum(one.restart_count for one in pod.status.container_statuses),
        last_line=last_line,
        latest=latest,
    )


def _state(pod: Pod) -> tuple[str, str]:
    status = pod.status
    statuses = (*status.init_container_statuses, *status.container_statuses)
    reason = status.reason or next(filter(None, map(_reason, statuses)), "")
    if status.phase in ENDED:
        return status.phase, reason
    if pod.metadata.terminating:
        return "Terminating", ""
    if status.phase == "Pending":
        return ("Starting" if status.pod_ip else "Pending"), reason
    return status.phase, reason


def _reason(container: ContainerStatus) -> str:
    state = container.state
    if state.terminated is not None and state.terminated.exit_code:
        return f"exit code {state.terminated.exit_code}"
    if state.waiting is None:
        return ""
    return (
        f"{state.waiting.reason}: {state.waiting.message}" if state.waiting.message else state.waiting.reason
    )


def _training_container(pod: Pod) -> str:
    names = [container.name for container in pod.spec.containers]
    return TRAINING_CONTAINER if TRAINING_CONTAINER in names else names[0]


def _in_one_line(conditions: tuple[Condition, ...]) -> str:
    """The condition that moved last; of those that moved in the same second, the one that came last."""
    moved = [one for one in conditions if one.last_transition_time is not None]
    if not moved:
        return ""
    newest = max(enumerate(moved), key=lambda pair: (pair[1].last_transition_time, pair[0]))[1]
    name = newest.type if newest.status == "True" else f"not {newest.type}"
    return f"{name} ({newest.reason}): {newest.message}" if newest.message else f"{name} ({newest.reason})"
