"""The proxy does to requests what its rule says, and nothing else."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import loopback
import pytest
from aiohttp import web
from fault_proxy import Close, Fault, FaultProxy, Freeze, Rule, nth, some, write_kubeconfig

from paddle_operator.api.resources import PODS
from paddle_operator.cluster import Gone, Scope, Throttled, Unreachable
from paddle_operator.kube.client import KubeCluster
from paddle_operator.kube.config import from_file
from paddle_operator.kube.transport import Transport

WHERE = "/api/v1/namespaces/default/pods"


@pytest.fixture
async def server() -> AsyncIterator[loopback.Server]:
    async with loopback.serving() as server:
        server.say(loopback.json_answer({"kind": "Pod"}))
        yield server


@pytest.fixture
async def proxy(server: loopback.Server, tmp_path: Path) -> AsyncIterator[FaultProxy]:
    upstream = tmp_path / "upstream.yaml"
    write_kubeconfig(upstream, server.address, "secret")
    async with FaultProxy(upstream) as proxy:
        yield proxy


@pytest.fixture
async def client(proxy: FaultProxy) -> AsyncIterator[Transport]:
    async with Transport(from_file(proxy.kubeconfig)) as transport:
        yield transport


async def test_what_meets_no_fault_is_passed_on_as_it_is(server: loopback.Server, client: Transport) -> None:
    answer = await client.request("POST", WHERE, query={"dryRun": "All"}, body=b'{"a":1}')
    assert answer == b'{"kind":"Pod"}'
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.query, asked.body) == (
        "POST",
        WHERE,
        {"dryRun": "All"},
        b'{"a":1}',
    )
    assert asked.headers["Authorization"] == "Bearer secret"


async def test_an_injected_answer_does_not_reach_the_server(
    server: loopback.Server, proxy: FaultProxy, client: Transport
) -> None:
    proxy.rule = lambda _: Fault(answer=429, retry_after="7")
    with pytest.raises(Throttled) as caught:
        await client.request("GET", WHERE)
    assert caught.value.retry_after_seconds == 7
    assert server.asked == []
    assert proxy.met == {"429": 1}


async def test_a_watch_may_begin_well_and_end_with_an_error(proxy: FaultProxy, client: Transport) -> None:
    proxy.rule = lambda _: Fault(answer=410, in_stream=True)
    changes = KubeCluster(client).watch(PODS, Scope("default"), "1")
    with pytest.raises(Gone):
        await anext(changes)
    assert proxy.met == {"410": 1}


@pytest.mark.parametrize(("when", "asked"), [(Close.BEFORE, 0), (Close.AFTER, 1)])
async def test_a_connection_is_closed_before_or_after_the_server_has_acted(
    server: loopback.Server, proxy: FaultProxy, client: Transport, when: Close, asked: int
) -> None:
    # aiohttp's client asks again by itself for what changes nothing.
    proxy.rule = lambda _: Fault(close=when)
    with pytest.raises(Unreachable):
        await client.request("POST", WHERE, body=b"{}")
    assert len(server.asked) == asked


async def test_a_watch_is_told_line_by_line(
    server: loopback.Server, proxy: FaultProxy, client: Transport
) -> None:
    told = asyncio.Event()

    async def two_lines(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first\n")
        await told.wait()
        await response.write(b"second\n")
        return response

    server.say(two_lines)
    async with aclosing(client.lines(WHERE, {"watch": "true"})) as lines:
        assert await anext(lines) == b"first"
        told.set()
        assert await anext(lines) == b"second"


@pytest.mark.parametrize("when", Close)
async def test_what_is_done_on_close_is_done_before_the_client_can_notice(
    proxy: FaultProxy, client: Transport, when: Close
) -> None:
    done: list[bool] = []
    proxy.rule = lambda _: Fault(close=when, on_close=lambda: done.append(asking.done()))
    asking = asyncio.create_task(client.request("POST", WHERE, body=b"{}"))
    with pytest.raises(Unreachable):
        await asking
    assert done == [False]


@pytest.mark.parametrize(
    ("freeze", "is_silent"),
    [(Freeze(0.3), True), (Freeze(0.3, "pods"), True), (Freeze(600.0, "services"), False)],
)
async def test_a_frozen_watch_is_silent_while_writes_pass_and_then_tells_all(
    server: loopback.Server, proxy: FaultProxy, client: Transport, freeze: Freeze, is_silent: bool
) -> None:
    written = asyncio.Event()

    async def two_lines(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first\n")
        await written.wait()
        await response.write(b"second\n")
        return response

    server.say(two_lines, loopback.json_answer({"kind": "Pod"}))
    proxy.rule = nth(1, Fault(freeze=freeze), among=lambda asked: asked.is_write)
    async with aclosing(client.lines(WHERE, {"watch": "true"})) as lines:
        assert await anext(lines) == b"first"
        await client.request("POST", WHERE, body=b"{}")
        assert proxy.frozen_seconds() > 0
        written.set()
        assert await anext(lines) == b"second"
        assert (proxy.frozen_seconds() == 0) is is_silent
    assert proxy.writes == [f"POST {WHERE}"]
    assert proxy.met == {str(Fault(freeze=freeze)): 1}


async def test_faults_go_by_number(server: loopback.Server, proxy: FaultProxy, client: Transport) -> None:
    proxy.rule = nth(2, Fault(answer=500), among=lambda asked: asked.is_write)
    for fails in (False, True, False):
        await client.request("GET", WHERE)
        if fails:
            with pytest.raises(Unreachable):
                await client.request("POST", WHERE, body=b"{}")
        else:
            await client.request("POST", WHERE, body=b"{}")
    assert len(server.asked) == 5


def test_faults_by_lot_are_the_same_with_the_same_seed() -> None:
    faults = [Fault(answer=500), Fault(close=Close.AFTER)]

    def drawn(rule: Rule) -> list[Fault | None]:
        return [rule(None) for _ in range(1000)]  # type: ignore[arg-type] # it does not look

    met = drawn(some(1, 0.05, faults))
    assert met == drawn(some(1, 0.05, faults)) != drawn(some(2, 0.05, faults))
    assert 20 < sum(one is not None for one in met) < 100
    assert set(met) == {None, *faults}
