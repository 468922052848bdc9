"""Whom to blame where several trainers run in one pod, with the ends of their logs and without."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import make
import pytest
from make import NOW, seconds

from paddle_operator.api.core import Pod
from paddle_operator.api.meta import Manifest
from paddle_operator.api.paddlejob import Failure, PaddleJob
from paddle_operator.paddlejob.failures import LONG_PATIENCE, PATIENCE, find_failure

GLOO = "/paddle/third_party/gloo/gloo/transport/tcp/pair.cc:584] TIMEOUT"
RAISED = 'Traceback (most recent call last):\n  File "train.py", line 17\nValueError: bad batch\n'
READ_ERROR = "[/paddle/third_party/gloo/gloo/transport/tcp/pair.cc:576] Read error [10.0.0.7]:5043: reset\n"
ABORTED = "FatalError: `Process abort signal` is detected by the operating system.\n"


def lost(by: int, of: int) -> str:
    return f"RuntimeError: [{GLOO} self_rank = {by} pair_rank = {of} peer_str = [10.0.0.7]:45966\n"


def said(process: int, code: int, detail: str = "", before: str = "") -> str:
    """By a launcher: the log of its first trainer, its own words, the log of the one it names."""
    line = f"Container rank {process} status failed cmd ['python'] code {code} log log/workerlog.{process}"
    return f"step=1\n{before}LAUNCH ERROR Container failed !!!\n{line}\n{detail}LAUNCH INFO Exit code 1\n"


def own_logs(*logs: str) -> str:
    return "".join(f"==> log/workerlog.{process} <==\n{log}\n" for process, log in enumerate(logs))


def job_of(workers: int, processes: int | None, **spec: Any) -> PaddleJob:
    asked = [] if processes is None else ["--nproc_per_node", str(processes)]
    command = ["python", "-m", "paddle.distributed.launch", *asked, "train.py"]
    return make.paddlejob(workers=workers, pod=make.template(make.container(command=command)), **spec)


def ended(job: PaddleJob, rank: int, code: int, message: str = "", after: float = 0, **status: Any) -> Pod:
    state = {
        "exitCode": code,
        "reason": "Error",
        "message": message,
        "finishedAt": (NOW + seconds(after)).isoformat(),
    }
    statuses = [{"name": "paddle", "state": {"terminated": state}}]
    return make.pod(job, rank, "Failed", containerStatuses=statuses, **status)


@dataclass(frozen=True)
class End:
    code: int
    message: str = ""
    after: float = 0


def verdict(job: PaddleJob, ends: Mapping[int, End], after: float) -> Failure | None:
    """The pods that are not named run on."""
    pods = [
        ended(job, rank, ends[rank].code, ends[rank].message, ends[rank].after)
        if rank in ends
        else make.pod(job, rank, "Running")
        for rank in range(job.roles["worker"].replicas)  # type: ignore[index]
    ]
    seen = make.observed(job, *pods, config_map=make.config_map(job), now=NOW + seconds(after))
    return find_failure(seen).failure


def blamed(job: PaddleJob, ends: Mapping[int, End], after: float = PATIENCE.total_seconds()) -> Failure:
    failure = verdict(job, ends, after)
    assert failure is not None
    return failure


# Global rank 3 of 2 x 2 raises; each row is how launchers have really told of it.
BY_WORDS = {0: End(1, said(0, 1, lost(0, 3), lost(0, 3))), 1: End(241, said(1, 1, RAISED, lost(2, 3)))}
BY_PEERS = {
    0: End(250, said(0, -6, lost(0, 3), lost(0, 3))),
    1: End(250, said(0, -6, lost(2, 3), lost(2, 3))),
}


@pytest.mark.parametrize(
    "ends",
    [
        BY_WORDS,
        BY_PEERS,
        {0: BY_PEERS[0], 1: BY_WORDS[1]},
        {0: BY_WORDS[0], 1: End(250, said(1, 1, RAISED))},
        {0: End(250, said(1, -6, lost(1, 2), lost(0, 3))), 1: End(1, said(0, 1, lost(2, 3)), after=1)},
        {1: End(241, said(1, 1, RAISED))},
        {0: End(250), 1: End(241, said(1, 1, RAISED), after=1)},
        {0: End(250, lost(0, 3)), 1: End(250, lost(2, 3))},
        {
            0: End(250, said(0, -6, READ_ERROR) + own_logs(READ_ERROR, ABORTED)),
            1: End(250, said(0, -6, READ_ERROR) + own_logs(READ_ERROR, RAISED)),
        },
    ],
    ids=[
        "named", "lost by all", "named and lost", "named, its peer aborted", "a chain", "the other runs",
        "the other tells nothing", "the words were cut off", "own logs",
    ],
)  # fmt: skip
def test_rank_3_of_2_x_2_is_the_cause(ends: Mapping[int, End]) -> None:
    failure = blamed(job_of(2, 2), ends)
    assert (failure.pod, failure.local_rank, failure.kind) == ("resnet-worker-1", 1, "code")
    assert "worker 1 (pod resnet-worker-1 on node node-1), process 1 (global rank 3) " in failure.message
    assert failure.log in {"log/workerlog.1", "workerlog.1"}
    assert failure.victims == ("worker 0" if 0 in ends else "")


# Local rank 2 of 4 in one pod is killed.
@pytest.mark.parametrize(
    ("end", "process"),
    [
        (End(241, said(2, -9)), 2),
        (End(247, said(2, -9)), 2),
        (End(1, said(1, 1, lost(1, 2), lost(0, 1))), 2),
        (End(241, said(1, 1, READ_ERROR, lost(0, 1))), 2),
        (End(1, said(0, 1, lost(0, 1), lost(0, 1)) + own_logs(lost(0, 1), READ_ERROR, "step=2", ABORTED)), 2),
        (End(250, said(0, -6, lost(0, 1)) + own_logs(lost(0, 1), lost(1, 2), "step=2", lost(3, 2))), 2),
        # Process 0 has lost process 1, which may have lost process 2, or nobody: only their own logs tell.
        (End(1, said(0, 1, lost(0, 1), lost(0, 1))), None),
        (End(250, said(0, -6, READ_ERROR)), None),
        (End(241, "LAUNCH INFO Exit code -15\n"), None),
        (End(241), None),
    ],
    ids=[
        "named", "named first", "a chain", "all others spoken for", "own logs", "lost by all", "unclear",
        "nobody named", "cut off", "nothing known",
    ],
)  # fmt: skip
def test_process_2_of_4_in_a_lone_pod_is_the_cause_or_none_is_named(end: End, process: int | None) -> None:
    failure = blamed(job_of(1, 4), {0: end}, after=0)
    assert (failure.pod, failure.local_rank, failure.kind) == ("resnet-worker-0", process, "code")
    assert failure.victims == ""


def test_where_nobody_can_be_named_the_log_that_tells_more_is() -> None:
    failure = blamed(job_of(1, 4), {0: End(1, said(0, 1, lost(0, 1), lost(0, 1)))})
    assert (failure.reason, failure.local_rank, failure.log) == ("TrainerFailed", None, "")
    assert "log/workerlog.1 first" in failure.next_step


@pytest.mark.parametrize(
    ("own_code", "kind", "means"),
    [
        (1, "code", "ended with an error of its own"),
        (7, "code", "ended with an error of its own"),
        (-9, "code", "was killed (SIGKILL)"),
        (-11, "code", "crashed (SIGSEGV)"),
        (-7, "code", "was ended by a bus error"),
        (-4, "code", "met an instruction"),
        (-2, "code", "was ended by a signal"),
        (-15, "preempted", "was told to end, by SIGTERM from outside"),
        (127, "config", "could not be run"),
    ],
)
def test_the_code_of_the_trainer_tells_and_not_that_of_its_launcher(
    own_code: int, kind: str, means: str
) -> None:
    failure = blamed(job_of(2, 2), {1: End(241, said(1, own_code))})
    assert (failure.exit_code, failure.kind) == (241, kind)
    assert f"process 1 (global rank 3) {means}" in failure.message
    assert failure.message.endswith(
        f": container paddle exited with 241, its process 1 with {own_code} (log/workerlog.1)"
    )


@pytest.mark.parametrize(
    ("workers", "processes", "messages", "rank"),
    [
        (2, 2, (), " (global rank 3)"),
        (2, None, (), ""),
        (1, None, (), " (global rank 1)"),
        (2, None, ("Run Pod: abcdef, replicas 4, status ready\n",), " (global rank 5)"),
    ],
    ids=["asked for", "not known", "one pod", "the launcher has said so"],
)
def test_the_global_rank_is_told_where_it_is_known(
    workers: int, processes: int | None, messages: tuple[str, ...], rank: str
) -> None:
    job = job_of(workers, processes)
    text = "".join(messages) + said(1, 7)
    failure = blamed(job, {workers - 1: End(7, text)})
    assert f"), process 1{rank} ended with" in failure.message


@pytest.mark.parametrize(
    ("container", "named"),
    [
        ({"command": ["python", "-m", "paddle.distributed.launch", "--nproc_per_node=2", "t.py"]}, 1),
        ({"command": ["sh", "-c"], "args": ["python -m paddle.distributed.launch --nproc_per_node 2"]}, 1),
        ({"env": [{"name": "PADDLE_NPROC_PER_NODE", "value": "2"}]}, 1),
        ({"args": ["--nproc_per_node", "4"], "env": [{"name": "PADDLE_NPROC_PER_NODE", "value": "2"}]}, 1),
        ({"args": ["--nproc_per_node", "$(COUNT)"]}, 1),
        ({"args": ["--nproc_per_node", "0"]}, 1),
        ({"args": ["--nproc_per_node"]}, 1),
        ({"args": ["--nproc_per_node", "9" * 30]}, 1),
        ({"env": [{"name": "PADDLE_NPROC_PER_NODE", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]}, 1),
        ({}, 1),
    ],
    ids=str,
)  # fmt: skip
def test_how_many_processes_a_pod_has_is_read_from_the_template_or_told_by_the_ranks(
    container: Manifest, named: int
) -> None:
    """The launcher of worker 1 names its process 0, which calls itself rank 2: so there are two a pod."""
    job = make.paddlejob(pod=make.template(make.container(**container)))
    failure = blamed(job, BY_PEERS)
    assert (failure.rank, failure.local_rank) == (1, named)


@pytest.mark.parametrize(
    "ends",
    [
        {0: End(250, said(0, -6, lost(0, 1))), 1: End(250, said(0, -6, lost(0, 1)))},
        {0: End(250, said(0, -6, lost(0, 3))), 1: End(250, said(0, -6, lost(2, 4)))},
    ],
    ids=["of another pod", "too high"],
)
def test_ranks_in_a_smaller_group_are_not_taken_for_global_ones(ends: Mapping[int, End]) -> None:
    """Gloo counts within its group: worker 1 has no rank 0, and 2 x 2 no rank 4."""
    failure = blamed(job_of(2, 2), ends)
    assert (failure.local_rank, failure.kind) == (0, "victim")
    assert "lost the connection to a peer" in failure.message


def test_where_the_number_of_processes_is_not_known_nobody_is_guessed() -> None:
    ends = {0: End(250, lost(0, 3)), 1: End(250, lost(2, 3))}
    failure = blamed(job_of(2, None), ends)
    assert (failure.local_rank, failure.kind) == (None, "victim")


@pytest.mark.parametrize(
    ("ends", "rank", "kind"),
    [
        ({0: 250, 1: 241, 2: 250}, 1, "victim"),
        ({0: 134, 1: 250, 2: 241}, 2, "victim"),
        ({0: 241, 1: 7, 2: 250}, 1, "code"),
        ({0: 250, 1: 250, 2: 250}, 0, "victim"),
        ({0: 241, 1: 247, 2: 241}, 1, "code"),
    ],
    ids=str,
)
def test_own_errors_come_first_then_who_was_stopped_then_who_aborted(
    ends: dict[int, int], rank: int, kind: str
) -> None:
    failure = blamed(job_of(3, 2), {one: End(code, after=code == 241) for one, code in ends.items()})
    assert (failure.rank, failure.kind) == (rank, kind)


@pytest.mark.parametrize(
    ("workers", "code", "message", "reason"),
    [
        (2, 241, "", "TrainerFailed"),
        (2, 241, RAISED, "TrainerFailed"),
        (1, 241, "", "TrainerFailed"),
        (1, 250, "", "Aborted"),
        (1, 134, "", "Aborted"),
        (1, 250, lost(0, 1), "TrainerFailed"),
        (1, 1, lost(0, 1), "TrainerFailed"),
    ],
)
def test_a_lone_end_is_that_of_no_victim(workers: int, code: int, message: str, reason: str) -> None:
    """241 if no other pod has ended; in a job of one pod all ends."""
    failure = blamed(job_of(workers, 4), {0: End(code, message)})
    assert (failure.reason, failure.kind, failure.victims) == (reason, "code", "")


def test_241_with_an_exception_goes_before_other_victims_although_the_words_were_cut_off() -> None:
    ends = {0: End(241, "LAUNCH INFO Exit code -15\n"), 1: End(241, RAISED, after=1)}
    failure = blamed(job_of(2, 2), ends)
    assert (failure.rank, failure.reason, failure.victims) == (1, "TrainerFailed", "worker 0")


A_MOMENT = 0.1
SOON, LATE = PATIENCE.total_seconds(), LONG_PATIENCE.total_seconds()


@pytest.mark.parametrize(
    ("ends", "falls_after"),
    [
        ({1: End(241)}, SOON),
        ({1: End(241, said(1, 1, RAISED))}, SOON),
        ({1: End(241, said(1, -9))}, SOON),
        ({0: End(250), 1: End(241, said(1, 7), after=1)}, SOON),
        ({0: End(241), 1: End(241, RAISED)}, SOON),
        (BY_WORDS, 0),
        (BY_PEERS, 0),
        ({1: End(250)}, LATE),
        ({1: End(250, said(0, -6))}, LATE),
        ({1: End(1, said(0, 1, lost(2, 5)))}, LATE),
        ({0: End(250), 1: End(250)}, LATE),
        ({0: End(241), 1: End(250)}, LATE),
    ],
    ids=[
        "stopped, alone", "raised", "killed", "named beside a victim", "raised beside a victim",
        "lost by all, and named", "lost by all", "aborted", "aborted by its words", "lost one that runs",
        "two aborted", "stopped and aborted",
    ],
)  # fmt: skip
def test_how_long_a_verdict_waits_for_a_pod_that_runs_on(ends: Mapping[int, End], falls_after: float) -> None:
    """A minute only if the one that runs may have gone with its node: all that ended are its victims."""
    job = job_of(3, 2)
    assert verdict(job, ends, falls_after) is not None
    if falls_after:
        assert verdict(job, ends, falls_after - A_MOMENT) is None


def test_victims_of_a_node_that_is_lost_wait_for_it_and_it_is_to_blame() -> None:
    job = job_of(3, 2, status={"phase": "Running", "startTime": NOW.isoformat()})
    silent = {"type": "Ready", "status": "False"}
    stopped = [ended(job, 0, 241, said(1, -6, lost(1, 2))), ended(job, 2, 250, said(0, -6, lost(4, 3)))]
    runs, unready = (make.pod(job, 1, "Running", conditions=conditions) for conditions in ([], [silent]))
    config_map = make.config_map(job)
    before = make.observed(job, *stopped, runs, config_map=config_map, now=NOW + seconds(40))
    assert find_failure(before).failure is None
    after = make.observed(job, *stopped, unready, config_map=config_map, now=NOW + seconds(60))
    failure = find_failure(after).failure
    assert failure is not None
    assert (failure.rank, failure.kind, failure.victims) == (1, "node", "worker 0,2")


@pytest.mark.parametrize(("message", "process"), [(said(1, -9), 1), (said(0, -6), None), ("", None)])
def test_memory_that_ran_out_is_laid_upon_the_trainer_that_was_killed_and_upon_no_other(
    message: str, process: int | None
) -> None:
    job = job_of(1, 2)
    state = {"exitCode": 250, "reason": "OOMKilled", "message": message, "finishedAt": NOW.isoformat()}
    statuses = [{"name": "paddle", "state": {"terminated": state}}]
    failure = find_failure(make.observed(job, make.pod(job, 0, "Failed", containerStatuses=statuses))).failure
    assert failure is not None
    assert (failure.kind, failure.local_rank) == ("OOM", process)


def test_a_launcher_that_is_killed_is_the_cause_itself_although_peers_lost_its_trainer() -> None:
    ends = {0: End(250, said(0, -6, lost(0, 1))), 1: End(137, "step=1")}
    failure = blamed(job_of(2, 1), ends)
    assert (failure.rank, failure.local_rank, failure.reason) == (1, None, "Error")
    assert "was killed (SIGKILL)" in failure.message


def test_an_exit_code_that_is_no_victims_is_that_of_the_trainer_that_peers_lost() -> None:
    """Its words were cut off."""
    ends = {0: End(250, said(0, -6, lost(0, 1))), 1: End(7, "SystemExit: 7")}
    failure = blamed(job_of(2, 1), ends)
    assert (failure.rank, failure.local_rank, failure.reason) == (1, 0, "Error")
    assert "process 0 (global rank 1) ended with an error of its own: " in failure.message


@pytest.mark.parametrize(
    "status",
    [
        {"reason": "Evicted"},
        {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]},
        {"metadata": {"deletionTimestamp": NOW.isoformat()}},
    ],
    ids=["evicted", "preempted", "deleted"],
)
def test_what_was_done_to_a_pod_was_done_to_no_trainer_of_it(status: dict[str, Any]) -> None:
    job = job_of(1, 4)
    pod = ended(job, 0, 241, said(1, -9), **status)
    failure = find_failure(make.observed(job, pod)).failure
    assert failure is not None
    assert (failure.local_rank, failure.log) == (None, "")
    assert failure.kind in {"node", "preempted"}


def test_a_side_car_that_fails_has_no_trainers() -> None:
    job = make.paddlejob(workers=1, pod=make.template(make.container(), make.container(name="logger")))
    end = {"exitCode": 3, "reason": "Error", "message": said(1, 1), "finishedAt": NOW.isoformat()}
    statuses = [{"name": "logger", "state": {"terminated": end}}]
    failure = find_failure(make.observed(job, make.pod(job, 0, "Failed", containerStatuses=statuses))).failure
    assert failure is not None
    assert (failure.container, failure.local_rank) == ("logger", None)


def test_no_line_of_a_log_and_no_command_is_told() -> None:
    secret = "hunter2"
    line = f"Container rank 1 status failed cmd ['-p={secret}'] code 1 log log/workerlog.1 \nenv {secret}\n"
    for message in (
        f"{secret}\n{line}{secret}",
        f"{secret}\n{lost(0, 1)}{secret}\n{own_logs(secret, secret)}",
    ):
        failure = blamed(job_of(1, 2), {0: End(241, message)})
        assert secret not in repr(failure)


def report(*processes: tuple[int, str]) -> str:
    """Ranks, each with its error; one with a star lost a peer."""
    told = [
        {"rank": rank, "world": 4}
        | ({"error": error.strip("*")} if error else {})
        | ({"lostPeer": True} if "*" in error else {})
        for rank, error in processes
    ]
    return json.dumps({"paddlepaddle.org/report": 1, "processes": told})


LOST = "RuntimeError*"


@pytest.mark.parametrize(
    ("ends", "pod", "process"),
    [
        # Rank 3 raises, and the others raise as they have lost it, or abort without a word.
        ({0: (1, (0, LOST), (1, LOST)), 1: (1, (2, LOST), (3, "ValueError"))}, 1, 1),
        ({0: (250, (0, ""), (1, "")), 1: (241, (2, ""), (3, "ValueError"))}, 1, 1),
        ({0: (1, (0, "KeyError"), (1, LOST)), 1: (1, (2, LOST), (3, LOST))}, 0, 0),
        # Rank 2 is killed, and says nothing.
        ({0: (1, (0, LOST), (1, LOST)), 1: (241, (2, ""), (3, LOST))}, 1, 0),
    ],
)
def test_reports_tell_who_failed_by_itself(ends: dict[int, tuple[Any, ...]], pod: int, process: int) -> None:
    """With a report in the file of its message, a pod has no end of a log in its status."""
    told = {rank: End(code, report(*said)) for rank, (code, *said) in ends.items()}
    failure = blamed(job_of(2, 2), told)
    assert (failure.rank, failure.local_rank, failure.kind) == (pod, process, "code")
