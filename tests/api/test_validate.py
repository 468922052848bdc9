"""Rules that hold for every job, also for one that was stored before the CRD knew them."""

from typing import Any

import make
import pytest

from paddle_operator.api.validate import not_served, spec_problems


def fields(**changes: Any) -> list[str]:
    return [problem.field for problem in spec_problems(make.paddlejob(**changes))]


def role(replicas: int = 1, **template: Any) -> dict[str, Any]:
    return {"replicas": replicas, "template": template or make.template()}


def test_a_good_job_has_no_problems() -> None:
    assert spec_problems(make.paddlejob()) == ()
    assert not_served(make.paddlejob()) == ()


@pytest.mark.parametrize("name", ["a", "7", "7b-x", "r" * 54, "a--b"])
def test_a_name_that_can_begin_the_names_of_pods_is_fine(name: str) -> None:
    assert fields(name=name) == []


@pytest.mark.parametrize("name", ["", "A", "a.b", "a_b", "-a", "a-", "a b", "飞桨", "a\n"])
def test_a_name_that_cannot_begin_the_names_of_pods_is_refused(name: str) -> None:
    assert fields(name=name) == ["metadata.name"]


@pytest.mark.parametrize(
    ("length", "workers", "spare"), [(54, 10, 0), (54, 11, 1), (53, 100, 0), (53, 101, 1), (60, 2, 6)]
)
def test_the_longest_pod_name_decides_how_long_a_name_may_be(length: int, workers: int, spare: int) -> None:
    found = spec_problems(make.paddlejob("r" * length, workers))
    if spare == 0:
        assert found == ()
    else:
        (problem,) = found
        assert problem.field == "metadata.name"
        assert f"shorten it by {spare}" in problem.message


def test_a_job_without_workers_is_refused() -> None:
    assert fields(workers=0) == ["spec.worker.replicas"]


@pytest.mark.parametrize(
    ("template", "field"),
    [
        ([], "spec"),
        ({}, "spec"),
        ({"spec": None}, "spec"),
        ({"spec": {}}, "spec.containers"),
        ({"spec": {"containers": []}}, "spec.containers"),
        ({"spec": {"containers": "paddle"}}, "spec.containers"),
        ({"spec": {"containers": ["paddle"]}}, "spec.containers[0]"),
        ({"spec": {"containers": [{"image": "x"}]}}, "spec.containers[0].name"),
        ({"spec": {"containers": [{"name": "x", "image": "x", "env": "A=b"}]}}, "spec.containers[0].env"),
        (
            {"spec": {"containers": [{"name": "x", "image": "x", "env": ["A=b"]}]}},
            "spec.containers[0].env[0]",
        ),
        (
            {"spec": {"containers": [{"name": "x", "image": "x", "resources": []}]}},
            "spec.containers[0].resources",
        ),
        ({"metadata": {"labels": []}, **make.template()}, "metadata.labels"),
    ],
)
def test_a_template_that_no_pod_can_be_made_of_is_refused_for_every_role(template: Any, field: str) -> None:
    broken = {"replicas": 1, "template": template}
    assert fields(worker=broken) == [f"spec.worker.template.{field}"]
    assert fields(ps=broken) == [f"spec.ps.template.{field}"]


def test_a_template_of_a_role_without_pods_is_not_looked_at() -> None:
    assert fields(ps=role(0, spec={})) == []


@pytest.mark.parametrize(
    ("policy", "count"), [("Never", 0), ("OnFailure", 0), ("", 0), ("Always", 1), ("never", 1)]
)
def test_containers_that_start_again_for_ever_are_refused(policy: str, count: int) -> None:
    assert fields(pod=make.template(restartPolicy=policy)) == count * [
        "spec.worker.template.spec.restartPolicy"
    ]


@pytest.mark.parametrize("namespace", ["Team", "a.b", "n" * 64, "-a"])
def test_a_namespace_that_cannot_be_is_refused(namespace: str) -> None:
    assert fields(metadata={"namespace": namespace}) == ["metadata.namespace"]


@pytest.mark.parametrize(
    ("label", "good"),
    [
        (("a", "b"), True),
        (("a", ""), True),
        (("A_b.c-9", "V_1.x-y"), True),
        (("example.com/a", "b"), True),
        (("a" * 63, "b" * 63), True),
        (("", "b"), False),
        (("-a", "b"), False),
        (("a", "-b"), False),
        (("a", "b c"), False),
        (("a", "b" * 64), False),
        (("a" * 64, "b"), False),
        (("Example.com/a", "b"), False),
        (("/a", "b"), False),
        (("a/", "b"), False),
        (("x/y/a", "b"), False),
        ((f"{'d' * 254}/a", "b"), False),
    ],
)
def test_labels_are_judged_as_the_server_judges_them(label: tuple[str, str], good: bool) -> None:
    assert bool(fields(metadata={"labels": dict([label])})) is not good


@pytest.mark.parametrize(
    ("spec", "asked"),
    [
        ({"ps": role(1)}, []),
        ({"ps": role(0)}, []),
        ({"heter": role(1)}, ["spec.heter"]),
        ({"intranet": "PodIP"}, []),
        ({"intranet": "Service"}, []),
        ({"intranet": "Host"}, []),
        ({"intranet": "HostNetwork"}, []),
        ({"elastic": 0}, []),
        ({"elastic": 1}, ["spec.elastic"]),
        ({"withGloo": 1}, []),
        ({"schedulingPolicy": {"queue": "a"}}, ["spec.schedulingPolicy"]),
        ({"sampleSetRef": {"name": "a"}}, ["spec.sampleSetRef"]),
        ({"heter": role(1), "elastic": 1}, ["spec.heter", "spec.elastic"]),
    ],
)
def test_what_is_not_served_yet_is_said_by_field(spec: dict[str, Any], asked: list[str]) -> None:
    job = make.paddlejob(**spec)
    assert spec_problems(job) == ()
    assert [problem.field for problem in not_served(job)] == asked
    assert all("create the job anew without it" in problem.message for problem in not_served(job))
