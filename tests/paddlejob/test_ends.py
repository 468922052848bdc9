"""The table of ends: what it says, and that every row of it can be used."""

import string
from collections import Counter
from collections.abc import Iterable

import make
import pytest
from make import NOW

from paddle_operator.api import names
from paddle_operator.api.core import Pod
from paddle_operator.api.meta import Manifest
from paddle_operator.api.paddlejob import Failure
from paddle_operator.paddlejob.ends import (
    IN_GENERAL,
    UNKNOWN,
    Counts,
    Meaning,
    meaning_of,
    meaning_of_waiting,
    meanings_of_code,
    table,
)
from paddle_operator.paddlejob.failures import find_failure

CLASSES = {"code", "OOM", "node", "preempted", "image", "config", "rendezvous", "victim"}
ROWS = [*table().end, *table().waiting]
CODE_ROWS = [row for row in table().end if row.codes]


def title(row: Meaning) -> str:
    return ",".join((*row.reasons, *row.codes))[:40]


every_row = pytest.mark.parametrize("row", ROWS, ids=title)


@pytest.mark.parametrize(
    ("code", "kind", "counts"),
    [
        (1, "code", "failure"),
        (7, "code", "failure"),
        (15, "preempted", "disruption"),
        (101, "rendezvous", "disruption"),
        (125, "code", "failure"),
        (126, "config", "failure"),
        (127, "config", "failure"),
        (128, "code", "failure"),
        (132, "code", "failure"),
        (134, "victim", "failure"),
        (135, "code", "failure"),
        (136, "code", "failure"),
        (137, "code", "failure"),
        (139, "code", "failure"),
        (143, "preempted", "disruption"),
        (200, "code", "failure"),
        (241, "victim", "failure"),
        (245, "code", "failure"),
        (247, "code", "failure"),
        (249, "code", "failure"),
        (250, "victim", "failure"),
        (252, "code", "failure"),
        (255, "code", "failure"),
    ],
)
def test_an_exit_code_has_a_class_and_a_limit(code: int, kind: str, counts: str) -> None:
    for reasons in ((), ("Error",), ("", "Error")):
        meaning = meaning_of(reasons, code)
        assert (meaning.kind, meaning.counts) == (kind, counts)


@pytest.mark.parametrize(
    ("reason", "kind", "counts"),
    [
        ("OOMKilled", "OOM", "failure"),
        ("Evicted", "node", "disruption"),
        ("TerminationByKubelet", "node", "disruption"),
        ("Preempted", "preempted", "disruption"),
        ("Preempting", "preempted", "disruption"),
        ("PreemptionByScheduler", "preempted", "disruption"),
        ("EvictionByEvictionAPI", "preempted", "disruption"),
        ("DeletionByTaintManager", "node", "disruption"),
        ("DeletionByPodGC", "node", "disruption"),
        ("NodeLost", "node", "disruption"),
        ("NodeShutdown", "node", "disruption"),
        ("Terminated", "node", "disruption"),
        ("ContainerStatusUnknown", "node", "disruption"),
        ("Unknown", "node", "disruption"),
        ("OutOfcpu", "node", "disruption"),
        ("OutOfephemeral-storage", "node", "disruption"),
        ("OutOfnvidia.com/gpu", "node", "disruption"),
        ("UnexpectedAdmissionError", "node", "disruption"),
        ("TopologyAffinityError", "node", "disruption"),
        ("SysctlForbidden", "config", "failure"),
        ("StartError", "config", "failure"),
        ("ContainerCannotRun", "config", "failure"),
        ("DeadlineExceeded", "config", "failure"),
        ("PodLost", "preempted", "disruption"),
        ("ServerEnded", "code", "failure"),
        ("RestartedAlone", "rendezvous", "failure"),
        ("PeerGone", "victim", "failure"),
        ("LostByPeers", "code", "failure"),
        ("TrainerFailed", "code", "failure"),
        ("Aborted", "code", "failure"),
    ],
)
@pytest.mark.parametrize("code", [None, 1, 137, 143, 247, 250])
def test_a_reason_goes_before_the_exit_code(reason: str, kind: str, counts: str, code: int | None) -> None:
    meaning = meaning_of((reason,), code)
    assert (meaning.kind, meaning.counts) == (kind, counts)


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("ImagePullBackOff", "image"),
        ("ErrImagePull", "image"),
        ("InvalidImageName", "image"),
        ("ErrImageNeverPull", "image"),
        ("CreateContainerConfigError", "config"),
        ("CreateContainerError", "config"),
        ("RunContainerError", "config"),
        ("PostStartHookError", "config"),
        ("Unschedulable", "config"),
        ("SchedulingGated", "config"),
        ("CrashLoopBackOff", "code"),
    ],
)
def test_a_reason_to_wait_has_a_class(reason: str, kind: str) -> None:
    meaning = meaning_of_waiting(reason)
    assert meaning is not None
    assert meaning.kind == kind


@pytest.mark.parametrize("reason", ["ContainerCreating", "PodInitializing", "", "Fine"])
def test_what_only_takes_its_time_is_no_reason_to_wait(reason: str) -> None:
    assert meaning_of_waiting(reason) is None


@pytest.mark.parametrize(
    ("reasons", "means"),
    [
        (("TerminationByKubelet", "Evicted"), "was evicted by its node"),
        (("TerminationByKubelet", "Terminated", "Error"), "was shut down"),
        (("TerminationByKubelet", "Preempting"), "had to make room"),
        (("TerminationByKubelet", "Error"), "was ended by its node"),
        (("PreemptionByScheduler", "OOMKilled"), "had to make room"),
        (("Evicted", "OOMKilled"), "was evicted"),
        (("NobodyKnows", "OOMKilled"), "used more memory"),
    ],
)
def test_the_first_reason_that_is_known_is_used_and_a_vague_one_last(
    reasons: tuple[str, ...], means: str
) -> None:
    assert means in meaning_of(reasons, 137).means


def test_what_nobody_knows_is_said_so() -> None:
    assert meaning_of((), None) is UNKNOWN
    assert meaning_of(("NobodyKnows",), None) is UNKNOWN
    assert UNKNOWN.kind in CLASSES


def failure_of(pod: Pod, *others: Pod) -> Failure:
    job = make.paddlejob(workers=1 + len(others))
    failure = find_failure(make.observed(job, pod, *others, config_map=make.config_map(job))).failure
    assert failure is not None
    return failure


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, ("code", "Error")),
        ({"reason": "Evicted"}, ("node", "Evicted")),
        ({"reason": "OutOfexample.com/npu"}, ("node", "OutOfexample.com/npu")),
        (
            {"reason": "Terminated", "conditions": [{"type": "DisruptionTarget", "status": "True",
             "reason": "TerminationByKubelet"}]},
            ("node", "Terminated"),
        ),
        (
            {"reason": "Evicted", "conditions": [{"type": "DisruptionTarget", "status": "True",
             "reason": "PreemptionByScheduler"}]},
            ("preempted", "PreemptionByScheduler"),
        ),
    ],
    ids=["its code", "its reason", "a resource", "a node that shuts down", "what was done to it"],
)  # fmt: skip
def test_what_a_pod_says_of_its_end_is_told_in_the_status(
    status: Manifest, expected: tuple[str, str]
) -> None:
    end = {"terminated": {"exitCode": 247, "reason": "Error", "finishedAt": NOW.isoformat()}}
    containers = [{"name": "paddle", "state": end}]
    job = make.paddlejob(workers=1)
    failure = failure_of(make.pod(job, 0, "Failed", containerStatuses=containers, **status))
    assert (failure.kind, failure.reason) == expected


def test_a_trainer_out_of_memory_under_the_launcher_is_247_and_oom() -> None:
    end = {"terminated": {"exitCode": 247, "reason": "OOMKilled", "finishedAt": NOW.isoformat()}}
    job = make.paddlejob(workers=1)
    pod = make.pod(job, 0, "Failed", containerStatuses=[{"name": "paddle", "state": end}])
    failure = failure_of(pod)
    assert (failure.kind, failure.exit_code) == ("OOM", 247)


# That the table is whole: whoever adds a row learns here what is missing in it.


def test_the_classes_are_those_of_the_status() -> None:
    assert set(table().blame) == CLASSES
    assert len(table().blame) == len(CLASSES)
    assert {row.kind for row in ROWS} == CLASSES


@every_row
def test_a_row_is_complete(row: Meaning) -> None:
    assert row.kind in table().blame
    assert row.reasons or row.codes
    assert not (row.reasons and row.codes), "reasons are asked before codes: make two rows"
    assert row.by or row in table().waiting
    assert row.codes or not row.unless
    assert row.kind == "victim" or not row.doubtful


@every_row
def test_sentences_go_into_others(row: Meaning) -> None:
    for sentence in (row.means, row.next):
        assert sentence
        assert sentence == " ".join(sentence.split())
        assert not sentence.endswith((".", ";", ",", ":"))
        assert "|" not in sentence, "it would end a cell of docs/en/troubleshooting.md"
    assert row.means[0].islower()


def gaps(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@every_row
def test_every_gap_is_one_that_can_be_filled(row: Meaning) -> None:
    assert gaps(row.means) | gaps(row.next) <= IN_GENERAL.keys()


@every_row
@pytest.mark.parametrize("fact", ["", "something"])
def test_no_gap_is_left_whatever_is_known(row: Meaning, fact: str) -> None:
    told = row.told(dict.fromkeys(IN_GENERAL, fact))
    for sentence in (told.means, told.next):
        assert not {"{", "}"} & set(sentence)
        assert "  " not in sentence
        assert sentence == sentence.strip()


def repeated(words: Iterable[str]) -> list[str]:
    return [word for word, count in Counter(words).items() if count > 1]


def test_no_reason_stands_in_two_rows() -> None:
    for rows in (table().end, table().waiting):
        assert repeated(reason.lower() for row in rows for reason in row.reasons) == []
        for row in rows:
            for reason in row.reasons:
                assert [one for one in rows if one.explains(reason)] == [row]


def test_no_exact_code_stands_in_two_rows() -> None:
    codes = [code for row in CODE_ROWS for code in row.codes]
    assert repeated(codes) == []


def test_the_narrower_of_two_rows_comes_first() -> None:
    """The first one that covers a code is used."""
    for code in range(1, 256):
        widths = [
            min(high - low for low, high in bounds(row) if low <= code <= high)
            for row in meanings_of_code(code)
        ]
        assert widths == sorted(widths), code


def bounds(row: Meaning) -> list[tuple[int, int]]:
    parts = [code.partition("-") for code in row.codes]
    return [(int(low), int(high or low)) for low, _, high in parts]


def test_every_code_has_a_meaning_and_no_other_number_has() -> None:
    assert [code for code in range(1, 256) if not meanings_of_code(code)] == []
    assert meanings_of_code(0) == ()
    assert meanings_of_code(256) == ()
    assert all(1 <= low <= high <= 255 for row in CODE_ROWS for low, high in bounds(row))


def test_what_may_tell_more_than_a_code_is_known() -> None:
    for row in CODE_ROWS:
        for reason in row.unless:
            assert meaning_of((reason,), None) is not UNKNOWN, reason


OF_FAILURES = [
    names.ACTIVE_DEADLINE, names.ADDRESS_CHANGED, names.NODE_LOST, names.POD_LOST, names.RESTARTED_ALONE,
    names.RESTARTED_TOO_OFTEN, names.SERVER_ENDED, names.START_DEADLINE,
]  # fmt: skip


@pytest.mark.parametrize("reason", OF_FAILURES)
def test_reasons_of_our_own_are_in_the_table(reason: str) -> None:
    assert meaning_of((reason,), None) is not UNKNOWN


@pytest.mark.parametrize("reason", [names.UNSCHEDULABLE, names.CONFIG_MAP_MISSING, names.SLOW_START])
def test_our_own_reasons_to_wait_stand_for_their_rows(reason: str) -> None:
    meaning = meaning_of_waiting(reason)
    assert meaning is not None
    assert meaning.reasons[0] == reason


def test_only_deadlines_and_training_alone_count_against_nothing() -> None:
    final = {reason for row in table().end if row.counts is Counts.NOTHING for reason in row.reasons}
    assert final == {names.ACTIVE_DEADLINE, names.START_DEADLINE, names.TRAINED_ALONE}
