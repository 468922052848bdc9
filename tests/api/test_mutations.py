"""Ten thousand jobs that a fuzzer wrote: each is taken or refused by field, here and by the server alike."""

import itertools
import json
import os
import random
from typing import Any

import pytest
from mutations import mutants
from tally import TALLY
from world import servers_complaint

from paddle_operator.api.documents import BadDocument
from paddle_operator.api.load import _load_job, load_jobs
from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.api.schema_check import Problem
from paddle_operator.kube.transport import Transport
from paddle_operator.paddlejob.render import render

SEED = int(os.environ.get("SEED", "0")) or random.SystemRandom().randrange(10**6)
COUNT = 10_000
ON_SERVER = 500
# Rendering thousands of pods takes its time, and shows nothing that a few do not.
MOST_RENDERED = 8
# What neither schema nor CEL can say.
ONLY_OURS = (
    "is the name of a container too", "is taken by another port", "the containerPort", "is no volume of this",
    "is more than the limit", "must not be negative", "is no quantity", "of a label", "of an annotation",
    "bytes in a process",
)  # fmt: skip


def judge(
    document: dict[str, Any], *, as_text: bool = False
) -> tuple[tuple[PaddleJob, ...], tuple[Problem, ...]]:
    """Reading a text takes ten times as long as judging what it holds."""
    try:
        return load_jobs(json.dumps(document)) if as_text else (_load_job(document, "default"),), ()
    except BadDocument as bad:
        return (), bad.problems


@pytest.mark.parametrize("part", range(4))
def test_a_mutant_is_taken_and_rendered_or_refused_by_field(part: int) -> None:
    print(f"\nSEED={SEED}")
    for number, document in enumerate(itertools.islice(mutants(SEED + part), COUNT // 4)):
        jobs, problems = judge(document, as_text=number % 20 == 0)
        TALLY["mutants refused" if problems else "mutants accepted"] += 1
        assert bool(jobs) != bool(problems), document
        for problem in problems:
            assert problem.field.startswith(("spec", "metadata")), (SEED, problem)
            assert problem.message, (SEED, problem)
        for job in jobs:
            if sum(role.replicas for role in job.roles.values()) <= MOST_RENDERED:
                assert render(job)


@pytest.mark.apiserver
async def test_the_server_judges_a_mutant_as_we_do(admin: Transport, paddle_job_kind: None) -> None:
    print(f"\nSEED={SEED}")
    wrong = []
    for document in itertools.islice(mutants(SEED), ON_SERVER):
        _, problems = judge(document)
        sayable = [one for one in problems if not any(words in one.message for words in ONLY_OURS)]
        said = await servers_complaint(admin, json.dumps(document))
        TALLY["mutants that the server refused" if said else "mutants that the server took"] += 1
        if bool(said) != bool(sayable):
            wrong.append((said[:300], [str(one) for one in sayable], json.dumps(document)))
    assert not wrong, (SEED, len(wrong), wrong[:5])
