"""Stands between an operator and its API server, and does to requests what a bad day does to them.

    async with FaultProxy(plane.kubeconfig_for(OPERATOR), rule) as proxy:
        world.start_manager(options=[f"--kubeconfig={proxy.kubeconfig}"])

A rule is any function from a request to a fault, or to None for none. `nth` and `some` make such; a test may
as well write its own. Whom the server takes us for is up to the operator's token, which is passed on.
"""

import asyncio
import json
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp
import yaml
from aiohttp import web

from paddle_operator.kube.config import from_file

HOST = "127.0.0.1"
# Of one connection each, and not of what it carries.
NOT_PASSED_ON = {"connection", "content-length", "host", "keep-alive", "transfer-encoding"}


class Close(StrEnum):
    """When the connection is closed instead of an answer: what the server did, the client cannot know."""

    BEFORE = "before the server is asked"
    AFTER = "after the server has answered"


@dataclass(frozen=True)
class Freeze:
    """Watches are silent for so long, also those that begin meanwhile. What they have to say comes then."""

    seconds: float
    of: str = ""
    """Those of one kind, by the last word of their path: pods, say. Empty: all of them."""


@dataclass(frozen=True)
class Fault:
    """What happens to a request, besides that it takes its time."""

    delay_seconds: float = 0.0
    close: Close | None = None
    on_close: Callable[[], None] | None = None
    """Is called before the client can notice that it is closed, and may see to it that it never does."""
    answer: int = 0
    """This code, without the server being asked."""
    in_stream: bool = False
    """The code is told as servers tell it when a watch has begun well: in its last line."""
    retry_after: str = ""
    freeze: Freeze | None = None
    """From the moment when the request comes; itself it is passed on."""

    def __str__(self) -> str:
        if self.freeze:
            return f"watches frozen for {self.freeze.seconds:g} s"
        return f"closed {self.close}" if self.close else str(self.answer or "slow")


@dataclass(frozen=True)
class Asked:
    number: int
    """From 1, in the order in which they come."""
    method: str
    path: str
    query: Mapping[str, str]

    @property
    def is_watch(self) -> bool:
        return self.query.get("watch") == "true"

    @property
    def is_write(self) -> bool:
        return self.method != "GET"

    @property
    def kind(self) -> str:
        """Of a list or a watch: the last word of its path."""
        return self.path.rpartition("/")[2]


Rule = Callable[[Asked], Fault | None]


def nth(number: int, fault: Fault, among: Callable[[Asked], bool] = lambda _: True) -> Rule:
    """The fault for one request alone: this one, from 1, among those that are meant."""
    count = 0

    def rule(asked: Asked) -> Fault | None:
        nonlocal count
        count += among(asked)
        return fault if among(asked) and count == number else None

    return rule


def some(seed: int, share: float, faults: Sequence[Fault], otherwise: Fault | None = None) -> Rule:
    """A share of all requests meets one of the faults, each as likely as the next."""
    chance = random.Random(seed)
    return lambda _: chance.choice(faults) if chance.random() < share else otherwise


class FaultProxy:
    """Plain HTTP on loopback, before the server of a kubeconfig. Its rule may be replaced at any time."""

    def __init__(self, upstream: Path, rule: Rule = lambda _: None) -> None:
        self.rule = rule
        self.met: Counter[str] = Counter()
        """How often each fault was met."""
        self.requests = 0
        self.writes: list[str] = []
        """Of those that came: method and path."""
        self._frozen_until: dict[str, float] = {}
        self._upstream = from_file(upstream)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        self.kubeconfig = folder / "kubeconfig.yaml"
        connector = aiohttp.TCPConnector(ssl=self._upstream.tls or True, limit=0)
        self._session = await self._stack.enter_async_context(
            aiohttp.ClientSession(connector=connector, auto_decompress=False)
        )
        # Handlers end with the client that they serve, else a watch would go on without anybody to tell.
        runner = web.ServerRunner(web.Server(self._handle, handler_cancellation=True), shutdown_timeout=1)
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, HOST, 0)
        await site.start()
        url = f"http://{HOST}:{runner.addresses[0][1]}"
        write_kubeconfig(self.kubeconfig, url, self._upstream.token)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests += 1
        asked = Asked(self.requests, request.method, request.path, request.query)
        fault = self.rule(asked) or Fault()
        if fault != Fault():
            self.met[str(fault)] += 1
        if asked.is_write:
            self.writes.append(f"{asked.method} {asked.path}")
        if fault.freeze:
            until = asyncio.get_running_loop().time() + fault.freeze.seconds
            self._frozen_until[fault.freeze.of] = until
        await asyncio.sleep(fault.delay_seconds)
        if fault.close is Close.BEFORE:
            return _closed(request, fault)
        if fault.answer:
            return _answered(fault)
        return await self._pass_on(request, asked, fault)

    def frozen_seconds(self, *kinds: str) -> float:
        """How long watches of these kinds will yet be silent; of any, if none is named."""
        ends = [self._frozen_until.get(kind, 0.0) for kind in ("", *(kinds or self._frozen_until))]
        return max(0.0, max(ends) - asyncio.get_running_loop().time())

    async def _pass_on(self, request: web.BaseRequest, asked: Asked, fault: Fault) -> web.StreamResponse:
        headers = {name: text for name, text in request.headers.items() if name.lower() not in NOT_PASSED_ON}
        try:
            async with self._session.request(
                request.method,
                f"{self._upstream.server}{request.raw_path}",
                headers=headers,
                data=await request.read(),
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=None),
            ) as answer:
                return await self._pass_back(request, asked, answer, fault)
        except (aiohttp.ClientError, OSError):
            return _closed(request)

    async def _pass_back(
        self, request: web.BaseRequest, asked: Asked, answer: aiohttp.ClientResponse, fault: Fault
    ) -> web.StreamResponse:
        """As it comes. One that is to be closed is read first, if there is something: then all is done."""
        chunks = answer.content.iter_any()
        if fault.close is Close.AFTER:
            await anext(chunks, b"")
            return _closed(request, fault)
        response = web.StreamResponse(status=answer.status, reason=answer.reason)
        for name, text in answer.headers.items():
            if name.lower() not in NOT_PASSED_ON:
                response.headers.add(name, text)
        # A client that went away has nobody to complain to.
        with suppress(ConnectionError):
            await response.prepare(request)
            async for chunk in chunks:
                while asked.is_watch and (pause := self.frozen_seconds(asked.kind)):  # noqa: ASYNC110
                    await asyncio.sleep(pause)
                await response.write(chunk)
            await response.write_eof()
        return response


def _answered(fault: Fault) -> web.Response:
    message = "an injected fault"
    if fault.in_stream:
        line = {"type": "ERROR", "object": {"kind": "Status", "code": fault.answer, "message": message}}
        return web.Response(text=json.dumps(line) + "\n")
    headers = {"Retry-After": fault.retry_after} if fault.retry_after else {}
    return web.Response(status=fault.answer, text=message, headers=headers)


def _closed(request: web.BaseRequest, fault: Fault | None = None) -> web.StreamResponse:
    if fault is not None and fault.on_close is not None:
        fault.on_close()
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def write_kubeconfig(file: Path, server: str, token: str) -> None:
    content = {
        "clusters": [{"name": "faults", "cluster": {"server": server}}],
        "users": [{"name": "operator", "user": {"token": token}}],
        "contexts": [{"name": "faults", "context": {"cluster": "faults", "user": "operator"}}],
        "current-context": "faults",
    }
    file.write_text(yaml.safe_dump(content))
