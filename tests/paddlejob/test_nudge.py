"""When a kubelet is woken, and when it is left alone."""

import make
import pytest
from make import NOW, seconds

from paddle_operator.api.names import ANNOTATION_NUDGE
from paddle_operator.paddlejob.nudge import next_nudge, nudges
from paddle_operator.paddlejob.observed import Observed


def seen(annotation: str = "", waiting: str = "", phase: str = "Pending") -> Observed:
    job = make.paddlejob(workers=1)
    notes = {"annotations": {ANNOTATION_NUDGE: annotation}} if annotation else {}
    pod = make.pod(job, 0, phase, waiting=waiting, metadata=notes)
    return make.observed(job, pod, config_map=make.config_map(job))


def ago(count: int, age_seconds: float) -> str:
    return f"{count} {(NOW - seconds(age_seconds)).isoformat()}"


STUCK = "CreateContainerConfigError"


@pytest.mark.parametrize(
    ("world", "nudged", "wakes_in"),
    [
        (seen(), "1", None),
        (seen(phase="Running"), None, None),
        (seen(phase="Succeeded"), None, None),
        (seen(ago(1, 0.5), "ContainerCreating"), None, None),
        (seen(ago(1, 0.5), STUCK), None, 2.52),
        (seen(ago(1, 3.1), STUCK), "2", None),
        (seen(ago(2, 3.1), STUCK), None, 2.94),
        (seen(ago(3, 12.1), STUCK), "4", None),
        (seen(ago(4, 99), STUCK), None, None),
        (seen("nonsense", STUCK), "1", None),
        (seen("1 not-a-time", STUCK), "1", None),
        (seen("1 2026-01-01", STUCK), "1", None),
        (seen("1 9999-12-31T23:59:59+00:00", STUCK), "1", None),
    ],
    ids=[
        "fresh",
        "runs",
        "ended",
        "on its way",
        "stuck, but give it time",
        "stuck for 3 s",
        "the second time a while longer",
        "third repeat",
        "enough",
        "nonsense",
        "half nonsense",
        "no time zone",
        "from the future",
    ],
)
def test_nudges(world: Observed, nudged: str | None, wakes_in: float | None) -> None:
    patches = nudges(world)
    values = [patch.body["metadata"]["annotations"][ANNOTATION_NUDGE] for patch in patches]
    assert values == ([f"{nudged} {NOW.isoformat()}"] if nudged else [])
    assert next_nudge(world) == (NOW + seconds(wakes_in) if wakes_in else None)


def test_a_pod_that_is_being_deleted_is_left_alone() -> None:
    job = make.paddlejob(workers=1)
    pod = make.pod(job, 0, metadata={"deletionTimestamp": NOW.isoformat()})
    assert nudges(make.observed(job, pod, config_map=make.config_map(job))) == ()


def test_nobody_is_woken_before_there_is_a_map_to_find() -> None:
    job = make.paddlejob(workers=2)
    assert nudges(make.observed(job, make.pod(job, 0))) == ()


def test_of_a_large_job_the_last_ones_are_given_more_time() -> None:
    job = make.paddlejob(workers=250)
    notes = {"annotations": {ANNOTATION_NUDGE: ago(1, 4)}}
    pods = [make.pod(job, rank, waiting=STUCK, ip="198.18.1.1", metadata=notes) for rank in range(250)]
    world = make.observed(job, *pods, config_map=make.config_map(job))
    assert nudges(world) == ()
    assert next_nudge(world) == NOW + seconds(4)
