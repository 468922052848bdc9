"""Who leads. Time is virtual; the server in memory keeps the lease."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from scripted import DAY_ZERO, NAMESPACE, loop_time

from paddle_operator.api.core import Lease, Pod
from paddle_operator.api.meta import Key, KubeObject, Manifest, ObjectMeta
from paddle_operator.api.resources import LEASES, PODS, Target
from paddle_operator.cluster import Forbidden, Throttled, Unreachable
from paddle_operator.memory.cluster import MemoryCluster
from paddle_operator.runtime.lease import Fenced, LeaderLease, LeaseTiming, NotLeadingError

pytestmark = pytest.mark.looptime

KEY = Key(NAMESPACE, "lease")
TIMING = LeaseTiming(duration=8, renew_deadline=5, retry_period=2)


class Server(MemoryCluster):
    """Keeps leases; may be unreachable, or lose its answers."""

    def __init__(self) -> None:
        super().__init__(lambda: DAY_ZERO + timedelta(seconds=loop_time()), {})
        self.is_down = False
        self.loses_answers = False
        self.delays_seconds = 0.0
        self.keeps_waiting = 0
        """So many answers to writes that took effect never come."""
        self.writes: list[float] = []
        self.requests = 0

    async def get(self, resource: Any, key: Key) -> Any:
        self._trouble()
        return await super().get(resource, key)

    async def patch(self, target: Target, body: Manifest, *, subresource: str = "") -> KubeObject:
        self._trouble()
        written = await super().patch(target, body, subresource=subresource)
        self.writes.append(loop_time())
        if self.keeps_waiting:
            self.keeps_waiting -= 1
            await asyncio.sleep(1000)
        await asyncio.sleep(self.delays_seconds)
        if self.loses_answers:
            raise Unreachable("the answer is lost")
        return written

    def _trouble(self) -> None:
        self.requests += 1
        if self.is_down:
            raise Unreachable("nobody answers")

    async def lease(self) -> Lease:
        return await super().get(LEASES, KEY)


def lease_of(server: Server, identity: str, steady: Callable[[], float] = loop_time) -> LeaderLease:
    return LeaderLease(server, KEY, identity, now=server._now, timing=TIMING, steady=steady)


async def leading(server: Server, identity: str) -> tuple[LeaderLease, "asyncio.Task[None]"]:
    lease = lease_of(server, identity)
    await lease.acquire()
    return lease, asyncio.create_task(lease.keep())


async def crash(keeping: "asyncio.Task[None]") -> None:
    keeping.cancel()
    with suppress(asyncio.CancelledError):
        await keeping


async def test_the_first_makes_the_lease_and_leads_at_once() -> None:
    server = Server()
    assert not lease_of(server, "a").holds
    lease = lease_of(server, "a")
    await lease.acquire()
    assert lease.holds
    assert loop_time() == 0
    spec = (await server.lease()).spec
    assert (spec.holder_identity, spec.lease_duration_seconds) == ("a", 8)


async def test_a_leader_renews_every_two_seconds_and_leads_for_ever() -> None:
    server = Server()
    lease, keeping = await leading(server, "a")
    await asyncio.sleep(60.5)
    assert lease.holds
    assert server.writes == [pytest.approx(2 * turn) for turn in range(1, 31)]
    await crash(keeping)


async def test_a_standby_waits_while_the_leader_renews() -> None:
    server = Server()
    _, keeping = await leading(server, "a")
    standby = lease_of(server, "b")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(100):
            await standby.acquire()
    assert standby.leader == "a"
    assert not standby.holds
    await crash(keeping)


async def test_a_lease_that_is_given_back_is_taken_within_a_second() -> None:
    server = Server()
    lease, keeping = await leading(server, "a")
    standby = lease_of(server, "b")
    waiting = asyncio.create_task(standby.acquire())
    await asyncio.sleep(10.3)
    await crash(keeping)
    await lease.release()
    assert not lease.holds
    begun = loop_time()
    await waiting
    assert loop_time() - begun <= 1
    assert (await server.lease()).spec.lease_transitions == 1


@pytest.mark.parametrize("after", [10.0, 10.3, 10.9, 11.7])
async def test_after_a_crash_another_leads_within_nine_seconds_and_not_before_the_lease_ends(
    after: float,
) -> None:
    server = Server()
    _, keeping = await leading(server, "a")
    standby = lease_of(server, "b")
    waiting = asyncio.create_task(standby.acquire())
    await asyncio.sleep(after)
    last_renewal = server.writes[-1]
    await crash(keeping)
    await waiting
    assert TIMING.duration <= loop_time() - last_renewal <= TIMING.duration + TIMING.retry_period / 2


async def test_of_two_that_wait_one_gets_it() -> None:
    server = Server()
    lease, keeping = await leading(server, "a")
    waiting = [asyncio.create_task(lease_of(server, name).acquire()) for name in "bc"]
    await asyncio.sleep(3)
    await crash(keeping)
    await lease.release()
    done, pending = await asyncio.wait(waiting, timeout=5)
    assert (len(done), len(pending)) == (1, 1)
    for task in pending:
        await crash(task)


async def test_a_leader_that_cannot_renew_stops_before_another_may_begin() -> None:
    server = Server()
    lease, keeping = await leading(server, "a")
    await asyncio.sleep(3)
    server.is_down = True
    await keeping
    assert not lease.holds
    assert loop_time() - server.writes[-1] <= TIMING.renew_deadline < TIMING.duration


async def test_a_leader_survives_a_short_outage() -> None:
    server = Server()
    lease, keeping = await leading(server, "a")
    await asyncio.sleep(3)
    server.is_down = True
    await asyncio.sleep(2.5)
    server.is_down = False
    await asyncio.sleep(20)
    assert lease.holds
    await crash(keeping)


async def test_a_renewal_whose_answer_was_lost_is_found_to_be_ours() -> None:
    server = Server()
    lease, keeping = await leading(server, "a")
    server.loses_answers = True
    await asyncio.sleep(2.5)
    server.loses_answers = False
    await asyncio.sleep(20)
    assert lease.holds
    await crash(keeping)


async def test_a_leader_whose_lease_another_holds_stops() -> None:
    server = Server()
    lease, keeping = await leading(server, "a")
    await asyncio.sleep(1)
    stolen = Target.of(LEASES, await server.lease())
    await MemoryCluster.patch(server, stolen, {"spec": {"holderIdentity": "b"}})
    await keeping
    assert not lease.holds
    assert lease.leader == "b"
    assert loop_time() <= 4


async def test_a_lease_that_somebody_deleted_is_made_again() -> None:
    server = Server()
    lease, keeping = await leading(server, "a")
    await asyncio.sleep(1)
    await server.delete(Target.of(LEASES, await server.lease()))
    await asyncio.sleep(20)
    assert lease.holds
    assert (await server.lease()).spec.holder_identity == "a"
    await crash(keeping)


async def test_how_long_a_lease_lasts_its_holder_says() -> None:
    """The Go operator's lasts 15 seconds."""
    server = Server()
    spec = {"holderIdentity": "go", "leaseDurationSeconds": 15}
    await server.create(LEASES, {"metadata": {"namespace": NAMESPACE, "name": KEY.name}, "spec": spec})
    await lease_of(server, "a").acquire()
    assert loop_time() >= 15


async def test_a_standby_waits_for_a_server_that_does_not_answer() -> None:
    server = Server()
    server.is_down = True
    lease = lease_of(server, "a")
    waiting = asyncio.create_task(lease.acquire())
    await asyncio.sleep(10)
    assert lease.error == "nobody answers"
    server.is_down = False
    await waiting
    assert lease.error == ""


async def test_who_was_paused_beyond_the_deadline_writes_nothing_even_before_it_knows() -> None:
    """The clock of the lease goes on while the process, and with it the loop, stands still."""
    server = Server()
    paused_seconds = 0.0
    lease = lease_of(server, "a", lambda: loop_time() + paused_seconds)
    await lease.acquire()
    fenced = Fenced(server, lease)
    manifest = {"metadata": {"namespace": NAMESPACE, "name": "p"}, "spec": {"containers": []}}
    made = await fenced.create(PODS, manifest)
    paused_seconds = 6.0
    target = Target.of(PODS, Pod(metadata=ObjectMeta(name="p", namespace=NAMESPACE, uid=made.metadata.uid)))
    for write in (
        fenced.create(PODS, manifest | {"metadata": {"namespace": NAMESPACE, "name": "q"}}),
        fenced.patch(target, {"metadata": {"labels": {"a": "b"}}}),
        fenced.delete(target),
    ):
        with pytest.raises(NotLeadingError):
            await write
    assert (await fenced.get(PODS, Key(NAMESPACE, "p"))).metadata.labels == {}


async def test_one_answer_that_never_comes_does_not_cost_the_lead() -> None:
    server = Server()
    lease, keeping = await leading(server, "a")
    server.keeps_waiting = 1
    await asyncio.sleep(30)
    assert lease.holds
    await crash(keeping)


@pytest.mark.parametrize("seconds", [0.5, 1.0, 1.9, 2.1])
async def test_a_slow_server_shuts_the_fence_at_no_time(seconds: float) -> None:
    server = Server()
    lease, keeping = await leading(server, "a")
    server.delays_seconds = seconds
    for _ in range(600):
        await asyncio.sleep(0.1)
        assert lease.holds
    await crash(keeping)


async def test_nobody_hammers_a_server_that_does_not_answer() -> None:
    """Neither a standby whose leader's lease has run out, nor one who led."""
    server = Server()
    lease, keeping = await leading(server, "a")
    standby = asyncio.create_task(lease_of(server, "b").acquire())
    await asyncio.sleep(20)
    server.is_down = True
    await keeping
    again = asyncio.create_task(lease.acquire())
    await asyncio.sleep(20)
    before = server.requests
    await asyncio.sleep(60)
    assert server.requests - before <= 2 * 61
    await crash(standby)
    await crash(again)


async def test_nobody_hammers_a_server_that_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server()
    spec = {"holderIdentity": "gone", "leaseDurationSeconds": 1}
    await server.create(LEASES, {"metadata": {"namespace": NAMESPACE, "name": KEY.name}, "spec": spec})

    async def refuse(*_: object, **__: object) -> KubeObject:
        raise Forbidden("no patch")

    monkeypatch.setattr(server, "patch", refuse)
    lease = lease_of(server, "a")
    waiting = asyncio.create_task(lease.acquire())
    await asyncio.sleep(60)
    assert server.requests <= 65
    assert lease.error == "no patch"
    await crash(waiting)


async def test_a_server_that_asks_for_a_pause_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server()

    async def throttle(*_: object) -> Lease:
        server.requests += 1
        raise Throttled("later", retry_after_seconds=10)

    monkeypatch.setattr(server, "get", throttle)
    waiting = asyncio.create_task(lease_of(server, "a").acquire())
    await asyncio.sleep(35)
    assert server.requests == 4
    await crash(waiting)


async def test_one_that_is_stopped_in_the_middle_of_a_renewal_gives_the_lease_back() -> None:
    server = Server()
    lease, keeping = await leading(server, "a")
    server.delays_seconds = 0.5
    await asyncio.sleep(2.2)
    await crash(keeping)
    await lease.release()
    assert (await server.lease()).spec.holder_identity == ""


async def test_one_that_is_stopped_just_when_it_gets_the_lease_gives_it_back() -> None:
    server = Server()
    first, keeping = await leading(server, "a")
    await crash(keeping)
    await first.release()
    second = lease_of(server, "b")
    server.delays_seconds = 0.5
    getting = asyncio.create_task(second.acquire())
    await asyncio.sleep(0.2)
    await crash(getting)
    await second.release()
    assert (await server.lease()).spec.holder_identity == ""


async def test_one_that_never_led_leaves_the_lease_alone() -> None:
    server = Server()
    _, keeping = await leading(server, "a")
    await lease_of(server, "b").release()
    assert (await server.lease()).spec.holder_identity == "a"
    await crash(keeping)
