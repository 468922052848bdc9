"""Whatever happens to one request, or to the manager at that moment: the job ends as if nothing had happened.

Each job has a manager of its own behind a proxy of its own, which does harm to one request: to every write in
turn, and to each of the first reads. All of them live side by side. `make apiserver` takes a sample, and
SIMULATE=all takes all; one alone: SIMULATE=all pytest 'tests/apiserver/test_shaken.py::...[its name]'.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
import world
from audit import read_audit_log
from forked_manager import prepare
from shaken import CALM, HARMS, Case, Crowd, Life, cases, complaints, logs_are_kept, story
from shaken_jobs import JOBS
from tally import TALLY
from world import OPERATOR, OPERATOR_RULES

from benchmarks.cluster import install_kind
from paddle_operator.api.meta import Manifest
from paddle_operator.cluster import AlreadyExists
from paddle_operator.kube.config import from_file
from paddle_operator.kube.transport import Transport
from testbed.controlplane import ControlPlane
from testbed.node import FakeNode

pytestmark = [pytest.mark.apiserver, pytest.mark.asyncio(loop_scope="module")]

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLE = "shaken"
NOT_STRUCK = "on a real server not struck"
# A watch that is frozen for a minute is waited for.
LONG_PATIENCE_SECONDS = 180.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def crowd(
    apiserver: ControlPlane, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Crowd]:
    """All cases that are to be run here, begun at once; a node for all of them."""
    prepare()
    folder: Path = tmp_path_factory.mktemp("shaken")
    server = apiserver.url, apiserver.token_for("fake-node"), apiserver.ca_file
    node = FakeNode(url=server[0], token=server[1], ca_file=server[2])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world, "PATIENCE_SECONDS", LONG_PATIENCE_SECONDS)
        async with Transport(from_file(apiserver.kubeconfig)) as admin, node, logs_are_kept():
            with suppress(AlreadyExists):
                await install_kind(admin)
            await allow(admin)
            crowd = Crowd(apiserver, admin, node, folder)
            crowd.begin(wanted(request.session))
            try:
                yield crowd
            finally:
                await crowd.end()
                await admin.request("DELETE", f"{RBAC}/clusterrolebindings/{ROLE}")
                await admin.request("DELETE", f"{RBAC}/clusterroles/{ROLE}")


def wanted(session: pytest.Session) -> list[Case]:
    """Those that were chosen on the command line, if some were."""
    calls = [getattr(item, "callspec", None) for item in session.items if item.path == Path(__file__)]
    return [call.params["case"] for call in calls if call is not None]


async def allow(admin: Transport) -> None:
    """The operator's rights in all namespaces, for as long as these tests run: there are many namespaces."""
    role: Manifest = {"metadata": {"name": ROLE}, "rules": OPERATOR_RULES}
    binding = {
        "metadata": {"name": ROLE},
        "subjects": [{"kind": "User", "name": OPERATOR}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ROLE},
    }
    await admin.request("POST", f"{RBAC}/clusterroles", body=msgspec.json.encode(role))
    await admin.request("POST", f"{RBAC}/clusterrolebindings", body=msgspec.json.encode(binding))


@pytest.mark.parametrize("case", cases(), ids=str)
async def test_a_shaken_job_ends_as_one_that_is_left_alone(crowd: Crowd, case: Case) -> None:
    life, calm = await crowd.life(case), await crowd.calm(case.job)
    wrong = complaints(case, life, calm)
    assert not wrong, "\n".join([f"{case}: {HARMS[case.harm].fault}", *wrong, story(life)])
    # The last writes of some lives are not made by all.
    TALLY[f"{case.harm} on a real server" if life.struck or case.harm == CALM else NOT_STRUCK] += 1


async def test_nobody_made_a_pod_twice_or_did_what_is_not_allowed(crowd: Crowd) -> None:
    """By the server's own records."""
    ended = await asyncio.gather(*crowd.lives.values(), return_exceptions=True)
    lives = {
        life.namespace: case for case, life in zip(crowd.lives, ended, strict=True) if isinstance(life, Life)
    }
    if not lives:
        pytest.skip("nobody has lived")
    for job in JOBS:
        told = [len(one.writes) for one in ended if isinstance(one, Life) and lives[one.namespace].job == job]
        print(f"{job}: {len(told)} lives of {min(told, default=0)} to {max(told, default=0)} writes")
    requests = await asyncio.to_thread(read_audit_log, crowd.plane.audit_log)
    ours = [one for one in requests if one.user == OPERATOR and one.namespace in lives]
    made = Counter((one.namespace, one.name) for one in ours if (str(one), one.code) == ("create pods", 201))
    twice = [f"{lives[where]}: {pod}" for (where, pod), count in made.items() if count > tries(lives[where])]
    assert twice == []
    assert {where for where, _ in made} == {*lives}, "of everybody there are records"
    assert [f"{lives[one.namespace]}: {one} {one.name}" for one in ours if one.code in {403, 422}] == []


def tries(case: Case) -> int:
    return JOBS[case.job].tries
