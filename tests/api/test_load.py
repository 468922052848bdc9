"""Files that people write, the good and the bad: what is refused, with which words."""

import json
from pathlib import Path
from typing import Any

import make
import msgspec
import pytest
from cases import ACCEPTED, CASES, FILES, HERE, REFUSED, Case, Verdict, job_in_yaml, job_with
from hypothesis import given, settings
from hypothesis import strategies as st
from tally import TALLY

from paddle_operator.api.documents import BadDocument
from paddle_operator.api.load import load_jobs
from paddle_operator.api.paddlejob import PaddleJob, read_template
from paddle_operator.api.schema_check import Problem
from paddle_operator.api.validate import not_served
from paddle_operator.paddlejob.render import render

SEEDS = sorted((Path(__file__).parents[1] / "golden" / "seeds").glob("*.yaml"))


def refusal(text: str) -> tuple[Problem, ...]:
    with pytest.raises(BadDocument) as caught:
        load_jobs(text)
    return caught.value.problems


def one_job(text: str) -> PaddleJob:
    (job,) = load_jobs(text)
    return job


def first_container(job: PaddleJob) -> Any:
    return read_template(job.spec.worker.template)["spec"]["containers"][0]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.title)
def test_a_bad_file_is_refused_with_line_field_and_remedy(case: Case) -> None:
    found = refusal(case.text)
    TALLY[f"jobs of the corpus refused by the {case.verdict}"] += 1
    assert any(case.is_said(problem.field, problem.message, problem.line) for problem in found), found


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.title)
def test_a_refusal_is_a_few_printable_lines(case: Case) -> None:
    for problem in refusal(case.text):
        assert str(problem).isprintable()
        assert len(str(problem)) < 400


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.title)
def test_an_odd_file_that_nobody_refuses_can_be_rendered(case: Case) -> None:
    job = one_job(case.text)
    TALLY["jobs of the corpus accepted"] += 1
    assert {made["kind"] for made in render(job)} >= {"Pod", "ConfigMap"}


# Files without a job: of no concern to a server, which sees one object at a time.
@pytest.mark.parametrize(
    ("text", "field", "remedy"),
    [
        ("", "file", "PaddleJob"),
        ("# nothing\n---\n# here\n", "file", "PaddleJob"),
        ("apiVersion: v1\nkind: Pod\n", "file", "PaddleJob"),
        (job_in_yaml(value="!!python/object:os.system x"), "line 16", "correct it"),
    ],
)
def test_a_file_without_a_job_is_refused(text: str, field: str, remedy: str) -> None:
    (problem,) = refusal(text)
    assert problem.field == field
    assert remedy in problem.message


def test_the_corpus_is_large_and_has_no_case_twice() -> None:
    assert len(FILES) >= 100
    assert len({case.text for case in CASES}) == len({case.title for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", FILES, ids=lambda case: case.title)
def test_a_file_of_the_corpus_marks_the_line_to_be_named(case: Case) -> None:
    assert case.text.count(HERE) == (case.verdict is not Verdict.NOBODY)


@pytest.mark.parametrize("word", ["2026-11-18", "1:30", "=", "1.2.3"])
def test_text_that_other_readers_take_for_something_else_stays_as_written(word: str) -> None:
    assert first_container(one_job(job_in_yaml(value=word)))["env"][0]["value"] == word


@pytest.mark.parametrize(
    ("written", "count"), [("017", 15), ("0o17", 15), ("0x1F", 31), ("0b11", 3), ("1_000", 1000), ("2.0", 2)]
)
def test_numbers_are_read_as_kubectl_reads_them(written: str, count: int) -> None:
    assert one_job(job_in_yaml(replicas=written)).spec.worker.replicas == count


def test_a_pair_of_halves_is_one_character() -> None:
    text = job_with("spec.worker.template.spec.containers.0.args", ["\N{PARTY POPPER}"])
    assert "\\ud83c" in text
    assert first_container(one_job(text))["args"] == ["\N{PARTY POPPER}"]


def test_a_merge_key_takes_in_another_object_and_what_is_written_wins() -> None:
    selector = "{<<: [{a: first, b: first}, {b: second, c: second}], c: own}"
    job = one_job(job_in_yaml(selector=selector))
    chosen = read_template(job.spec.worker.template)["spec"]["nodeSelector"]
    assert chosen == {"a": "first", "b": "first", "c": "own"}


def test_nulls_are_dropped() -> None:
    job = one_job(job_in_yaml(replicas="null", value="null"))
    assert job.spec.worker.replicas == 1
    assert first_container(job)["env"] == [{"name": "WORD"}]


def test_every_mistake_is_named_at_once() -> None:
    text = json.dumps(make.manifest(workers=0, cleanPodPolicy="Maybe", withGloo=7, workres={}))
    assert {problem.field for problem in refusal(text)} == {
        "spec.worker.replicas",
        "spec.cleanPodPolicy",
        "spec.withGloo",
        "spec.workres",
    }


def test_a_file_may_hold_several_jobs_and_other_kinds() -> None:
    text = f"{job_in_yaml()}---\n# nothing\n---\napiVersion: v1\nkind: Pod\n---\n{job_in_yaml()}"
    assert len(load_jobs(text)) == 2


def test_a_mistake_in_one_of_several_documents_is_named_with_its_line() -> None:
    bad = job_in_yaml(replicas="0")
    found = refusal(f"{job_in_yaml()}---\n# nothing\n---\n{bad}---\n[]\n")
    assert [str(problem).partition(": m")[0] for problem in found] == [
        "line 26: spec.worker.replicas",
        "line 37: document",
    ]


def test_one_bad_job_stops_the_good_ones() -> None:
    refusal("---\n".join([job_in_yaml(), job_in_yaml(replicas="0")]))


@pytest.mark.parametrize(
    ("written", "namespace"), [({}, "team"), ({"namespace": ""}, "team"), ({"namespace": "own"}, "own")]
)
def test_a_job_without_a_namespace_gets_the_one_that_is_asked_for(
    written: dict[str, str], namespace: str
) -> None:
    (job,) = load_jobs(job_with("metadata", {"name": "resnet", **written}), "team")
    assert job.metadata.namespace == namespace


def test_a_namespace_from_the_command_line_is_checked_too() -> None:
    with pytest.raises(BadDocument, match=r"metadata\.namespace: 'My Team'"):
        load_jobs(job_in_yaml(), "My Team")


def test_a_status_in_a_file_is_not_believed() -> None:
    job = one_job(job_with("status", {"phase": "Completed", "attempt": 7}))
    assert (job.status.phase, job.status.attempt) == ("", 0)


@pytest.mark.parametrize("length", [1, 54])
def test_a_name_may_be_as_long_as_its_pods_allow(length: int) -> None:
    assert one_job(job_with("metadata.name", "r" * length)).metadata.name == "r" * length


def test_a_long_value_is_shortened_in_the_message() -> None:
    (problem,) = refusal(job_with("spec.intranet", "x" * 100_000))
    assert len(problem.message) < 200


# Each seed applies verbatim; what is not served yet is said in words.
DOCUMENTS = [
    "design-resnet",
    "design-wide-and-deep",
    "readme-resnet",
    "readme-wide-and-deep",
    "user-guide-data-storage",
    "user-guide-gpu-node-selector",
    "user-guide-resnet",
    "user-guide-volcano",
    "user-guide-wide-and-deep",
]


@pytest.mark.parametrize("file", SEEDS, ids=lambda file: file.stem)
def test_the_yaml_of_the_seeds_is_well_formed(file: Path) -> None:
    assert not_served(one_job(file.read_text(encoding="utf-8"))) == ()


def test_there_is_a_file_for_each_seed() -> None:
    assert [file.stem for file in SEEDS] == DOCUMENTS


SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
FIELDS = st.sampled_from(
    ["spec", "worker", "ps", "replicas", "template", "metadata", "name", "containers", "env", "resources",
     "limits", "status", "labels", "kind", "cleanPodPolicy", "schedulingPolicy", "minResources"]
)  # fmt: skip
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS | st.text(), inner, max_size=4),
    max_leaves=12,
)


def attempt(text: str) -> tuple[PaddleJob, ...]:
    try:
        return load_jobs(text)
    except BadDocument as bad:
        found = bad.problems
    assert found
    assert all(problem.field and problem.message for problem in found)
    return ()


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(FIELDS, VALUES, max_size=5))
def test_whatever_a_paddlejob_holds_it_is_taken_or_refused_in_words(fields: dict[str, Any]) -> None:
    attempt(json.dumps({**fields, "apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob"}))


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["spec", "spec.worker", "spec.worker.template", "spec.worker.template.spec", "metadata"]),
    FIELDS,
    VALUES,
)
def test_whatever_one_field_holds_it_is_taken_or_refused_in_words(place: str, field: str, value: Any) -> None:
    for job in attempt(job_with(f"{place}.{field}", value)):
        assert msgspec.json.decode(msgspec.json.encode(job), type=PaddleJob) == job


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ab:-{}[],&*!<|>?%@'\"#\n\t ~0.1\\", max_size=40))
def test_whatever_a_text_is_it_is_refused_in_words(text: str) -> None:
    assert not attempt(text)
    assert attempt(job_in_yaml(value=text)) is not None
