"""Workers that each trained alone: what their reports must say, and what becomes of the job."""

import json
from typing import Any

import make
import pytest
from make import NOW, seconds
from plans import actions

from paddle_operator.api.core import Pod
from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.paddlejob.ends import Counts
from paddle_operator.paddlejob.failures import find_failure
from paddle_operator.paddlejob.reconcile import reconcile
from paddle_operator.paddlejob.slim import slim
from paddle_operator.plan import SetStatus

Said = dict[str, Any]


def nodes(count: int) -> Said:
    return {"nodes": count}


def processes(*pairs: tuple[int, int]) -> Said:
    """Ranks, each with the world that it saw."""
    return {"processes": [{"rank": rank, "world": world} for rank, world in pairs]}


def ended(job: PaddleJob, rank: int, said: Said | str | None, code: int = 0) -> Pod:
    message = json.dumps({"paddlepaddle.org/report": 1, **said}) if isinstance(said, dict) else said or ""
    end = {"exitCode": code, "message": message, "finishedAt": NOW.isoformat()}
    statuses = [{"name": "paddle", "state": {"terminated": end}}]
    # As it comes out of the cache.
    return slim(make.pod(job, rank, "Failed" if code else "Succeeded", containerStatuses=statuses))


def phase_and_message(job: PaddleJob, *pods: Pod) -> tuple[str, str]:
    plan = reconcile(make.observed(job, *pods, config_map=make.config_map(job)))
    (written,) = actions(plan, SetStatus)
    return written.changes["phase"], (written.changes.get("failure") or {}).get("message", "")


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (nodes(1), nodes(1), "worker 0 (pod resnet-worker-0) has a launcher that knows of 1 of 2 pods"),
        (nodes(2), nodes(1), "worker 1 (pod resnet-worker-1) has a launcher that knows of 1 of 2 pods"),
        (nodes(1), None, "worker 0 (pod resnet-worker-0) has a launcher that knows of 1 of 2 pods"),
        (
            processes((0, 1)),
            processes((0, 1)),
            "worker 0 (pod resnet-worker-0) trained in a world of 1, but the job has 2 workers",
        ),
        (
            processes((0, 2), (1, 2)),
            processes((0, 2), (1, 2)),
            "worker 1 (pod resnet-worker-1) had rank 0, and so had worker 0 (pod resnet-worker-0)",
        ),
        (
            processes((0, 4), (1, 4)),
            processes((2, 2)),
            "worker 1 (pod resnet-worker-1) trained in a world of 2, and worker 0 (pod resnet-worker-0) in",
        ),
    ],
)
def test_workers_that_trained_alone_fail_the_job(first: Said | None, second: Said | None, words: str) -> None:
    job = make.paddlejob(workers=2, runPolicy={"backoffLimit": 3})
    phase, message = phase_and_message(job, ended(job, 0, first), ended(job, 1, second))
    assert phase == "Failed"
    assert message.startswith(words)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (None, None),
        (nodes(2), nodes(2)),
        (processes((0, 2)), processes((1, 2))),
        (processes((0, 4), (1, 4)), processes((2, 4), (3, 4))),
        (processes((0, 2)), None),
        # What says nothing, or nothing that we understand, is no evidence.
        ({}, {"processes": [{}]}),
        ("all is well", '{"paddlepaddle.org/report": 1, "nodes": '),
        ('{"paddlepaddle.org/report": 2, "nodes": 1}', '{"paddlepaddle.org/report": true, "nodes": 1}'),
        ('{"paddlepaddle.org/report": 1, "nodes": 0}', '{"paddlepaddle.org/report": 1, "nodes": "1"}'),
        ('{"paddlepaddle.org/report": 1, "processes": {"rank": 0}}', "[" * 4000),
        # A later version may say more.
        ({**nodes(2), "weather": "fine"}, {"processes": [{"rank": 1, "world": 2, "mood": 1}]}),
    ],
)
def test_a_job_of_which_nobody_says_so_is_completed(first: Said | str, second: Said | str) -> None:
    job = make.paddlejob(workers=2)
    assert phase_and_message(job, ended(job, 0, first), ended(job, 1, second)) == ("Completed", "")


def test_ranks_may_be_independent_on_purpose() -> None:
    metadata = {"annotations": {"paddlepaddle.org/independent-ranks": "true"}}
    job = make.paddlejob(workers=2, metadata=metadata)
    pods = [ended(job, rank, processes((0, 1))) for rank in (0, 1)]
    assert phase_and_message(job, *pods) == ("Completed", "")


def test_one_worker_is_enough_to_know_and_the_job_does_not_go_on() -> None:
    job = make.paddlejob(workers=2)
    pods = [ended(job, 0, nodes(1)), make.pod(job, 1, "Running")]
    found = find_failure(make.observed(job, *pods, config_map=make.config_map(job)))
    assert found.failure is not None
    assert (found.failure.reason, found.counts) == ("TrainedAlone", Counts.NOTHING)
    assert "paddlepaddle.org/independent-ranks" in found.failure.next_step


def test_who_finds_itself_alone_and_fails_is_told_so() -> None:
    """The module for training scripts raises an error then; what it has written says why."""
    job = make.paddlejob(workers=2)
    said = {"processes": [{"rank": 0, "world": 1, "error": "TrainsAlone"}]}
    pods = [ended(job, 0, said, code=1), make.pod(job, 1, "Running")]
    found = find_failure(make.observed(job, *pods, config_map=make.config_map(job)))
    assert found.failure is not None
    assert found.failure.reason == "TrainedAlone"


def test_who_failed_otherwise_has_failed_otherwise() -> None:
    """It may have been evicted while it prepared something by itself: that can be tried again."""
    job = make.paddlejob(workers=2)
    pods = [ended(job, 0, processes((0, 1)), code=137), make.pod(job, 1, "Running")]
    seen = make.observed(job, *pods, config_map=make.config_map(job), now=NOW + seconds(60))
    found = find_failure(seen)
    assert found.failure is not None
    assert found.failure.reason != "TrainedAlone"


def test_who_evaluates_alone_on_purpose_after_training_together_says_so() -> None:
    job = make.paddlejob(workers=2)
    alone = {"processes": [{"rank": 0, "world": 1, "alone": True}]}
    assert phase_and_message(job, ended(job, 0, alone), ended(job, 1, alone)) == ("Completed", "")


def test_who_was_told_wrong_peers_begins_anew_and_is_not_blamed() -> None:
    job = make.paddlejob(workers=2)
    pods = [ended(job, 0, processes((0, 1))), make.pod(job, 1, "Running", ip="198.18.0.99")]
    found = find_failure(make.observed(job, *pods, config_map=make.config_map(job)))
    assert found.failure is None or found.failure.reason == "AddressChanged"


def test_a_single_worker_is_never_alone_by_mistake() -> None:
    job = make.paddlejob(workers=1)
    assert phase_and_message(job, ended(job, 0, {**nodes(1), **processes((0, 1))})) == ("Completed", "")
