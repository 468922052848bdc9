"""Lives in which nothing goes wrong end as their users expect; then, or meanwhile, nothing is asked."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from simulator.history import slots_of
from simulator.life import live
from simulator.oracle import undisturbed
from simulator.workloads import GRID, LIVES

from paddle_operator.api.resources import CONFIG_MAPS, EVENTS, PODS, SERVICES
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
    "restarts": ("Completed", WORKERS),
    "restarts-until-the-limit": ("Failed", WORKERS),
    "single-restarts-and-is-cleaned": ("Completed", set()),
    "ps-restarts": ("Completed", set()),
    "service-restarts": ("Completed", WORKERS),
    "host-restarts": ("Completed", {"resnet-worker-0"}),
    "single-restarts-in-place": ("Completed", set()),
    "ps-worker-restarts-in-place": ("Completed", set()),
    "loses-a-pod": ("Completed", set()),
    "loses-too-many-pods": ("Failed", {"resnet-worker-0"}),
    "loses-a-pod-to-an-eviction": ("Completed", set()),
    "loses-a-pod-to-the-scheduler": ("Completed", set()),
    "runs-out-of-memory": ("Completed", set()),
    "is-suspended": ("Completed", set()),
    "is-suspended-and-grows": ("Completed", set()),
    "host-job-grows-beside-another": ("Completed", set()),
    "service-is-suspended-and-shrinks": ("Completed", set()),
    "is-resized-unseen": ("Completed", set()),
    "host-is-resized-unseen": ("Completed", set()),
    "is-born-suspended": ("Completed", set()),
    "stays-suspended": ("Suspended", set()),
    "runs-too-long": ("Failed", WORKERS),
    "runs-too-long-after-a-restart": ("Failed", set()),
    "does-not-start": ("Failed", WORKERS),
    "expires": ("", set()),
    "loses-a-node": ("Completed", set()),
    "loses-a-node-for-good": ("Restarting", {"resnet-worker-1"}),
    "trains-together-and-says-so": ("Completed", set()),
    "trains-alone": ("Failed", WORKERS),
    "is-deleted": ("", set()),
    "service-ps-is-deleted": ("", set()),
    "is-called-like-a-pod-of-another": ("Completed", WORKERS),
    "is-adopted": ("Completed", WORKERS),
    "is-adopted-half-made": ("Completed", WORKERS),
    "is-adopted-without-its-map": ("Completed", set()),
    "is-adopted-and-restarts": ("Completed", WORKERS),
    "is-adopted-and-deleted": ("", set()),
}
# How often each was restarted, and how much of that was its own fault, and that of others.
COUNTS = {
    "fails": (0, 1, 0),
    "fails-and-is-cleaned": (0, 1, 0),
    "ps-worker-fails": (0, 1, 0),
    "ps-server-fails": (0, 1, 0),
    "ps-server-ends-early": (0, 1, 0),
    "restarts": (1, 1, 0),
    "restarts-until-the-limit": (1, 2, 0),
    "single-restarts-and-is-cleaned": (1, 1, 0),
    "ps-restarts": (1, 1, 0),
    "service-restarts": (1, 1, 0),
    "host-restarts": (1, 1, 0),
    "ps-worker-restarts-in-place": (1, 1, 0),
    "loses-a-pod": (1, 0, 1),
    "loses-too-many-pods": (1, 0, 2),
    "loses-a-pod-to-an-eviction": (1, 0, 1),
    "loses-a-pod-to-the-scheduler": (1, 0, 1),
    "runs-out-of-memory": (1, 1, 0),
    "runs-too-long-after-a-restart": (1, 1, 0),
    "loses-a-node": (1, 0, 1),
    "loses-a-node-for-good": (1, 0, 1),
    "is-adopted-and-restarts": (1, 1, 0),
}
# Counts in the status may wait for that long; everything else is said at once.
SETTLED_SECONDS = 35.0


@pytest.mark.parametrize("name", LIVES)
def test_a_life_ends_as_its_user_expects(name: str) -> None:
    life, _ = undisturbed(name)
    status = life.jobs.get("resnet", {}).get("status", {})
    assert (status.get("phase", ""), {*life.history.of_kind(PODS)}) == ENDS[name]
    ended = {key for key, job in life.jobs.items() if job["status"]["phase"] in {"Completed", "Failed"}}
    assert {*life.history.of_kind(CONFIG_MAPS)} == ended
    counts = tuple(status.get(count, 0) for count in ("restarts", "failures", "disruptions"))
    assert counts == COUNTS.get(name, (0, 0, 0))


@pytest.mark.parametrize("name", GRID)
def test_a_life_of_the_grid_ends_as_its_name_says(name: str) -> None:
    """All modes in all networks with all policies; what is cleaned up, an invariant says."""
    life, _ = undisturbed(name)
    assert life.job["status"]["phase"] == ("Completed" if name.endswith("completes") else "Failed")


def test_what_the_go_operator_made_is_taken_over_and_only_the_rest_is_made() -> None:
    life, _ = undisturbed("is-adopted-half-made")
    made = [str(one) for one in life.witness.writes if one.verb == "create" and one.resource != EVENTS]
    assert made == ["create pods resnet-worker-1", "create configmaps resnet"]
    assert not life.job["metadata"].get("finalizers")


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
    # Whether a pod that should be gone is, is asked by name.
    expected = ["get pods resnet-worker-1"] if name == "loses-a-node-for-good" else []
    assert [str(request) for request in life.witness.requests if request.at > last_change] == expected


def test_nothing_is_asked_of_a_job_that_runs_steadily() -> None:
    """Not even by informers: a healthy watch says that it is alive."""
    half_an_hour = dict.fromkeys(WORKERS, 1800.0)
    life = live(replace(LIVES["completes"], run_seconds=half_an_hour))
    life.check()
    assert life.job["status"]["phase"] == "Completed"
    assert [str(request) for request in life.witness.requests if SETTLED_SECONDS < request.at < 1800] == []
    assert life.witness.changed_at[-1] > 1800
