"""What Prometheus is told of jobs: how many are in which phase, how long they took, why they restarted."""

from collections import Counter as Tally
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from paddle_operator.api.meta import Key
from paddle_operator.api.paddlejob import PaddleJob, Phase

from .metrics import SLOW


@dataclass(frozen=True)
class _Seen:
    uid: str
    phase: str
    restarts: int
    has_run: bool


class JobMetrics(Collector):
    """Counts what it sees change. What had changed before this manager led, another one has counted."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seen: dict[Key, _Seen] = {}
        self._restarts = Counter(
            "paddle_operator_job_restarts",
            "Restarts of whole jobs, by the class of the failure.",
            ("class",),
            registry=registry,
        )
        self._start = Histogram(
            "paddle_operator_job_start_seconds",
            "From a job's creation until all its pods first ran.",
            buckets=SLOW,
            registry=registry,
        )
        self._lives = Histogram(
            "paddle_operator_job_seconds",
            "From a job's creation until it was Completed, or Failed.",
            ("phase",),
            buckets=SLOW,
            registry=registry,
        )
        registry.register(self)

    def saw(self, key: Key, job: PaddleJob | None) -> None:
        """A job as it is now; None: it is gone."""
        old = self._seen.pop(key, None)
        if job is None:
            return
        status = job.status
        self._seen[key] = _Seen(
            job.uid, status.phase or "New", status.restarts, has_run=status.start_time is not None
        )
        if old is None or old.uid != job.uid:
            return
        if status.restarts > old.restarts:
            kind = status.failure.kind if status.failure is not None else ""
            self._restarts.labels(kind).inc(status.restarts - old.restarts)
        if not old.has_run:
            self._observe(self._start, job, status.start_time)
        if status.finished and status.phase != old.phase:
            self._observe(self._lives.labels(status.phase), job, status.completion_time)

    def forget(self) -> None:
        """Another one leads now, and tells of them."""
        self._seen.clear()

    def collect(self) -> Iterable[Metric]:
        jobs = GaugeMetricFamily("paddle_operator_jobs", "PaddleJobs, by phase.", labels=["phase"])
        phases = Tally(seen.phase for seen in self._seen.values())
        for phase in ("New", *Phase):
            jobs.add_metric([phase], phases[phase])
        yield jobs

    @staticmethod
    def _observe(histogram: Histogram, job: PaddleJob, until: datetime | None) -> None:
        born = job.metadata.creation_timestamp
        if born is not None and until is not None:
            histogram.observe(max(0.0, (until - born).total_seconds()))
