"""What is said at the end of a run."""

import io
from pathlib import Path
from typing import Any

import make
import pytest
from rich.console import Console

from paddle_operator.api.meta import Key, Manifest
from paddle_operator.api.paddlejob import Failure, PaddleJob
from paddle_operator.local.logs import log_file, process_log
from paddle_operator.run.culprit import SHOWN_LINES
from paddle_operator.run.report import exit_code, report
from paddle_operator.run.scene import JobScene, Measurement, Scene
from paddle_operator.run.session import End, Result

CONDITION = "Running (AllPodsRun): 2 pods run"
FAILURE = {"pod": "resnet-worker-1", "container": "paddle", "rank": 1, "exitCode": 3}


def job(phase: str, name: str = "resnet", **status: Any) -> PaddleJob:
    return make.paddlejob(name, status={"phase": phase, **status})


def failed(failure: Manifest | None = FAILURE, message: str = "worker 1 ended with 3") -> PaddleJob:
    conditions = [{"type": "Failed", "status": "True", "reason": "PodFailed", "message": message}]
    status = {"conditions": conditions, "failure": failure} if failure else {"conditions": conditions}
    return make.paddlejob(status={"phase": "Failed", **status})


def result(
    *jobs: PaddleJob,
    end: End = End.FINISHED,
    curve: tuple[Measurement, ...] = (),
    failures: tuple[Failure, ...] = (),
) -> Result:
    scenes = tuple(
        JobScene(
            name=str(one.metadata.key),
            mode="Collective",
            phase=one.status.phase,
            condition=CONDITION,
            seconds=12.34,
            pods=(),
            curve=curve,
            finished=one.status.finished,
            restarts=one.status.restarts,
            failures=failures,
        )
        for one in jobs
    )
    return Result(end, jobs, (), Scene(scenes))


def said(found: Result, logs: Path) -> list[str]:
    output = io.StringIO()
    report(found, Console(file=output, width=60), logs)
    return output.getvalue().splitlines()


def write_process(logs: Path, text: str, local_rank: int, pod: str = "resnet-worker-1") -> None:
    process_log(log_file(logs, Key("team", pod), "paddle"), local_rank).write_text(text)


def write_log(logs: Path, text: str, pod: str = "resnet-worker-1", container: str = "paddle") -> None:
    file = log_file(logs, Key("team", pod), container)
    file.parent.mkdir(parents=True)
    file.write_text(text)


@pytest.mark.parametrize(
    ("end", "phases", "code"),
    [
        (End.FINISHED, ["Completed"], 0),
        (End.FINISHED, ["Completed", "Completed"], 0),
        (End.FINISHED, ["Failed"], 1),
        (End.FINISHED, ["Completed", "Failed"], 1),
        (End.FINISHED, [""], 1),
        (End.FINISHED, ["Running"], 1),
        (End.TIMED_OUT, ["Running"], 124),
        (End.TIMED_OUT, ["Completed", "Running"], 124),
        (End.INTERRUPTED, ["Running"], 130),
        (End.INTERRUPTED, ["Failed", "Running"], 130),
    ],
)
def test_the_exit_code_is_0_only_for_completed(end: End, phases: list[str], code: int) -> None:
    assert exit_code(result(*map(job, phases), end=end)) == code


LOGS_TELL = "--logs shows what its pods say"


@pytest.mark.parametrize(
    ("end", "one", "line"),
    [
        (End.FINISHED, job("Completed"), "team/resnet Completed after 12.3 s"),
        (End.FINISHED, failed(None), "team/resnet Failed after 12.3 s: worker 1 ended with 3"),
        (End.FINISHED, job("Failed"), "team/resnet Failed after 12.3 s: no reason is known"),
        (
            End.TIMED_OUT,
            job("Running"),
            "team/resnet out of time (--timeout) after 12.3 s; it was Running: 2 pods run; " + LOGS_TELL,
        ),
        (
            End.INTERRUPTED,
            job(""),
            f"team/resnet stopped by you after 12.3 s; it was {CONDITION}",
        ),
        (End.INTERRUPTED, job("Completed"), "team/resnet Completed after 12.3 s"),
    ],
)
def test_a_verdict_is_one_line_however_long(tmp_path: Path, end: End, one: PaddleJob, line: str) -> None:
    assert said(result(one, end=end), tmp_path) == [line]


def test_every_job_has_its_verdict(tmp_path: Path) -> None:
    lines = said(result(job("Completed", "one"), job("Failed", "two")), tmp_path)
    assert [line.split(" after")[0] for line in lines] == ["team/one Completed", "team/two Failed"]


def test_brackets_in_a_message_are_no_markup(tmp_path: Path) -> None:
    assert said(result(failed(None, "[red]x[/]")), tmp_path) == ["team/resnet Failed after 12.3 s: [red]x[/]"]


def test_a_loss_is_shown_as_a_table(tmp_path: Path) -> None:
    curve = (Measurement(1, 0.5), Measurement(2, 0.25))
    lines = said(result(job("Completed"), curve=curve), tmp_path)
    assert [line.split()[:2] for line in lines[1:]] == [["step", "loss"], ["1", "0.5000"], ["2", "0.2500"]]


# Restarts, and what is known of a failure.

USED = "failures 1 (backoffLimit 3), disruptions 0 (maxDisruptions 3)"


def restarted(phase: str, restarts: int = 1, **status: Any) -> PaddleJob:
    counts = {"phase": phase, "restarts": restarts, "failures": 1, "attempt": restarts}
    return make.paddlejob(status=counts | status, runPolicy={"backoffLimit": 3})


def test_a_job_that_completed_after_restarts_says_how_many_and_why(tmp_path: Path) -> None:
    earlier = tuple(Failure(message=f"worker {number} crashed", attempt=number) for number in range(2))
    assert said(result(restarted("Completed", 2), failures=earlier), tmp_path) == [
        "team/resnet Completed after 12.3 s",
        f"  restarts   2: {USED}",
        "  try 0      worker 0 crashed",
        "  try 1      worker 1 crashed",
    ]


def test_of_many_restarts_the_last_are_told(tmp_path: Path) -> None:
    earlier = tuple(Failure(message="it crashed", attempt=number) for number in range(100))
    lines = said(result(restarted("Completed", 100), failures=earlier), tmp_path)
    assert lines[2:4] == ["             95 failures before these", "  try 95     it crashed"]
    assert lines[-1] == "  try 99     it crashed"


def test_a_failure_is_told_with_class_victims_and_next_step_and_what_came_before(tmp_path: Path) -> None:
    last = {
        "message": "worker 1 ran out of\nmemory",
        "class": "OOM",
        "victims": "worker 0",
        "nextStep": "raise it",
        "attempt": 1,
    }
    condition = {"type": "Failed", "status": "True", "message": "all of this in one line"}
    one = restarted("Failed", failure=last, conditions=[condition])
    earlier = (Failure(message="worker 1 crashed"), Failure(message="worker 1 ran out", attempt=1))
    assert said(result(one, failures=earlier), tmp_path) == [
        "team/resnet Failed after 12.3 s: worker 1 ran out of memory",
        "  class      OOM",
        "  victims    worker 0",
        "  next step  raise it",
        f"  restarts   1: {USED}",
        "  try 0      worker 1 crashed",
    ]


def test_a_job_that_is_stopped_after_a_restart_says_so_too(tmp_path: Path) -> None:
    one = restarted("Running", failure={"message": "worker 1 crashed", "class": "code"})
    lines = said(result(one, end=End.INTERRUPTED, failures=(Failure(message="worker 1 crashed"),)), tmp_path)
    assert lines[1:] == [f"  restarts   1: {USED}", "  try 0      worker 1 crashed"]


def test_the_log_of_an_earlier_try_is_not_held_against_the_last(tmp_path: Path) -> None:
    write_log(tmp_path, "No module named 'paddle'\n[try 1 begins]\nmine\n")
    assert said(result(failed()), tmp_path)[1:] == ["The last 1 lines of resnet-worker-1 (rank 1):", "  mine"]


# Who is to blame.


def test_the_last_lines_of_the_first_failing_rank(tmp_path: Path) -> None:
    write_log(tmp_path, "".join(f"line {number}\n" for number in range(100)))
    _, title, *lines = said(result(failed()), tmp_path)
    assert title == f"The last {SHOWN_LINES} lines of resnet-worker-1 (rank 1):"
    assert lines == [f"  line {number}" for number in range(80, 100)]


def test_a_short_log_is_shown_whole_and_as_text(tmp_path: Path) -> None:
    write_log(tmp_path, "\x1b[31mred\x1b[0m\n[bold]x[/]\n" + "long " * 40 + "\nlast")
    _, title, *lines = said(result(failed()), tmp_path)
    assert title == "The last 4 lines of resnet-worker-1 (rank 1):"
    assert lines == ["  red", "  [bold]x[/]", "  " + ("long " * 40).strip(), "  last"]


def test_the_log_is_that_of_the_container_that_failed(tmp_path: Path) -> None:
    write_log(tmp_path, "of init\n", container="early")
    assert said(result(failed({**FAILURE, "container": "early"})), tmp_path)[2:] == ["  of init"]


@pytest.mark.parametrize(
    ("local_rank", "shown"),
    [
        (1, ["The last 1 lines of resnet-worker-1:1 (rank 1, local rank 1):", "  I am 1"]),
        (None, ["The last 1 lines of resnet-worker-1 (rank 1):", "  the launcher's words"]),
    ],
)
def test_of_several_processes_that_which_failed_is_shown(
    tmp_path: Path, local_rank: int | None, shown: list[str]
) -> None:
    write_log(tmp_path, "the launcher's words\n")
    for rank in range(2):
        write_process(tmp_path, f"I am {rank}\n", rank)
    failure = FAILURE if local_rank is None else {**FAILURE, "localRank": local_rank}
    assert said(result(failed(failure)), tmp_path)[1:] == shown


def test_a_rank_that_printed_nothing(tmp_path: Path) -> None:
    assert said(result(failed()), tmp_path)[1:] == ["resnet-worker-1 (rank 1) printed nothing."]


@pytest.mark.parametrize("failure", [None, {"pod": "resnet-worker-1", "reason": "PodLost"}])
def test_without_a_container_there_is_no_log_to_show(tmp_path: Path, failure: Manifest | None) -> None:
    write_log(tmp_path, "hello\n")
    assert len(said(result(failed(failure)), tmp_path)) == 1


def test_a_job_that_completed_has_nobody_to_blame(tmp_path: Path) -> None:
    write_log(tmp_path, "No module named 'paddle'\n")
    assert len(said(result(job("Completed", failure=FAILURE)), tmp_path)) == 1


@pytest.mark.parametrize(
    ("log", "remedy"),
    [
        ("ModuleNotFoundError: No module named 'paddle'", "pip install 'paddle-operator[local]'"),
        ("AssertionError: x is not a attribute of DistributedStrategy", "pip install 'protobuf<7'"),
        ("python: can't open file '/x/train.py': [Errno 2]", "--image 'NAME=@FOLDER'"),
    ],
)
def test_what_helps_is_said(tmp_path: Path, log: str, remedy: str) -> None:
    write_log(tmp_path, f"before\n{log}\nafter\n")
    last = said(result(failed()), tmp_path)[-1]
    assert last.startswith("Remedy: ")
    assert remedy in last


def test_there_is_no_remedy_for_the_unknown(tmp_path: Path) -> None:
    write_log(tmp_path, "No module named 'paddles'\n")
    assert not any("Remedy" in line for line in said(result(failed()), tmp_path))
