"""Bytes out, bytes in; and of everything that may go wrong only errors of our own tree come out."""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from loopback import Server, bytes_answer, json_answer, serving, stream_answer

from paddle_operator.cluster import Forbidden, Gone, NotFound, Throttled, Unreachable
from paddle_operator.kube import transport as module
from paddle_operator.kube.config import Credentials
from paddle_operator.kube.transport import Transport


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as server:
        yield server


@pytest.fixture
async def transport(server: Server) -> AsyncIterator[Transport]:
    async with Transport(Credentials(server.address, None, token="s3cr3t")) as transport:
        yield transport


async def lines_of(transport: Transport, query: dict[str, str] | None = None) -> list[bytes]:
    async with aclosing(transport.lines("/watch", query or {})) as lines:
        return [line async for line in lines]


async def test_a_request_says_who_we_are_and_what_it_carries(server: Server, transport: Transport) -> None:
    server.say(bytes_answer(b"answer"))
    assert await transport.request("PATCH", "/p", query={"a": "b c"}, body=b"{}", content_type="x/y") == (
        b"answer"
    )
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.query, asked.body) == ("PATCH", "/p", {"a": "b c"}, b"{}")
    assert asked.headers["Authorization"] == "Bearer s3cr3t"
    assert asked.headers["Content-Type"] == "x/y"
    assert asked.headers["Accept"] == "application/json"
    assert asked.headers["User-Agent"].startswith("paddle-operator/")


async def test_a_tls_connection_has_a_small_buffer() -> None:
    """By a name of asyncio's own, which another Python may change."""
    loop = asyncio.get_running_loop()
    tls: Any = asyncio.sslproto.SSLProtocol(
        loop, asyncio.Protocol(), ssl.create_default_context(), loop.create_future()
    )
    assert len(tls._ssl_buffer) == 32 * 1024
    tls.connection_lost(None)


async def test_a_watch_says_who_we_are_too(server: Server, transport: Transport) -> None:
    server.say(stream_answer())
    assert await lines_of(transport, {"watch": "true"}) == []
    assert server.asked[0].headers["Authorization"] == "Bearer s3cr3t"
    assert server.asked[0].query == {"watch": "true"}


async def test_without_a_token_nothing_is_said(server: Server) -> None:
    server.say(bytes_answer(b""))
    async with Transport(Credentials(server.address, None)) as transport:
        await transport.request("GET", "/")
    assert "Authorization" not in server.asked[0].headers


class TestATokenFile:
    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        return self.write(tmp_path / "token", b"first\n", 1)

    def write(self, file: Path, token: bytes | None, when: int) -> Path:
        if token is None:
            file.unlink()
            return file
        file.write_bytes(token)
        os.utime(file, (when, when))
        return file

    async def test_is_read_again_when_it_changes(self, server: Server, file: Path) -> None:
        server.say(bytes_answer(b""))
        async with Transport(Credentials(server.address, None, token_file=file)) as transport:
            await transport.request("GET", "/")
            self.write(file, b"second", 2)
            await transport.request("GET", "/")
            await lines_of(transport)
        sent = [asked.headers["Authorization"] for asked in server.asked]
        assert sent == ["Bearer first", "Bearer second", "Bearer second"]

    @pytest.mark.parametrize(
        "content", [b"", b"\n", b"two\nlines", b"a\r\nX-Evil: 1", b"\xff\xfe", None], ids=repr
    )
    async def test_that_holds_no_token_sends_nothing_and_is_tried_again(
        self, server: Server, file: Path, content: bytes | None
    ) -> None:
        server.say(bytes_answer(b""))
        async with Transport(Credentials(server.address, None, token_file=file)) as transport:
            self.write(file, content, 2)
            with pytest.raises(Unreachable, match="token"):
                await transport.request("GET", "/")
            with pytest.raises(Unreachable, match="token"):
                await lines_of(transport)
            assert not server.asked
            self.write(file, b"better", 3)
            await transport.request("GET", "/")
        assert server.asked[0].headers["Authorization"] == "Bearer better"


class TestTheServersDate:
    """Deadlines go by the server's clock, which each of its answers tells."""

    NOON = datetime(2026, 11, 18, 12, 0, 0, tzinfo=UTC)

    @pytest.fixture
    def told(self) -> list[datetime]:
        return []

    @pytest.fixture
    async def transport(self, server: Server, told: list[datetime]) -> AsyncIterator[Transport]:
        async with Transport(Credentials(server.address, None), told.append) as transport:
            yield transport

    async def test_is_told_once_a_second_however_many_answers_come(
        self, server: Server, transport: Transport, told: list[datetime]
    ) -> None:
        dates = ["Wed, 18 Nov 2026 12:00:00 GMT"] * 3 + ["Wed, 18 Nov 2026 12:00:01 GMT"] * 2
        server.say(*(bytes_answer(b"", Date=date) for date in dates))
        for _ in dates:
            await transport.request("GET", "/")
        assert told == [self.NOON, self.NOON + timedelta(seconds=1)]

    async def test_is_told_by_a_refusal_too(
        self, server: Server, transport: Transport, told: list[datetime]
    ) -> None:
        server.say(json_answer({"message": "no"}, 404, Date="Wed, 18 Nov 2026 12:00:00 GMT"))
        with pytest.raises(NotFound):
            await transport.request("GET", "/")
        assert told == [self.NOON]

    async def test_is_not_told_by_a_watch(
        self, server: Server, transport: Transport, told: list[datetime]
    ) -> None:
        """Its headers may be read late, and its lines have no date."""
        server.say(stream_answer(b"one\n"))
        await lines_of(transport)
        assert told == []

    @pytest.mark.parametrize(
        "date", ["yesterday", "Wed, 99 Nov 2026 12:00:00 GMT", "Wed, 18 Nov 2026 12:00:00 -0000", "12"]
    )
    async def test_that_is_none_is_passed_over(
        self, server: Server, transport: Transport, told: list[datetime], date: str
    ) -> None:
        """-0000 is for those who do not know where they are."""
        server.say(bytes_answer(b"fine", Date=date))
        assert await transport.request("GET", "/") == b"fine"
        assert told == []


class TestTroubleIsOneOfOurErrors:
    async def test_a_status_with_the_server_s_own_words(self, server: Server, transport: Transport) -> None:
        server.say(json_answer({"code": 404, "reason": "NotFound", "message": "no such pod"}, 404))
        with pytest.raises(NotFound, match="no such pod"):
            await transport.request("GET", "/")
        server.say(json_answer({"code": 410, "reason": "Expired", "message": "too old"}, 410))
        with pytest.raises(Gone, match="too old"):
            await lines_of(transport)

    async def test_a_pause_that_the_server_asks_for(self, server: Server, transport: Transport) -> None:
        server.say(json_answer({}, 429, Retry_After="7"))
        for attempt in (transport.request("GET", "/"), lines_of(transport)):
            with pytest.raises(Throttled) as caught:
                await attempt
            assert caught.value.retry_after_seconds == 7

    async def test_an_answer_of_a_gateway(self, server: Server, transport: Transport) -> None:
        server.say(bytes_answer(b"<html>bad \xff gateway</html>", 502))
        with pytest.raises(Unreachable, match=r"bad . gateway"):
            await transport.request("GET", "/")

    async def test_a_forbidden_watch(self, server: Server, transport: Transport) -> None:
        server.say(json_answer({"message": "no right to watch pods"}, 403))
        with pytest.raises(Forbidden, match="no right"):
            await lines_of(transport)

    async def test_nobody_listens(self) -> None:
        async with serving() as server:
            address = server.address
        async with Transport(Credentials(address, None)) as transport:
            with pytest.raises(Unreachable, match="GET /where"):
                await transport.request("GET", "/where")
            with pytest.raises(Unreachable, match="GET /watch"):
                await lines_of(transport)

    @pytest.mark.parametrize("address", ["http://[", "http://127.0.0.1:99999", "http://a..b", "http://"])
    async def test_an_address_that_is_none(self, address: str) -> None:
        async with Transport(Credentials(address, None)) as transport:
            with pytest.raises(Unreachable):
                await transport.request("GET", "/where")
            with pytest.raises(Unreachable):
                await lines_of(transport)

    async def test_an_answer_that_is_cut(self, server: Server, transport: Transport) -> None:
        server.say(stream_answer(b"half an ans", cut=True))
        with pytest.raises(Unreachable):
            await transport.request("GET", "/")

    async def test_an_answer_that_does_not_come(
        self, server: Server, transport: Transport, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def never(request: web.Request) -> web.StreamResponse:
            await asyncio.Event().wait()
            raise AssertionError

        server.say(never)
        monkeypatch.setattr(module, "REQUEST_SECONDS", 0.02)
        with pytest.raises(Unreachable, match="TimeoutError"):
            await transport.request("GET", "/")

    async def test_a_transport_that_is_closed(self, server: Server) -> None:
        async with Transport(Credentials(server.address, None)) as transport:
            pass
        with pytest.raises(Unreachable, match="closed"):
            await transport.request("GET", "/")
        with pytest.raises(Unreachable, match="closed"):
            await lines_of(transport)


class TestLines:
    @pytest.mark.parametrize(
        ("chunks", "lines"),
        [
            ([b"one\ntwo\n"], [b"one", b"two"]),
            ([b"o", b"ne\nt", b"wo", b"\n"], [b"one", b"two"]),
            ([b"one\n\n", b"\ntwo\n"], [b"one", b"two"]),
            ([b"one\n", b"a last line that is cut"], [b"one"]),
            ([], []),
        ],
    )
    async def test_are_whole_however_they_come(
        self, server: Server, transport: Transport, chunks: list[bytes], lines: list[bytes]
    ) -> None:
        server.say(stream_answer(*chunks))
        assert await lines_of(transport) == lines

    async def test_may_be_longer_than_a_mebibyte(self, server: Server, transport: Transport) -> None:
        long = b"x" * (3 * 1024 * 1024)
        server.say(stream_answer(b"short\n" + long + b"\nshort\n"))
        assert await lines_of(transport) == [b"short", long, b"short"]

    async def test_may_not_be_longer_than_our_memory(
        self, server: Server, transport: Transport, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "LONGEST_LINE", 1000)
        server.say(stream_answer(b"x" * 5000))
        with pytest.raises(Unreachable, match="more than 1000 bytes"):
            await lines_of(transport)

    async def test_that_came_before_the_connection_broke_are_told(
        self, server: Server, transport: Transport
    ) -> None:
        server.say(stream_answer(b"one\ntwo\nthr", cut=True))
        lines = transport.lines("/watch", {})
        assert [await anext(lines), await anext(lines)] == [b"one", b"two"]
        with pytest.raises(Unreachable, match="GET /watch"):
            await anext(lines)

    async def test_that_nobody_wants_any_more_give_the_connection_back_at_once(
        self, server: Server, transport: Transport
    ) -> None:
        hung_up = asyncio.Event()

        async def endless(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(b"one\n")
            try:
                await asyncio.Event().wait()
            finally:
                hung_up.set()
            return response

        server.say(endless)
        async with aclosing(transport.lines("/watch", {})) as lines:
            assert await anext(lines) == b"one"
        async with asyncio.timeout(5):
            await hung_up.wait()
        assert not transport._session.connector._acquired  # type: ignore[union-attr]

    async def test_a_silence_is_the_caller_s_to_bound_and_stays_his_time_out(
        self, server: Server, transport: Transport
    ) -> None:
        async def silent(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            await asyncio.Event().wait()
            return response

        server.say(silent)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02) as patience:
                await lines_of(transport)
        assert patience.expired()
