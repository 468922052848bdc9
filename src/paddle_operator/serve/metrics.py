"""What Prometheus is told of the operator at work. docs/en/metrics.md explains each."""

from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from paddle_operator import __version__

# A second series for each one, with the time of its first value: nobody asks.
disable_created_metrics()  # type: ignore[no-untyped-call]

CONTENT_TYPE = CONTENT_TYPE_LATEST
QUICK = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
SLOW = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600)
VERBS = {"GET": "get", "POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}


class Metrics:
    """One registry of our own: nothing that a library registers by itself is shown."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._turns = self._histogram("reconcile_seconds", "How long turns took.", QUICK, "outcome")
        self._waits = self._histogram("queue_wait_seconds", "How late turns began.", QUICK)
        self._depth = Gauge(
            "paddle_operator_queue_depth",
            "Jobs whose turn has come.",
            registry=self.registry,
        )
        self._requests = Counter(
            "paddle_operator_requests",
            "Requests to the API server; code 0: there was no answer.",
            ("verb", "resource", "code"),
            registry=self.registry,
        )
        self._answers = self._histogram("request_seconds", "How long the API server took.", QUICK, "verb")
        self._leads = Gauge(
            "paddle_operator_leader", "1 if this manager leads, 0 if it stands by.", registry=self.registry
        )
        info = Gauge(
            "paddle_operator_build_info",
            "Always 1; the version is a label.",
            ("version",),
            registry=self.registry,
        )
        info.labels(__version__).set(1)

    def turned(self, seconds: float, ended: str) -> None:
        self._turns.labels(ended).observe(seconds)

    def waited(self, seconds: float) -> None:
        self._waits.observe(seconds)

    def answered(self, method: str, path: str, status: int, seconds: float, *, is_watch: bool) -> None:
        verb, resource = named(method, path, is_watch=is_watch)
        self._requests.labels(verb, resource, str(status)).inc()
        if not is_watch:
            self._answers.labels(verb).observe(seconds)

    def leads(self, *, it_does: bool, depth: Callable[[], int] = lambda: 0) -> None:
        self._leads.set(it_does)
        self._depth.set_function(depth)

    def page(self) -> bytes:
        return generate_latest(self.registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(f"paddle_operator_{name}", text, labels, buckets=buckets, registry=self.registry)


def named(method: str, path: str, *, is_watch: bool = False) -> tuple[str, str]:
    """Verb and resource, as RBAC has them: ("patch", "paddlejobs/status")."""
    parts = path.strip("/").split("/")
    # /api/v1/... or /apis/GROUP/VERSION/..., then perhaps namespaces/NAMESPACE.
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if parts[:1] == ["namespaces"] and len(parts) > 2:
        parts = parts[2:]
    resource = "/".join([*parts[:1], *parts[2:3]])
    if is_watch:
        return "watch", resource
    return "list" if method == "GET" and len(parts) == 1 else VERBS.get(method, method.lower()), resource
