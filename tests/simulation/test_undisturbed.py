"""Lives in which nothing goes wrong end as their users expect; then, or meanwhile, nothing is asked."""

from dataclasses import replace

import pytest
from oracle import undisturbed
from simulated import live
from workloads import LIVES

from paddle_operator.api.resources import CONFIG_MAPS, PODS

WORKERS = {"resnet-worker-0", "resnet-worker-1"}
ENDS = {
    "completes": ("Completed", {*WORKERS, "impostor"}),
    "completes-and-is-cleaned": ("Completed", set()),
    "completes-by-default": ("Completed", {"resnet-misfit-1"}),
    "fails": ("Failed", {*WORKERS, "impostor"}),
    "fails-and-is-cleaned": ("Failed", {"impostor"}),
    "single": ("Completed", set()),
    "is-recreated": ("Completed", set()),
    "is-replaced-at-once": ("Completed", WORKERS),
}
# Counts in the status may wait for that long; everything else is said at once.
SETTLED_SECONDS = 35.0


@pytest.mark.parametrize("name", LIVES)
def test_a_life_ends_as_its_user_expects(name: str) -> None:
    life, _ = undisturbed(name)
    assert (life.job["status"]["phase"], {*life.history.of_kind(PODS)}) == ENDS[name]
    assert [*life.history.of_kind(CONFIG_MAPS)] == ["resnet"]


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
