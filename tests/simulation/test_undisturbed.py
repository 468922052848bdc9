"""Lives in which nothing goes wrong end as their users expect; then, or meanwhile, nothing is asked."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from oracle import undisturbed
from simulated import live
from simulated_history import slots_of
from workloads import LIVES

from paddle_operator.api.resources import CONFIG_MAPS, PODS, SERVICES
from paddle_operator.paddlejob.failures import PATIENCE

WORKERS = {"resnet-worker-0", "resnet-worker-1"}
SERVERS = {"resnet-ps-0", "resnet-ps-1"}
ONE_OF_EACH = {"resnet-ps-0", "resnet-worker-0"}
ENDS = {
    "completes": ("Completed", {*WORKERS, "impostor"}),
    "completes-and-is-cleaned": ("Completed", set()),
    "completes-by-default": ("Completed", {"resnet-misfit-1"}),
    "fails": ("Failed", {*WORKERS, "impostor"}),
    "fails-and-is-cleaned": ("Failed", {"impostor"}),
    "single": ("Completed", set()),
    "is-recreated": ("Completed", set()),
    "is-replaced-at-once": ("Completed", WORKERS),
    "ps-completes": ("Completed", WORKERS | SERVERS),
    "ps-completes-and-is-cleaned": ("Completed", set()),
    "ps-worker-fails": ("Failed", ONE_OF_EACH),
    "ps-server-fails": ("Failed", set()),
    "ps-server-ends-early": ("Failed", ONE_OF_EACH),
    "ps-server-ends-shortly-before-its-worker": ("Completed", ONE_OF_EACH),
    "service-completes": ("Completed", WORKERS),
    "service-ps-is-cleaned": ("Completed", set()),
    "service-is-recreated": ("Completed", set()),
    "service-is-replaced-at-once": ("Completed", set()),
    "host-completes": ("Completed", WORKERS),
    "host-jobs-side-by-side": ("Completed", set()),
}
# Counts in the status may wait for that long; everything else is said at once.
SETTLED_SECONDS = 35.0


@pytest.mark.parametrize("name", LIVES)
def test_a_life_ends_as_its_user_expects(name: str) -> None:
    life, _ = undisturbed(name)
    assert (life.job["status"]["phase"], {*life.history.of_kind(PODS)}) == ENDS[name]
    assert {*life.history.of_kind(CONFIG_MAPS)} == {*life.jobs}


def test_servers_that_are_kept_are_ended_by_us_and_by_nobody_else() -> None:
    life, _ = undisturbed("ps-completes")
    ends = {name: pod["status"].get("reason") for name, pod in life.history.of_kind(PODS).items()}
    assert ends == dict.fromkeys(WORKERS) | dict.fromkeys(SERVERS, "DeadlineExceeded")


def test_a_server_that_ends_by_itself_fails_the_job_only_after_a_while() -> None:
    life, _ = undisturbed("ps-server-ends-early")
    assert life.job["status"]["failure"]["reason"] == "ServerEnded"
    server = life.history.of_kind(PODS)["resnet-ps-0"]["status"]["containerStatuses"][0]
    ends = server["state"]["terminated"]["finishedAt"], life.job["status"]["completionTime"]
    ended, failed = (datetime.fromisoformat(end) for end in ends)
    assert PATIENCE <= failed - ended <= PATIENCE + timedelta(seconds=1)


def test_services_are_kept_with_their_pods() -> None:
    life, _ = undisturbed("service-completes")
    assert {*life.history.of_kind(SERVICES)} == WORKERS


def test_jobs_on_the_host_network_have_ports_of_their_own() -> None:
    life, _ = undisturbed("host-jobs-side-by-side")
    held = [
        port
        for job in life.jobs.values()
        for port in range(job["status"]["hostPort"], job["status"]["hostPort"] + 20 * len(slots_of(job)))
    ]
    assert sorted(held) == [*range(35000, 35060)]


@pytest.mark.parametrize("name", LIVES)
def test_nothing_is_asked_of_a_job_that_has_ended(name: str) -> None:
    life, _ = undisturbed(name)
    last_change = life.witness.changed_at[-1]
    assert [str(request) for request in life.witness.requests if request.at > last_change] == []


def test_nothing_is_asked_of_a_job_that_runs_steadily() -> None:
    """Not even by informers: a healthy watch says that it is alive."""
    half_an_hour = dict.fromkeys(WORKERS, 1800.0)
    life = live(replace(LIVES["completes"], run_seconds=half_an_hour))
    life.check()
    assert life.job["status"]["phase"] == "Completed"
    assert [str(request) for request in life.witness.requests if SETTLED_SECONDS < request.at < 1800] == []
    assert life.witness.changed_at[-1] > 1800
