"""What the floor makes of a job: the same as our operator."""

from dataclasses import replace

import msgspec
import pytest

from benchmarks.floor import NAME, Recipe
from benchmarks.workloads import BY_NAME, POD_IP, SERVICE, paddle_job
from paddle_operator.api.paddlejob import PaddleJob


def recipe(mode: str, *, cleans: bool = True) -> Recipe:
    workload = replace(BY_NAME["4+4"], cleans=cleans)
    job = msgspec.json.encode(paddle_job(workload, mode, "ns", NAME.decode()))
    return Recipe.of(msgspec.json.decode(job, type=PaddleJob))


@pytest.mark.parametrize(("mode", "services"), [(POD_IP, 0), (SERVICE, 8)])
def test_pods_and_services_and_a_config_map(mode: str, services: int) -> None:
    made = recipe(mode)
    assert (len(made.pods), len(made.services), made.workers) == (8, services, 4)
    assert made.by_name is (mode == SERVICE)
    assert b"<address of" in made.config_map or made.by_name


@pytest.mark.parametrize("cleans", [True, False])
def test_it_cleans_what_the_job_wants_cleaned(cleans: bool) -> None:
    assert recipe(POD_IP, cleans=cleans).cleans is cleans
