"""What a PaddleJob means: its mode, its network, its cleaning, the order of its roles."""

from typing import Any

import make
import msgspec
import pytest

from paddle_operator.api.paddlejob import (
    CleanPodPolicy,
    Intranet,
    Mode,
    PaddleJob,
    PaddleJobStatus,
    Role,
    read_template,
)


def role(replicas: int) -> dict[str, Any]:
    return {"replicas": replicas, "template": make.template()}


@pytest.mark.parametrize(
    ("workers", "servers", "mode"),
    [
        (1, None, Mode.SINGLE),
        (2, None, Mode.COLLECTIVE),
        (100, None, Mode.COLLECTIVE),
        (1, 0, Mode.SINGLE),
        (2, 0, Mode.COLLECTIVE),
        (1, 1, Mode.PS),
        (2, 2, Mode.PS),
    ],
)
def test_the_numbers_of_servers_and_workers_make_the_mode(
    workers: int, servers: int | None, mode: Mode
) -> None:
    ps = None if servers is None else role(servers)
    assert make.paddlejob(workers=workers, ps=ps).spec.mode is mode


@pytest.mark.parametrize(
    ("spec", "cleaning"),
    [
        ({}, "OnCompletion"),
        ({"cleanPodPolicy": ""}, "OnCompletion"),
        ({"cleanPodPolicy": "", "cleanPolicy": ""}, "OnCompletion"),
        *[({"cleanPodPolicy": str(policy)}, policy) for policy in CleanPodPolicy if policy],
        *[({"cleanPolicy": str(policy)}, policy) for policy in CleanPodPolicy if policy],
        ({"cleanPodPolicy": "Never", "cleanPolicy": "Always"}, "Never"),
        ({"cleanPodPolicy": "", "cleanPolicy": "Always"}, "Always"),
    ],
)
def test_cleaning_has_two_spellings_and_a_default(spec: dict[str, Any], cleaning: str) -> None:
    assert make.paddlejob(**spec).spec.effective_clean_pod_policy == cleaning


@pytest.mark.parametrize(
    ("written", "network"),
    [
        (None, Intranet.POD_IP),
        ("", Intranet.POD_IP),
        ("PodIP", Intranet.POD_IP),
        ("Service", Intranet.SERVICE),
        ("Host", Intranet.HOST),
        ("HostNetwork", Intranet.HOST),
    ],
)
def test_the_host_network_has_two_spellings(written: str | None, network: Intranet) -> None:
    spec: dict[str, Any] = {} if written is None else {"intranet": written}
    assert make.paddlejob(**spec).spec.effective_intranet is network


@pytest.mark.parametrize(
    ("spec", "roles"),
    [
        ({}, [Role.WORKER]),
        ({"ps": role(1)}, [Role.PS, Role.WORKER]),
        ({"heter": role(1), "ps": role(1)}, [Role.PS, Role.WORKER, Role.HETER]),
        ({"heter": role(0), "ps": role(0)}, [Role.WORKER]),
    ],
)
def test_servers_come_first_and_empty_roles_not_at_all(spec: dict[str, Any], roles: list[Role]) -> None:
    assert list(make.paddlejob(**spec).roles) == roles


def test_a_role_without_a_number_has_one_pod() -> None:
    document = make.manifest()
    del document["spec"]["worker"]["replicas"]
    job = msgspec.json.decode(msgspec.json.encode(document), type=PaddleJob)
    assert job.spec.worker.replicas == 1


@pytest.mark.parametrize(
    ("phase", "finished"),
    [
        ("", False),
        ("Pending", False),
        ("Starting", False),
        ("Running", False),
        ("Terminating", False),
        ("Completed", True),
        ("Failed", True),
    ],
)
def test_completed_and_failed_are_final(phase: str, finished: bool) -> None:
    assert PaddleJobStatus(phase=phase).finished is finished


def test_a_status_of_an_unknown_phase_can_still_be_read() -> None:
    assert make.paddlejob(status={"phase": "Aborted", "mode": "Unheard"}).status.phase == "Aborted"


def test_each_reading_of_a_template_is_a_fresh_copy() -> None:
    template = make.paddlejob().spec.worker.template
    read_template(template)["spec"].clear()
    assert read_template(template) == make.template()


@pytest.mark.parametrize("raw", [b"[]", b'"pod"', b"null", b"7"])
def test_a_template_that_is_no_object_reads_as_an_empty_one(raw: bytes) -> None:
    assert read_template(msgspec.Raw(raw)) == {}


def test_a_job_survives_the_way_to_the_wire_and_back() -> None:
    job = make.paddlejob(cleanPolicy="Never", intranet="HostNetwork", ps=role(2), withGloo=1, elastic=0)
    assert msgspec.json.decode(msgspec.json.encode(job), type=PaddleJob) == job
