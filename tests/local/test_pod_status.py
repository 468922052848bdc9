"""How a pod looks from outside."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from paddle_operator.api.core import PodStatus
from paddle_operator.local.pod_status import ContainerReport, PodReport, running, stamp, terminated, waiting

NOON = datetime(2026, 11, 18, 12, 0, 0, 654321, tzinfo=UTC)
LATER = NOON + timedelta(seconds=90)

NEW = waiting("PodInitializing")
HELD = waiting("CreateContainerConfigError", 'configmap "m" not found')
RUNS = running(NOON)
GOOD = terminated(0, NOON, LATER)
BAD = terminated(3, NOON, LATER)
CRASHED = waiting("CrashLoopBackOff", "exit code 3; again in 10 s")

State = dict[str, Any]


def report(
    initial: list[State],
    main: list[State],
    *,
    before: State | None = None,
    again: bool = False,
    reason: str = "",
) -> PodReport:
    def containers(kind: str, states: list[State]) -> list[ContainerReport]:
        return [
            ContainerReport(f"{kind}-{place}", "image", state, before or {}, restarts=2 if before else 0)
            for place, state in enumerate(states)
        ]

    return PodReport(
        address="127.0.1.1",
        node_address="127.0.0.1",
        started=NOON,
        restarts_failures=again,
        initial=containers("init", initial),
        main=containers("main", main),
        reason=reason,
    )


@pytest.mark.parametrize(
    ("initial", "main", "phase"),
    [
        ([], [NEW], "Pending"),
        ([], [HELD], "Pending"),
        ([], [RUNS], "Running"),
        ([], [GOOD], "Succeeded"),
        ([], [BAD], "Failed"),
        ([], [NEW, RUNS], "Running"),
        ([], [HELD, GOOD], "Running"),
        ([], [HELD, NEW], "Pending"),
        ([], [GOOD, RUNS], "Running"),
        ([], [BAD, RUNS], "Running"),
        ([], [GOOD, GOOD], "Succeeded"),
        ([], [GOOD, BAD], "Failed"),
        ([], [BAD, GOOD], "Failed"),
        ([RUNS], [NEW], "Pending"),
        ([HELD], [NEW], "Pending"),
        ([GOOD], [NEW], "Pending"),
        ([GOOD], [RUNS], "Running"),
        ([GOOD], [GOOD], "Succeeded"),
        ([BAD], [NEW], "Failed"),
        ([BAD, NEW], [NEW], "Failed"),
        ([GOOD, BAD], [NEW, NEW], "Failed"),
    ],
)
def test_phase_where_nothing_is_started_again(initial: list[State], main: list[State], phase: str) -> None:
    assert report(initial, main).phase == phase


@pytest.mark.parametrize(
    ("initial", "main", "before", "phase"),
    [
        ([], [NEW], None, "Pending"),
        ([], [RUNS], None, "Running"),
        ([], [GOOD], None, "Succeeded"),
        ([], [GOOD], BAD, "Succeeded"),
        # On the way to its next try.
        ([], [BAD], None, "Running"),
        ([], [CRASHED], BAD, "Running"),
        ([], [HELD], BAD, "Running"),
        ([], [GOOD, BAD], None, "Running"),
        ([], [GOOD, CRASHED], BAD, "Running"),
        ([BAD], [NEW], None, "Pending"),
        ([CRASHED], [NEW], None, "Pending"),
        ([GOOD], [GOOD], None, "Succeeded"),
    ],
)
def test_phase_where_failures_are_started_again(
    initial: list[State], main: list[State], before: State | None, phase: str
) -> None:
    assert report(initial, main, before=before, again=True).phase == phase


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("state", [NEW, HELD, GOOD, BAD])
def test_a_pod_that_failed_as_a_whole_has_failed_and_says_why(state: State, again: bool) -> None:
    status = report([], [state], again=again, reason="DeadlineExceeded").status()
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")


@pytest.mark.parametrize(
    ("initial", "main", "phase"), [([], [RUNS, BAD], "Running"), ([RUNS], [NEW], "Pending")]
)
def test_a_pod_has_not_failed_while_something_runs(
    initial: list[State], main: list[State], phase: str
) -> None:
    status = report(initial, main, reason="DeadlineExceeded").status()
    assert status["phase"] == phase
    assert "reason" not in status


@pytest.mark.parametrize(
    ("made", "document"),
    [
        (waiting("ContainerCreating"), {"waiting": {"reason": "ContainerCreating"}}),
        (waiting("X", "because"), {"waiting": {"reason": "X", "message": "because"}}),
        (running(NOON), {"running": {"startedAt": "2026-11-18T12:00:00Z"}}),
        (
            terminated(0, NOON, LATER),
            {
                "terminated": {
                    "exitCode": 0,
                    "reason": "Completed",
                    "startedAt": "2026-11-18T12:00:00Z",
                    "finishedAt": "2026-11-18T12:01:30Z",
                }
            },
        ),
    ],
)
def test_states_are_written_as_a_kubelet_writes_them(made: State, document: State) -> None:
    assert made == document


@pytest.mark.parametrize(
    ("code", "reason", "said"),
    [(0, "", "Completed"), (1, "", "Error"), (137, "", "Error"), (127, "StartError", "StartError")],
)
def test_why_a_container_ended(code: int, reason: str, said: str) -> None:
    assert terminated(code, NOON, LATER, reason)["terminated"]["reason"] == said


def test_a_container_begins_waiting() -> None:
    status = ContainerReport("paddle", "image").status()
    assert status == {
        "name": "paddle",
        "image": "image",
        "imageID": "",
        "ready": False,
        "started": False,
        "restartCount": 0,
        "state": {"waiting": {"reason": "PodInitializing"}},
        "lastState": {},
    }


@pytest.mark.parametrize(("state", "ready"), [(NEW, False), (RUNS, True), (GOOD, False), (BAD, False)])
def test_a_container_is_ready_while_it_runs(state: State, ready: bool) -> None:
    status = ContainerReport("paddle", "image", state).status()
    assert (status["ready"], status["started"]) == (ready, ready)


def test_the_operator_can_read_all_of_it() -> None:
    whole = report([GOOD], [RUNS, CRASHED], before=BAD).status()
    read = msgspec.json.decode(msgspec.json.encode(whole), type=PodStatus)
    assert (read.phase, read.pod_ip, read.pod_ips[0].ip) == ("Running", "127.0.1.1", "127.0.1.1")
    assert [one.name for one in read.init_container_statuses] == ["init-0"]
    assert [(one.name, one.ready, one.restart_count) for one in read.container_statuses] == [
        ("main-0", True, 2),
        ("main-1", False, 2),
    ]
    crashed = read.container_statuses[1].state.waiting
    assert crashed is not None
    assert crashed.reason == "CrashLoopBackOff"
    assert (whole["hostIP"], whole["startTime"]) == ("127.0.0.1", stamp(NOON))


def test_what_a_pod_has_not_is_left_out() -> None:
    assert {"reason", "initContainerStatuses"}.isdisjoint(report([], [NEW]).status())
