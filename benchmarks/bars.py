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
from benchmarks.workloads import (
    BY_NAME,
    FLOOR,
    GO,
    KUBEFLOW,
    NO_NODE,
    OURS,
    POD_IP,
    SERVER,
    SERVICE,
    TUNED,
    Workload,
)

LARGE, KEPT, MANY = "1x256", "1x256-never", "1000x10"
BOTH = (POD_IP, SERVICE)
PEERS = {GO, KUBEFLOW, TUNED}
COMPARED = (CREATED, RUNNING, LAG, CLEANED, REQUESTS, CPU)
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


def _most_requests(name: str, for_each_pod: int, mode: str) -> Bar:
    workload = BY_NAME[name]
    return Bar(name, REQUESTS, for_each_pod * workload.pods + 15 * workload.jobs, modes=(mode,))


CLEANED_UP = ("1x8", "4+4", LARGE, "50x4")
BARS = (
    Bar(LARGE, CREATED, 1.3, FLOOR),
    Bar(LARGE, RUNNING, 1.3, FLOOR),
    Bar(LARGE, LAG, 0.1),
    Bar(LARGE, CLEANED, 1.3, FLOOR),
    Bar(LARGE, CPU, 2.0, FLOOR),
    *(_most_requests(KEPT, 2, mode) for mode in BOTH),
    # One more for each child, which is a pod, or a pod and its service.
    *(_most_requests(name, 3, POD_IP) for name in CLEANED_UP),
    *(_most_requests(name, 4, SERVICE) for name in CLEANED_UP),
    Bar(MANY, CREATED, 1.4, SERVER, modes=(POD_IP,)),
    Bar(NO_NODE, CREATED, 1.4, SERVER, modes=(POD_IP,)),
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


def ratio_to_peers(results: Results, workload: Workload, mode: str, metric: Metric) -> float | None:
    """To the best of them, whatever its mode. None where it would tell of rounding, or there is nobody."""
    ours = results.figure(workload.name, mode, OURS, metric)
    found = [
        results.figure(workload.name, theirs, peer, metric) for theirs in workload.modes for peer in PEERS
    ]
    best = min((one.median for one in found if one is not None), default=0.0)
    return ours.median / best if ours and best > metric.least_compared else None


def _judgement(bar: Bar, mode: str, figure: float | None) -> Judgement:
    limit = f"{bar.limit}x {WORDS[bar.times]}" if bar.times else f"{bar.limit}"
    if figure is None:
        return Judgement(bar.workload, mode, bar.metric.title, "", limit, NOT_MEASURED)
    told = f"{figure:.2f}x" if bar.times else f"{figure:.{bar.metric.digits}f}"
    return Judgement(bar.workload, mode, bar.metric.title, told, limit, verdict(figure, bar.limit))
