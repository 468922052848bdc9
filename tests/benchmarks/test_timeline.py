"""What is told of the times of a measurement."""

import pytest

from benchmarks.timeline import Condition, OwnedMeta, Owner, Status, Thing, Timeline


def thing(name: str, phase: str = "", *, uid: str = "", job: str = "") -> Thing:
    owners = (Owner(job),) if job else ()
    return Thing(OwnedMeta(name=name, uid=uid or name, owner_references=owners), Status(phase))


def pod(name: str, phase: str = "", *, uid: str = "") -> Thing:
    return thing(name, phase, uid=uid, job="job-0")


def completed(timeline: Timeline, now: float) -> None:
    timeline.saw_job("MODIFIED", thing("job-0", "Completed"), now)


def begun(pods: int = 2, *, cleans: bool = True, only_creates: bool = False) -> Timeline:
    timeline = Timeline(pods, 1, cleans=cleans, only_creates=only_creates)
    timeline.sent["job-0"] = 10.0
    return timeline


def over(timeline: Timeline) -> bool:
    return timeline.is_over


def a_life(*names: str) -> Timeline:
    """All are there after 1 s, run after 2 s and end after 4 s."""
    timeline = begun(len(names))
    for now, phase in ((11.0, "Pending"), (12.0, "Running"), (14.0, "Succeeded")):
        for name in names:
            timeline.saw_pod("MODIFIED", pod(name, phase), now)
    return timeline


def clean(timeline: Timeline, now: float) -> None:
    for name in list(timeline.created):
        timeline.saw_pod("DELETED", pod(name, "Succeeded"), now)


def test_the_times_of_a_job() -> None:
    timeline = a_life("job-0-worker-0", "job-0-worker-1")
    completed(timeline, 14.5)
    assert not over(timeline)
    clean(timeline, 16.0)
    assert over(timeline)
    assert timeline.times() == {
        "created": 1.0,
        "job_created_median": 1.0,
        "job_created_worst": 1.0,
        "running": 2.0,
        "job_running_median": 2.0,
        "job_running_worst": 2.0,
        "ended": 4.0,
        "completed": 4.5,
        "completed_lag": 0.5,
        "cleaned": 6.0,
        "cleaned_after_end": 2.0,
    }


@pytest.mark.parametrize(
    ("said_at", "lag"),
    [
        pytest.param(14.25, 0.25, id="after the last end"),
        pytest.param(13.9, 0.0, id="seen before it"),
    ],
)
def test_the_lag_is_never_negative(said_at: float, lag: float) -> None:
    timeline = a_life("job-0-worker-0")
    completed(timeline, said_at)
    clean(timeline, 15.0)
    assert timeline.times()["completed_lag"] == lag


def test_servers_that_were_stopped_are_no_end() -> None:
    timeline = a_life("job-0-worker-0", "job-0-ps-0")
    completed(timeline, 14.5)
    timeline.ended["job-0-ps-0"] = 14.4
    clean(timeline, 15.0)
    assert timeline.times()["ended"] == 4.0
    assert timeline.times()["completed_lag"] == 0.5


def test_masters_end_by_themselves() -> None:
    timeline = a_life("job-0-worker-0", "job-0-master-0")
    timeline.ended["job-0-master-0"] = 16.0
    completed(timeline, 16.25)
    clean(timeline, 17.0)
    assert timeline.times()["completed_lag"] == 0.25


def test_a_pod_that_is_made_twice_is_seen_by_its_uid() -> None:
    timeline = a_life("job-0-worker-0", "job-0-worker-1")
    assert timeline.extra_pods() == 0
    timeline.saw_pod("DELETED", pod("job-0-worker-0"), 15.0)
    timeline.saw_pod("ADDED", pod("job-0-worker-0", uid="another"), 15.5)
    assert timeline.extra_pods() == 1
    assert timeline.most_pods == 2


def test_of_pods_that_come_and_go_the_most_at_once_are_counted() -> None:
    timeline = begun(pods=3)
    for change, name in (("ADDED", "0"), ("DELETED", "0"), ("ADDED", "1"), ("ADDED", "2")):
        timeline.saw_pod(change, pod(f"job-0-worker-{name}"), 11.0)
    assert timeline.most_pods == 2


def test_what_belongs_to_no_job_of_ours_is_nothing() -> None:
    timeline = begun()
    timeline.saw_pod("ADDED", thing("probe"), 11.0)
    timeline.saw_pod("ADDED", thing("job-7-worker-0", job="job-7"), 11.0)
    timeline.saw_service("ADDED", thing("kubernetes"), 11.0)
    assert not timeline.has_begun
    assert not timeline.services


def test_services_are_to_go_as_well() -> None:
    timeline = a_life("job-0-worker-0")
    timeline.saw_service("ADDED", pod("job-0-worker-0"), 11.0)
    completed(timeline, 14.5)
    clean(timeline, 15.0)
    assert not over(timeline)
    timeline.saw_service("DELETED", pod("job-0-worker-0"), 18.0)
    assert over(timeline)
    assert timeline.times()["cleaned"] == 8.0


def test_who_only_creates_is_done_when_all_pods_are_there() -> None:
    timeline = begun(only_creates=True)
    timeline.saw_pod("ADDED", pod("job-0-worker-0"), 11.0)
    assert not over(timeline)
    timeline.saw_pod("ADDED", pod("job-0-worker-1"), 12.0)
    assert over(timeline)
    assert timeline.times() == {"created": 2.0, "job_created_median": 2.0, "job_created_worst": 2.0}


def test_what_is_not_cleaned_is_over_when_it_is_completed() -> None:
    timeline = begun(1, cleans=False)
    timeline.saw_pod("ADDED", pod("job-0-worker-0", "Succeeded"), 11.0)
    completed(timeline, 12.0)
    assert over(timeline)
    assert "cleaned" not in timeline.times()


@pytest.mark.parametrize(
    ("status", "ended"),
    [
        pytest.param(Status("Completed"), True, id="ours, and the Go one"),
        pytest.param(Status("", [Condition("Succeeded", "True")]), True, id="Kubeflow"),
        pytest.param(Status("", [Condition("Succeeded", "False")]), False, id="not yet"),
        pytest.param(Status("Running"), False, id="runs"),
        pytest.param(Status(), False, id="a bookmark"),
    ],
)
def test_how_a_job_says_that_it_is_completed(status: Status, ended: bool) -> None:
    assert Thing(OwnedMeta(name="job-0"), status).is_completed is ended
