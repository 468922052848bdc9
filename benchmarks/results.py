"""What a results file says: measurements by workload, mode and operator; figures and their spread. Pure."""

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Struct

Line = dict[str, Any]
Key = tuple[str, str, str, int]
MOST_CPU_OF_OTHERS = 0.1
"""Of one core: a measurement during which others used more was disturbed."""
MOST_CPU_OF_NODE = 0.9
"""Of the one core that it can use: beyond that, it is rather its figure how fast pods run."""
OWN_PODS = 10_000


class _About(Struct):
    commit: str
    began: str
    processor: str
    cores: int | None
    memory_gib: int
    versions: dict[str, str]
    workloads: list[str]


class _Begun(Struct):
    about: _About


class _Missing(Struct):
    missing: str
    why: str


class _Turn(Struct):
    workload: str
    mode: str
    operator: str
    repeat: int
    wall_seconds: float


class _Failed(_Turn):
    error: str


class _Cpu(Struct, rename="kebab"):
    operator: float
    kube_apiserver: float
    node: float
    others: float


class _Measured(_Turn):
    times: dict[str, float]
    cpu: _Cpu
    seconds: float
    requests: int
    peak_resident_mib: float


_KINDS = {"about": _Begun, "missing": _Missing, "error": _Failed}
"""Of lines, by the word that no other kind has."""


def parsed(text: str | bytes) -> Line:
    """Raises ValueError if something is not there that a reader relies on. There may be more."""
    line = msgspec.json.decode(text, type=Line)
    msgspec.convert(line, next((kind for word, kind in _KINDS.items() if word in line), _Measured))
    return line


def key_of(line: Line) -> Key:
    """Of one measurement, whether it failed or not."""
    return line["workload"], line["mode"], line["operator"], line["repeat"]


@dataclass(frozen=True)
class Figure:
    """The same figure of several runs."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def least(self) -> float:
        return min(self.values)

    @property
    def most(self) -> float:
        return max(self.values)


@dataclass(frozen=True)
class Metric:
    title: str
    read: Callable[[Line], float | None]
    digits: int = 2
    least_compared: float = 0.0
    """A ratio of smaller figures than this would tell of their rounding."""

    def of(self, runs: Iterable[Line]) -> Figure | None:
        values = tuple(value for run in runs if (value := self.read(run)) is not None)
        return Figure(values) if values else None


def _time(name: str) -> Callable[[Line], float | None]:
    return lambda line: line["times"].get(name)


def _cpu(process: str) -> Callable[[Line], float | None]:
    return lambda line: line["cpu"].get(process)


def _peak(line: Line) -> float:
    return float(line["peak_resident_mib"])


def _peak_with_all_pods(line: Line) -> float | None:
    """Of 10,000 pods that were not there at once, it would say nothing."""
    return _peak(line) if line.get("most_pods", 0) >= OWN_PODS else None


CREATED = Metric("all created, s", _time("created"))
RUNNING = Metric("all Running, s", _time("running"))
JOB_CREATED = Metric("slowest job created, s", _time("job_created_worst"))
JOB_RUNNING = Metric("slowest job Running, s", _time("job_running_worst"))
LAG = Metric("Completed after the last pod, s", _time("completed_lag"), 3)
CLEANED = Metric("cleaned after the last pod, s", _time("cleaned_after_end"))
FIRST_WRITE = Metric("first pod after the start, s", _time("first_write"))
REQUESTS = Metric("requests", lambda line: line["requests"], 0)
# The kernel counts in hundredths of a second.
CPU = Metric("operator CPU, s", _cpu("operator"), least_compared=0.2)
SERVER_CPU = Metric("API server CPU, s", _cpu("kube-apiserver"), least_compared=0.2)
NODE_CPU = Metric("fake node CPU, s", _cpu("node"), least_compared=0.2)
PEAK = Metric("operator memory at most, MiB", _peak, 0)
OWN_PEAK = Metric("memory with 10,000 own pods, MiB", _peak_with_all_pods, 0)


class Results:
    """What failed has no figures, and is told, unless it was measured later."""

    def __init__(self, lines: Iterable[str | bytes]) -> None:
        self.runs: defaultdict[tuple[str, str, str], list[Line]] = defaultdict(list)
        self.abouts: list[Line] = []
        """One for each time that the run was begun or gone on with."""
        self.seconds = 0.0
        """Of all measurements, also of a run that was cut off."""
        self.missing: dict[str, str] = {}
        """Operators that could not be had, and why."""
        self.measured: set[Key] = set()
        self._failed: dict[Key, Line] = {}
        for line in lines:
            self._take(parsed(line))

    def _take(self, one: Line) -> None:
        if "about" in one:
            self.abouts.append(one["about"])
            self.missing = {}
        elif "missing" in one:
            self.missing[one["missing"]] = one["why"]
        elif "error" in one:
            self.seconds += one["wall_seconds"]
            self._failed[key_of(one)] = one
        else:
            self.seconds += one["wall_seconds"]
            self.measured.add(key_of(one))
            self.runs[one["workload"], one["mode"], one["operator"]].append(one)

    @property
    def failures(self) -> list[Line]:
        return [line for key, line in self._failed.items() if key not in self.measured]

    def wanted(self, workload: str) -> bool:
        """It was to be measured."""
        return any(workload in about["workloads"] for about in self.abouts)

    def figure(self, workload: str, mode: str, operator: str, metric: Metric) -> Figure | None:
        return metric.of(self.runs.get((workload, mode, operator), ()))

    @property
    def disturbed(self) -> int:
        """They are kept, and told of: to leave out what does not please is no method."""
        return self._busy("others", MOST_CPU_OF_OTHERS)

    @property
    def limited(self) -> int:
        """By the fake node."""
        return self._busy("node", MOST_CPU_OF_NODE)

    def _busy(self, process: str, most: float) -> int:
        runs = [run for group in self.runs.values() for run in group]
        return sum(run["cpu"][process] > most * run["seconds"] for run in runs)

    @property
    def count(self) -> int:
        return sum(map(len, self.runs.values()))

    def has(self, workload: str, mode: str) -> bool:
        return any((one, other) == (workload, mode) for one, other, _ in self.runs)
