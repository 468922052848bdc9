"""How many pods a job may have; the lists themselves are made and measured."""

from typing import Any

import make
import pytest

from paddle_operator.api.limits import LISTS, MOST_BYTES, most_that_fit, size_problems
from paddle_operator.api.names import pod_name
from paddle_operator.api.paddlejob import PaddleJob, Role

LONG = "a" * 50


def longest_host(job: PaddleJob, role: Role, rank: int) -> str:
    name = pod_name(job.metadata.name, role, rank)
    if not job.found_by_name:
        return "255.255.255.255"
    return name if job.spec.ps else f"{name}.{job.metadata.namespace}.svc"


def variable(job: PaddleJob, role: Role, count: int) -> bytes:
    """As the kernel sees it, with addresses of the greatest length."""
    port = 55_555 if job.on_host_network else job.port
    entries = ",".join(f"{longest_host(job, role, rank)}:{port}" for rank in range(count))
    return f"{LISTS[role]}={entries}\0".encode()


@pytest.mark.parametrize(
    ("role", "spec"),
    [
        (Role.WORKER, {}),
        (Role.WORKER, {"metadata": {"annotations": {"paddlepaddle.org/port": "12379"}}}),
        (Role.WORKER, {"intranet": "Service"}),
        (Role.WORKER, {"intranet": "Service", "name": LONG}),
        (Role.WORKER, {"intranet": "Service", "name": LONG, "metadata": {"namespace": "n" * 63}}),
        (Role.WORKER, {"intranet": "Service", "ps": make.role(1)}),
        (Role.PS, {"ps": make.role(1)}),
        (Role.PS, {"intranet": "Service", "name": LONG, "ps": make.role(1)}),
        (Role.PS, {"intranet": "Host", "ps": make.role(1)}),
    ],
)
def test_so_many_fit_a_variable_and_not_one_more(role: Role, spec: dict[str, Any]) -> None:
    job = make.paddlejob(**spec)
    fit = most_that_fit(job, role)
    print(f"{fit} of {role} fit")
    assert len(variable(job, role, fit)) <= MOST_BYTES < len(variable(job, role, fit + 1))


def test_most_jobs_are_bounded_by_the_schema_alone() -> None:
    assert most_that_fit(make.paddlejob(), Role.WORKER) >= 6000
    assert [*size_problems(make.paddlejob(workers=6000))] == []


@pytest.mark.parametrize(("servers", "workers", "refused"), [(0, 1500, 0), (500, 1000, 0), (501, 1000, 1)])
def test_on_the_host_network_there_are_ports_for_1500_pods(servers: int, workers: int, refused: int) -> None:
    job = make.paddlejob(workers=workers, intranet="Host", ps=make.role(servers))
    found = [*size_problems(job)]
    assert [problem.field for problem in found] == ["spec.intranet"] * refused
    assert all("at most 1500 in all" in problem.message for problem in found)
