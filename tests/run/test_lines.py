"""What is printed where no terminal is: only news, and not too much of it."""

from dataclasses import replace

import pytest
from msgspec import structs

from paddle_operator.api.paddlejob import Failure
from paddle_operator.run.lines import Lines
from paddle_operator.run.scene import JobScene, Measurement, PodScene, ProcessScene, Scene

JOB = JobScene(
    name="default/resnet",
    mode="Collective",
    phase="Running",
    condition="Running (AllPodsRun): 2 of 2 pods run",
    seconds=12.34,
    pods=(),
    curve=(),
    finished=False,
)


def pod(rank: int, state: str = "Running", reason: str = "", restarts: int = 0) -> PodScene:
    return PodScene(
        name=f"resnet-worker-{rank}",
        role="worker",
        rank=rank,
        address=f"127.0.1.{rank + 1}" if state != "Pending" else "",
        state=state,
        reason=reason,
        restarts=restarts,
        last_line="",
        latest=None,
    )


def curve(last: int) -> tuple[Measurement, ...]:
    return tuple(Measurement(step, 1 / step) for step in range(1, last + 1))


def told(*jobs: JobScene) -> list[list[str]]:
    """What is said of one job at each of its moments."""
    lines = Lines()
    return [lines.changes(Scene((job,))) for job in jobs]


@pytest.mark.parametrize(
    ("phase", "condition", "line"),
    [
        ("Running", "Running (AllPodsRun): 2 of 2 pods run", "Running: 2 of 2 pods run"),
        ("Starting", "Created (PodsCreated): 2 pods", "Starting: Created (PodsCreated): 2 pods"),
        ("", "Created=False (NotServed): no: PS", "Created=False (NotServed): no: PS"),
        ("Running", "Running", "Running"),
        ("Pending", "", "Pending"),
        ("Failed", "Failed (PodFailed): two\nlines", "Failed: two lines"),
    ],
)
def test_a_job_is_told_by_phase_and_condition(phase: str, condition: str, line: str) -> None:
    job = replace(JOB, phase=phase, condition=condition)
    assert told(job) == [[f"12.3s default/resnet {line}"]]


def test_a_job_that_the_operator_has_not_seen_is_not_told() -> None:
    assert told(replace(JOB, phase="", condition="")) == [[]]


def test_nothing_is_told_twice() -> None:
    job = replace(JOB, pods=(pod(0),), curve=curve(3))
    first, second, at_the_end, after_it = told(
        job,
        replace(job, seconds=99.0, curve=curve(1)),
        replace(job, seconds=99.0, finished=True),
        replace(job, seconds=99.0, finished=True),
    )
    assert len(first) == 3
    assert second == []
    assert at_the_end == ["99.0s default/resnet step 3 loss 0.3333"]
    assert after_it == []


def test_a_pod_is_told_when_its_state_changes() -> None:
    moments = [
        pod(0, "Pending", "CreateContainerConfigError"),
        pod(0, "Pending"),
        pod(0, "Starting"),
        replace(pod(0, "Starting"), address="127.0.1.9", last_line="hello", latest=Measurement(1, 1.0)),
        pod(0),
        pod(0, restarts=1),
        pod(0, "Failed", "exit\ncode 1", restarts=1),
    ]
    job = replace(JOB, phase="", condition="")
    assert told(*(replace(job, pods=(one,)) for one in moments), job) == [
        ["12.3s resnet-worker-0 Pending (CreateContainerConfigError)"],
        ["12.3s resnet-worker-0 Pending"],
        ["12.3s resnet-worker-0 Starting 127.0.1.1"],
        [],
        ["12.3s resnet-worker-0 Running 127.0.1.1"],
        ["12.3s resnet-worker-0 Running 127.0.1.1 (restart 1)"],
        ["12.3s resnet-worker-0 Failed 127.0.1.1 (restart 1, exit code 1)"],
        ["12.3s resnet-worker-0 gone"],
    ]


def test_a_pod_that_is_made_anew_is_told_although_it_does_the_same() -> None:
    job = replace(JOB, phase="", condition="")
    anew = replace(pod(0), attempt=1, address="127.0.1.3")
    assert told(*(replace(job, pods=(one,)) for one in (pod(0), anew, anew))) == [
        ["12.3s resnet-worker-0 Running 127.0.1.1"],
        ["12.3s resnet-worker-0 Running 127.0.1.3 (try 1)"],
        [],
    ]


FAILURE = Failure(
    message="worker 1 crashed", kind="code", victims="worker 0", next_step="look at its\nlog", attempt=0
)
NEXT = "class: code; victims: worker 0; next step: look at its log"
RESTARTING = replace(
    JOB,
    phase="Restarting",
    condition="Restarting (PodFailed): worker 1 crashed; failures 1 of 3 (backoffLimit)",
    restarts=1,
    failures=(FAILURE,),
)


def test_a_restart_is_told_with_its_cause_and_the_next_step() -> None:
    running = replace(JOB, restarts=1, failures=(FAILURE,))
    assert told(JOB, RESTARTING, RESTARTING, running) == [
        ["12.3s default/resnet Running: 2 of 2 pods run"],
        [
            "12.3s default/resnet Restarting: worker 1 crashed; failures 1 of 3 (backoffLimit)",
            f"12.3s default/resnet try 0 failed; {NEXT}",
        ],
        [],
        ["12.3s default/resnet Running: 2 of 2 pods run"],
    ]


def test_a_restart_that_nobody_saw_is_told_all_the_same() -> None:
    again = structs.replace(FAILURE, message="kubectl logs a -c b", attempt=1, victims="", next_step="")
    moment = replace(JOB, restarts=2, failures=(FAILURE, again))
    assert told(JOB, moment)[1] == [
        f"12.3s default/resnet try 0 failed: worker 1 crashed; {NEXT}",
        "12.3s default/resnet try 1 failed: --logs shows it; class: code",
    ]


def test_the_last_failure_is_left_to_the_report() -> None:
    failed = replace(
        JOB, phase="Failed", condition="Failed (PodFailed): x", finished=True, failures=(FAILURE,)
    )
    assert told(JOB, failed)[1] == ["12.3s default/resnet Failed: x"]


def test_more_than_eight_pods_that_do_the_same_take_one_line() -> None:
    job = replace(JOB, phase="", condition="")
    eight = tuple(pod(rank) for rank in range(8))
    nine_and_one = (*(pod(rank) for rank in range(9)), pod(9, "Pending"))
    crash = (
        *(pod(rank, "Failed", "exit code 1") for rank in range(7)),
        *(pod(rank, "Failed", "OOMKilled") for rank in range(7, 9)),
        pod(9, "Pending"),
    )
    assert len(told(replace(job, pods=eight))[0]) == 8
    assert told(replace(job, pods=nine_and_one), replace(job, pods=crash), job) == [
        ["12.3s default/resnet 9 pods Running", "12.3s resnet-worker-9 Pending"],
        ["12.3s default/resnet 9 pods Failed, 7 with exit code 1, 2 with OOMKilled"],
        ["12.3s default/resnet 10 pods gone"],
    ]


def test_pods_come_before_the_job_that_is_judged_by_them() -> None:
    done = replace(
        JOB, phase="Completed", condition="", pods=(pod(0, "Succeeded"),), curve=curve(2), finished=True
    )
    assert told(done) == [
        [
            "12.3s resnet-worker-0 Succeeded 127.0.1.1",
            "12.3s default/resnet step 1 loss 1.0000",
            "12.3s default/resnet step 2 loss 0.5000",
            "12.3s default/resnet Completed",
        ]
    ]


def test_measurements_come_about_once_a_second_with_the_first_and_the_last() -> None:
    job = replace(JOB, phase="", condition="")
    # Four measurements a second.
    moments = [replace(job, seconds=tick / 4, curve=curve(tick)) for tick in range(1, 12)]
    end = replace(moments[-1], finished=True)
    assert [line for lines in told(*moments, end) for line in lines] == [
        "0.2s default/resnet step 1 loss 1.0000",
        "1.2s default/resnet step 5 loss 0.2000",
        "2.2s default/resnet step 9 loss 0.1111",
        "2.8s default/resnet step 11 loss 0.0909",
    ]


def test_the_last_measurement_of_a_try_is_told_before_the_next_one_begins() -> None:
    job = replace(JOB, phase="", condition="")
    over = replace(job, phase="Restarting", condition="", curve=curve(3))
    assert told(replace(job, curve=curve(2)), over, over) == [
        ["12.3s default/resnet step 1 loss 1.0000"],
        ["12.3s default/resnet step 3 loss 0.3333", "12.3s default/resnet Restarting"],
        [],
    ]


def test_a_loss_that_is_no_number_is_told_once() -> None:
    job = replace(JOB, phase="", condition="", finished=True)
    # Two objects that are not equal, because a scene is made anew each time.
    moments = [replace(job, curve=(Measurement(None, float("nan")),)) for _ in range(2)]
    assert moments[0] != moments[1]
    assert told(*moments) == [["12.3s default/resnet loss nan"], []]


def test_jobs_are_told_apart_and_a_job_that_goes_away_is_told() -> None:
    other = replace(JOB, name="default/bert", seconds=2.0, condition="")
    lines = Lines()
    assert len(lines.changes(Scene((JOB, other)))) == 2
    assert lines.changes(Scene((JOB,))) == ["2.0s default/bert gone"]
    assert lines.changes(Scene((JOB,))) == []


# Several processes a pod.


def several(rank: int, processes: int = 2) -> PodScene:
    name = f"resnet-worker-{rank}"
    found = (
        ProcessScene(f"{name}:{k}", k, f"line of {k}", Measurement(9, 0.5) if k == 0 else None)
        for k in range(processes)
    )
    return replace(pod(rank), processes=tuple(found))


def test_how_far_each_of_several_processes_came_is_told_when_no_more_can_come() -> None:
    running = replace(JOB, pods=(several(0), pod(1)))
    again = replace(running, phase="Restarting", condition="Restarting (PodFailed): so")
    before, restarting, meanwhile, anew, end, after = told(
        running, again, again, running, replace(running, finished=True), replace(running, finished=True)
    )
    each = [
        "12.3s resnet-worker-0:0 step 9 loss 0.5000, last line: line of 0",
        "12.3s resnet-worker-0:1 last line: line of 1",
    ]
    assert not any("last line" in line for line in [*before, *anew])
    assert restarting == [*each, "12.3s default/resnet Restarting: so"]
    assert end == each
    assert meanwhile == after == []


def test_of_many_processes_nobody_wants_to_hear() -> None:
    job = replace(JOB, pods=tuple(several(rank, 3) for rank in range(3)), finished=True)
    assert not any("last line" in line for line in told(job)[0])
