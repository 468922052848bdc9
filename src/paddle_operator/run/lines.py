"""What a run looks like where nobody watches a terminal: one line for each thing that changed."""

from collections import Counter
from collections.abc import Iterable, Sequence

from paddle_operator.api.paddlejob import Failure, Phase

from .curve import loss_text
from .metrics import readable
from .scene import JobScene, Measurement, PodScene, ProcessScene, Scene
from .setback import facts, on_this_machine

MOST_PODS_ONE_BY_ONE = 8
MOST_REASONS = 3
SECONDS_BETWEEN_MEASUREMENTS = 1.0
GONE = "gone"


class Lines:
    """Remembers what it has told, and tells only what is new."""

    def __init__(self) -> None:
        self._told: dict[str, _JobLines] = {}

    def changes(self, scene: Scene) -> list[str]:
        names = {job.name for job in scene.jobs}
        lines = [self._told.pop(name).farewell() for name in [*self._told] if name not in names]
        for job in scene.jobs:
            lines += self._told.setdefault(job.name, _JobLines(job.name)).changes(job)
        return lines


class _JobLines:
    """What was told of one job."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._seconds = 0.0
        self._verdict = ""
        self._failures = 0
        self._pods: dict[str, PodScene] = {}
        self._measurement = ""
        self._measured_at = 0.0
        self._processes: dict[str, str] = {}

    def changes(self, job: JobScene) -> list[str]:
        self._seconds = job.seconds
        # The job comes last: it is judged by its pods, and by what they have measured.
        news = [*self._pod_changes(job.pods), *self._measurements(job), *self._process_changes(job)]
        news += self._verdict_changes(job)
        return [self._line(one) for one in [*news, *self._setbacks(job)]]

    def farewell(self) -> str:
        return self._line(f"{self._name} {GONE}")

    def _line(self, news: str) -> str:
        return f"{self._seconds:.1f}s {news}"

    def _verdict_changes(self, job: JobScene) -> list[str]:
        told = verdict(job)
        if told in {"", self._verdict}:
            return []
        self._verdict = told
        return [f"{self._name} {told}"]

    def _setbacks(self, job: JobScene) -> list[str]:
        """Of tries after which the job goes on; when it has ended, the report says it all."""
        new, self._failures = job.failures[self._failures :], len(job.failures)
        return [f"{self._name} {_setback(one, job)}" for one in new if not job.finished]

    def _pod_changes(self, pods: Sequence[PodScene]) -> list[str]:
        before, self._pods = self._pods, {pod.name: pod for pod in pods}
        changed: dict[str, list[PodScene]] = {}
        for name, pod in before.items():
            if name not in self._pods:
                changed.setdefault(GONE, []).append(pod)
        for pod in pods:
            if pod.name not in before or _where(before[pod.name]) != _where(pod):
                changed.setdefault(pod.state, []).append(pod)
        return [line for state, group in changed.items() for line in self._pod_lines(state, group)]

    def _pod_lines(self, state: str, pods: Sequence[PodScene]) -> list[str]:
        if len(pods) > MOST_PODS_ONE_BY_ONE:
            return [f"{self._name} {len(pods)} pods {state}{_reasons(state, pods)}"]
        return [f"{pod.name} {GONE if state == GONE else _state(pod)}" for pod in pods]

    def _measurements(self, job: JobScene) -> list[str]:
        """The first at once, the last when no more can come, and between them the newest, now and then."""
        if not job.curve:
            return []
        news = []
        if not self._measurement:
            news += self._measurement_line(job.curve[0])
        if _is_over(job) or job.seconds - self._measured_at >= SECONDS_BETWEEN_MEASUREMENTS:
            news += self._measurement_line(job.curve[-1])
        return news

    def _process_changes(self, job: JobScene) -> list[str]:
        """Where a pod has several, how far each of them came, when no more can come."""
        processes = [process for pod in job.pods for process in pod.processes if _is_over(job)]
        told = {one.name: _progress(one) for one in processes}
        before, self._processes = self._processes, told
        if len(processes) > MOST_PODS_ONE_BY_ONE:
            return []
        return [f"{name} {text}" for name, text in told.items() if text and text != before.get(name)]

    def _measurement_line(self, measurement: Measurement) -> list[str]:
        # Compared as text, because a loss that is no number does not equal itself.
        text = _measured(measurement)
        if text == self._measurement:
            return []
        self._measurement, self._measured_at = text, self._seconds
        return [f"{self._name} {text}"]


def _is_over(job: JobScene) -> bool:
    return job.finished or job.phase == Phase.RESTARTING


def verdict(job: JobScene) -> str:
    """`Running: 2 of 2 pods run`: the type of a condition is left out where it only repeats the phase."""
    condition = readable(job.condition)
    kind, _, message = condition.partition(": ")
    if kind.partition(" ")[0] == job.phase:
        condition = message
    return ": ".join(part for part in (job.phase, condition) if part)


def _setback(failure: Failure, job: JobScene) -> str:
    """Its message is left out where the verdict tells it."""
    message = on_this_machine(failure.message)
    head = f"try {failure.attempt} failed"
    told = [head if message in job.condition else f"{head}: {message}"]
    return readable("; ".join([*told, *(f"{name}: {text}" for name, text in facts(failure))]))


def _where(pod: PodScene) -> tuple[str, str, int, int]:
    return pod.state, pod.reason, pod.restarts, pod.attempt


def _state(pod: PodScene) -> str:
    restart = f"restart {pod.restarts}" if pod.restarts else ""
    attempt = f"try {pod.attempt}" if pod.attempt else ""
    notes = ", ".join(note for note in (attempt, restart, readable(pod.reason)) if note)
    return " ".join(word for word in (pod.state, pod.address, f"({notes})" if notes else "") if word)


def _reasons(state: str, pods: Iterable[PodScene]) -> str:
    if state == GONE:
        return ""
    counts = Counter(readable(pod.reason) for pod in pods if pod.reason).most_common(MOST_REASONS)
    return "".join(f", {count} with {reason}" for reason, count in counts)


def _progress(process: ProcessScene) -> str:
    measured = _measured(process.latest) if process.latest is not None else ""
    last_line = readable(process.last_line)
    return ", ".join(filter(None, (measured, f"last line: {last_line}" if last_line else "")))


def _measured(measurement: Measurement) -> str:
    step = "" if measurement.step is None else f"step {measurement.step} "
    return f"{step}loss {loss_text(measurement.loss)}"
