"""Several managers and one lease, as processes on a real server: one works, and no other does harm."""

import signal
import time
from datetime import UTC, datetime
from typing import Any

import make
import pytest
from world import OPERATOR, SECOND_OPERATOR, World

from paddle_operator.api.core import Lease
from paddle_operator.api.resources import LEASES
from paddle_operator.api.rights import LEASE_NAME
from paddle_operator.runtime.lease import LeaseTiming
from testbed.node import FakeNode

pytestmark = pytest.mark.apiserver

# A leader that is killed has renewed its lease at most so long ago.
SHORTEST_REST_SECONDS = LeaseTiming().duration - LeaseTiming().retry_period


def elect(world: World, user: str) -> Any:
    options = ("--leader-elect", f"--lease-namespace={world.namespace}")
    return world.start_manager(user=user, options=options)


async def two(world: World) -> tuple[Any, str]:
    """The first leads, the second stands by."""
    first = elect(world, OPERATOR)
    leader = await world.leader()
    elect(world, SECOND_OPERATOR)
    return first, leader


async def renewals(world: World, count: int) -> None:
    versions: set[str] = set()

    def are_done(lease: Lease | None) -> bool:
        versions.update([lease.metadata.resource_version] if lease is not None else [])
        return len(versions) > count

    await world.until(LEASES, LEASE_NAME, are_done)


def writes(world: World, user: str) -> list[str]:
    """Beside those of the lease."""
    return [
        str(request)
        for request in world.requests(user)
        if request.verb not in {"get", "list", "watch"} and request.resource != "leases"
    ]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
async def test_a_standby_takes_over(world: World, node: FakeNode, number: int) -> None:
    """How long it takes is printed. After a stop nobody waits for the lease to run out."""
    first, leader = await two(world)
    await world.submit(make.manifest("before"))
    await world.phase("before", "Completed")
    assert writes(world, OPERATOR)
    assert not writes(world, SECOND_OPERATOR)
    begun = time.monotonic()
    world.kill(first, number)
    await world.submit(make.manifest("after"))
    await world.leader(other_than=leader)
    led = time.monotonic() - begun
    await world.phase("after", "Completed")
    print(f"after signal {number} the other led {led:.2f} s later")
    assert (led < SHORTEST_REST_SECONDS) == (number == signal.SIGTERM)
    assert writes(world, SECOND_OPERATOR)


async def test_a_leader_that_was_paused_beyond_its_lease_does_no_harm(world: World, node: FakeNode) -> None:
    first, leader = await two(world)
    # In the middle of its work: it has not yet done with the pods when it is stopped.
    await world.submit(make.manifest("large", 64, cleanPodPolicy="Never"))
    await world.pod_until("large-worker-0", lambda _: True)
    first.send_signal(signal.SIGSTOP)
    await world.leader(other_than=leader)
    await world.phase("large", "Completed")
    woken_at = datetime.now(UTC)
    first.send_signal(signal.SIGCONT)
    await world.submit(make.manifest("after"))
    await world.phase("after", "Completed")
    late = [
        request
        for request in world.requests(OPERATOR)
        if request.at > woken_at and request.verb not in {"get", "list", "watch"}
    ]
    # What it had sent before may arrive now; all that it could be is refused by the server.
    assert not [str(request) for request in late if request.code < 300], late
    creates = [request.name for request in world.requests(SECOND_OPERATOR) if str(request) == "create pods"]
    assert "after-worker-0" in creates
    # It stands by in the same process, and leads again when the other one goes.
    world.kill(world.managers[1], signal.SIGTERM)
    await world.submit(make.manifest("last"))
    await world.phase("last", "Completed")
    assert first.poll() is None


async def test_a_leader_with_nothing_to_do_only_renews_its_lease(world: World, node: FakeNode) -> None:
    elect(world, OPERATOR)
    await world.submit(make.manifest())
    await world.phase("resnet", "Completed")
    await renewals(world, 1)  # meanwhile it cleans up
    before = len(writes(world, OPERATOR))
    await renewals(world, 3)
    assert len(writes(world, OPERATOR)) == before
