"""What we ask of our operator, and whether the medians of a results file meet it. Pure."""

from dataclasses import dataclass

from benchmarks.cluster import verdict
from benchmarks.results import (
    CLEANED,
    CPU,
    CREATED,
    FIRST_WRITE,
    LAG,
    OWN_PEAK,
    PEAK,
    REQUESTS,
    RUNNING,
    Metric,
    Results,
)
from benchmarks.workloads import BY_NAME, FLOOR, OURS, POD_IP, SERVER, SERVICE

LARGE, KEPT, MANY = "1x256", "1x256-never", "1000x10"
BOTH = (POD_IP, SERVICE)
WORDS = {FLOOR: "the floor", SERVER: "the pods alone"}
NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Bar:
    workload: str
    metric: Metric
    limit: float
    times: str = ""
    """Whose figure of the same run, if it is no limit by itself."""
    modes: tuple[str, ...] = BOTH

    def figure(self, results: Results, mode: str) -> float | None:
        ours = results.figure(self.workload, mode, OURS, self.metric)
        if ours is None or not self.times:
            return ours.median if ours else None
        other = results.figure(self.workload, mode, self.times, self.metric)
        return ours.median / other.median if other and other.median else None


@dataclass(frozen=True)
class Judgement:
    workload: str
    mode: str
    metric: str
    figure: str
    limit: str
    verdict: str


_PODS = BY_NAME[LARGE].pods
BARS = (
    Bar(LARGE, CREATED, 1.3, FLOOR),
    Bar(LARGE, RUNNING, 1.3, FLOOR),
    Bar(LARGE, LAG, 0.1),
    Bar(LARGE, CLEANED, 1.3, FLOOR),
    Bar(LARGE, CPU, 2.0, FLOOR),
    Bar(KEPT, REQUESTS, 2 * _PODS + 15),
    # One more for each child, which is a pod, or a pod and its service.
    Bar(LARGE, REQUESTS, 3 * _PODS + 15, modes=(POD_IP,)),
    Bar(LARGE, REQUESTS, 4 * _PODS + 15, modes=(SERVICE,)),
    Bar(MANY, CREATED, 1.4, SERVER, modes=(POD_IP,)),
    Bar(MANY, OWN_PEAK, 80, modes=(POD_IP,)),
    Bar("50x4-foreign", PEAK, 60),
    Bar("start-foreign", FIRST_WRITE, 0.5, modes=(POD_IP,)),
)


def judge(results: Results) -> list[Judgement]:
    """Of workloads that were not to be measured, nothing is said."""
    return [
        _judgement(bar, mode, bar.figure(results, mode))
        for bar in BARS
        for mode in bar.modes
        if results.wanted(bar.workload)
    ]


def _judgement(bar: Bar, mode: str, figure: float | None) -> Judgement:
    limit = f"{bar.limit}x {WORDS[bar.times]}" if bar.times else f"{bar.limit}"
    if figure is None:
        return Judgement(bar.workload, mode, bar.metric.title, "", limit, NOT_MEASURED)
    told = f"{figure:.2f}x" if bar.times else f"{figure:.{bar.metric.digits}f}"
    return Judgement(bar.workload, mode, bar.metric.title, told, limit, verdict(figure, bar.limit))
