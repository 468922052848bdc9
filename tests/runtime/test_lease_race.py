"""Two that look at a free lease in the same moment: answers come late, so both think that it is theirs."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from scripted import DAY_ZERO, NAMESPACE, loop_time

from paddle_operator.api.meta import Key
from paddle_operator.memory.cluster import MemoryCluster
from paddle_operator.runtime.lease import LeaderLease, LeaseTiming

pytestmark = pytest.mark.looptime

KEY = Key(NAMESPACE, "lease")
TIMING = LeaseTiming(duration=8, renew_deadline=5, retry_period=2)


class SlowServer(MemoryCluster):
    """Its answers to a look take a while: by then they are old."""

    async def get(self, resource: Any, key: Key) -> Any:
        found = await super().get(resource, key)
        await asyncio.sleep(0.5)
        return found


def slow_server() -> SlowServer:
    return SlowServer(lambda: DAY_ZERO + timedelta(seconds=loop_time()), {})


def lease_of(server: MemoryCluster, identity: str) -> LeaderLease:
    return LeaderLease(server, KEY, identity, now=server._now, timing=TIMING, steady=loop_time)


async def test_of_two_that_find_it_free_in_the_same_moment_one_gets_it() -> None:
    server = slow_server()
    first = lease_of(server, "a")
    await first.acquire()
    await first.release()
    leases = [lease_of(server, name) for name in "bc"]
    waiting = [asyncio.create_task(lease.acquire()) for lease in leases]
    await asyncio.wait(waiting, timeout=TIMING.renew_deadline / 2)
    assert [lease.holds for lease in leases].count(True) == 1
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
