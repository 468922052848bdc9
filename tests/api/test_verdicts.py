"""Our own check and the API server's, on the same files: the same verdict, and the same field."""

import re

import pytest
from bad_jobs import BAD_JOBS, GOOD_JOBS, BadJob

from paddle_operator.api.resources import PADDLE_JOBS
from paddle_operator.cluster import ApiError
from paddle_operator.kube.client import path
from paddle_operator.kube.transport import Transport

pytestmark = pytest.mark.apiserver

FIELD = re.compile(r"(spec|metadata)(\.\w+|\[\d+\])*")


async def servers_complaint(admin: Transport, text: str) -> str:
    """What the server says to the file as it is, under strict field validation; empty if it takes it."""
    try:
        await admin.request(
            "POST",
            path(PADDLE_JOBS, "default"),
            query={"dryRun": "All", "fieldValidation": "Strict"},
            body=text.encode(),
            content_type="application/json" if text.startswith("{") else "application/yaml",
        )
    except ApiError as error:
        return str(error) or type(error).__name__
    return ""


async def test_the_server_refuses_what_we_refuse(admin: Transport, paddle_job_kind: None) -> None:
    taken = [
        bad.title for bad in BAD_JOBS if bad.server_refuses and not await servers_complaint(admin, bad.text)
    ]
    assert taken == []


async def test_the_server_takes_what_we_take(admin: Transport, paddle_job_kind: None) -> None:
    said = {title: await servers_complaint(admin, text) for title, text in GOOD_JOBS.items()}
    assert {title: words for title, words in said.items() if words} == {}


async def test_the_server_takes_what_only_the_operator_knows_better(
    admin: Transport, paddle_job_kind: None
) -> None:
    about_pods = [bad for bad in BAD_JOBS if not bad.server_refuses and FIELD.fullmatch(bad.field)]
    assert len(about_pods) >= 5
    said = {bad.title: await servers_complaint(admin, bad.text) for bad in about_pods}
    assert {title: words for title, words in said.items() if words} == {}


def names_the_field(bad: BadJob, complaint: str) -> bool:
    """The server writes maps as a.b.c; and it names the first of several kinds of mistakes only."""
    return bad.field.replace("[", ".").rstrip("]").rpartition(".")[2] in complaint


async def test_the_server_names_the_field_that_we_name(admin: Transport, paddle_job_kind: None) -> None:
    refused = [bad for bad in BAD_JOBS if bad.server_refuses and FIELD.fullmatch(bad.field)]
    about_spec = [bad for bad in refused if bad.field.startswith("spec")]
    assert len(about_spec) >= 60
    said = {bad.title: (bad, await servers_complaint(admin, bad.text)) for bad in about_spec}
    assert {title: words for title, (bad, words) in said.items() if not names_the_field(bad, words)} == {}
