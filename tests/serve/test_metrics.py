"""What is counted, under which names."""

from datetime import timedelta

import make
import msgspec
import pytest

from paddle_operator.api.meta import Key
from paddle_operator.api.paddlejob import Failure, PaddleJob, PaddleJobStatus
from paddle_operator.serve.jobs import JobMetrics
from paddle_operator.serve.metrics import Metrics, named

KEY = Key("team", "resnet")


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/api/v1/pods", ("list", "pods")),
        ("GET", "/api/v1/namespaces/team/pods", ("list", "pods")),
        ("GET", "/api/v1/namespaces/team/pods/p", ("get", "pods")),
        ("POST", "/api/v1/namespaces/team/pods", ("create", "pods")),
        ("DELETE", "/api/v1/namespaces/team/services/s", ("delete", "services")),
        (
            "PATCH",
            "/apis/batch.paddlepaddle.org/v1/namespaces/team/paddlejobs/j/status",
            ("patch", "paddlejobs/status"),
        ),
        ("GET", "/apis/coordination.k8s.io/v1/namespaces/team/leases/l", ("get", "leases")),
    ],
)
def test_a_request_is_named_as_rbac_names_it(method: str, path: str, expected: tuple[str, str]) -> None:
    assert named(method, path) == expected


def test_a_watch_is_no_list() -> None:
    assert named("GET", "/api/v1/namespaces/team/pods", is_watch=True) == ("watch", "pods")


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"paddle_operator_{name}", labels)


def test_requests_turns_and_the_queue() -> None:
    metrics = Metrics()
    metrics.answered("POST", "/api/v1/namespaces/team/pods", 201, 0.01, is_watch=False)
    metrics.answered("GET", "/api/v1/namespaces/team/pods", 200, 0.01, is_watch=True)
    metrics.turned(0.1, "complete")
    metrics.waited(0.2)
    metrics.leads(it_does=True, depth=lambda: 7)
    assert value(metrics, "requests_total", verb="create", resource="pods", code="201") == 1
    assert value(metrics, "requests_total", verb="watch", resource="pods", code="200") == 1
    assert value(metrics, "request_seconds_count", verb="create") == 1
    assert value(metrics, "request_seconds_count", verb="watch") is None
    assert value(metrics, "reconcile_seconds_count", outcome="complete") == 1
    assert value(metrics, "queue_wait_seconds_count") == 1
    assert (value(metrics, "queue_depth"), value(metrics, "leader")) == (7, 1)
    metrics.leads(it_does=False)
    assert (value(metrics, "queue_depth"), value(metrics, "leader")) == (0, 0)
    assert b"process_resident_memory_bytes" in metrics.page()


def job(**status: object) -> PaddleJob:
    made = make.paddlejob()
    born = made.metadata.creation_timestamp or make.NOW
    metadata = msgspec.structs.replace(made.metadata, creation_timestamp=born)
    return PaddleJob(metadata, made.spec, PaddleJobStatus(**status))  # type: ignore[arg-type]


class TestJobs:
    def test_are_counted_by_phase(self) -> None:
        metrics = Metrics()
        jobs = JobMetrics(metrics.registry)
        jobs.saw(KEY, job())
        jobs.saw(Key("team", "other"), job(phase="Running"))
        assert value(metrics, "jobs", phase="New") == 1
        assert value(metrics, "jobs", phase="Running") == 1
        jobs.saw(KEY, None)
        assert value(metrics, "jobs", phase="New") == 0
        jobs.forget()
        assert value(metrics, "jobs", phase="Running") == 0

    def test_start_and_end_are_measured_once_each(self) -> None:
        metrics = Metrics()
        jobs = JobMetrics(metrics.registry)
        born = job().metadata.creation_timestamp
        assert born is not None
        ran, ended = born + timedelta(seconds=3), born + timedelta(seconds=30)
        jobs.saw(KEY, job())
        for _ in range(2):
            jobs.saw(KEY, job(phase="Running", start_time=ran))
        for _ in range(2):
            jobs.saw(KEY, job(phase="Completed", start_time=ran, completion_time=ended))
        assert value(metrics, "job_start_seconds_count") == 1
        assert value(metrics, "job_start_seconds_sum") == 3
        assert value(metrics, "job_seconds_count", phase="Completed") == 1
        assert value(metrics, "job_seconds_sum", phase="Completed") == 30

    def test_restarts_are_counted_by_class_and_do_not_start_the_clock_again(self) -> None:
        metrics = Metrics()
        jobs = JobMetrics(metrics.registry)
        ran = make.NOW
        jobs.saw(KEY, job(phase="Running", start_time=ran))
        failed = {"restarts": 1, "attempt": 1, "failure": Failure(kind="OOM")}
        jobs.saw(KEY, job(phase="Restarting", start_time=ran, **failed))
        jobs.saw(KEY, job(phase="Running", start_time=ran, **failed))
        assert value(metrics, "job_restarts_total", **{"class": "OOM"}) == 1
        assert value(metrics, "job_start_seconds_count") == 0

    def test_what_a_new_leader_finds_was_counted_by_the_old_one(self) -> None:
        metrics = Metrics()
        jobs = JobMetrics(metrics.registry)
        jobs.saw(KEY, job(phase="Completed", restarts=3))
        assert value(metrics, "job_seconds_count", phase="Completed") is None
        assert value(metrics, "job_restarts_total", **{"class": ""}) is None
