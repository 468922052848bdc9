"""Our own check and the API server's, on the whole corpus: the same verdict, and the same field."""

import re

import pytest
from cases import ACCEPTED, CASES, REFUSED, Case, Verdict
from world import servers_complaint

from paddle_operator.kube.transport import Transport

pytestmark = pytest.mark.apiserver


async def complaints(admin: Transport, cases: list[Case]) -> dict[str, str]:
    said = {case.title: await servers_complaint(admin, case.text) for case in cases}
    return {title: words for title, words in said.items() if words}


async def test_the_server_refuses_what_it_should(admin: Transport, paddle_job_kind: None) -> None:
    said = await complaints(admin, CASES)
    wanted = [case.title for case in CASES if case.verdict is Verdict.SERVER]
    assert sorted(said) == sorted(wanted), {
        title: said.get(title) for title in {*said}.symmetric_difference(wanted)
    }
    print(
        f"\nthe server refuses {len(said)} of {len(CASES)}; of the rest the operator refuses "
        f"{len(REFUSED) - len(said)}, and nobody {len(ACCEPTED)}"
    )


def plain(field: str) -> str:
    """The server writes maps as a.b.c, and a name of odd characters too."""
    return re.sub(r"\[([^\d\]][^\]]*)\]", r".\1", field)


async def test_the_server_names_the_field_that_we_name(admin: Transport, paddle_job_kind: None) -> None:
    # What is no PaddleJob at all has no fields yet; other metadata is read by Go, which names types.
    named = [
        case
        for case in REFUSED
        if case.verdict is Verdict.SERVER
        and (case.field.startswith("spec.") or case.field == "metadata.name")
        and case.title != "names/is-a-number"
    ]
    assert len(named) >= 100
    said = await complaints(admin, named)
    wrong = {case.title: said[case.title] for case in named if plain(case.field) not in said[case.title]}
    assert wrong == {}
