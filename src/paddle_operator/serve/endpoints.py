"""The addresses at which the manager answers: whether it lives, whether it is ready, its metrics."""

from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

OFF = frozenset({"", "0"})


class BadAddress(ValueError):  # noqa: N818 (reads as what it is)
    pass


class CannotListen(Exception):  # noqa: N818
    pass


@dataclass(frozen=True)
class Address:
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> "Address | None":
        """As Go writes them: ":8080" is every address of this machine. None: switched off."""
        if text in OFF:
            return None
        host, colon, port = text.rpartition(":")
        if not (colon and port.isdecimal() and 0 < int(port) < 65536):
            raise BadAddress(f"{text!r} is no address; write :8080, 127.0.0.1:8080, or 0 for none")
        return cls(host.strip("[]"), int(port))


@dataclass(frozen=True)
class Reply:
    body: bytes
    status: int = 200
    content_type: str = "text/plain; charset=utf-8"


@dataclass(frozen=True)
class Page:
    address: Address | None
    path: str
    reply: Callable[[], Reply]


@asynccontextmanager
async def serving(pages: Iterable[Page]) -> AsyncIterator[None]:
    """Answers inside the block; pages of one address share a server."""
    by_address: dict[Address, list[Page]] = defaultdict(list)
    for page in pages:
        if page.address is not None:
            by_address[page.address].append(page)
    async with AsyncExitStack() as stack:
        for address, its_pages in by_address.items():
            app = web.Application()
            app.add_routes([web.get(page.path, _handler(page.reply)) for page in its_pages])
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            site = web.TCPSite(runner, address.host or None, address.port)
            try:
                await site.start()
            except OSError as error:
                raise CannotListen(f"{address}: {error.strerror or error}") from error
        yield


def _handler(reply: Callable[[], Reply]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(_: web.Request) -> web.Response:
        said = reply()
        return web.Response(body=said.body, status=said.status, headers={"Content-Type": said.content_type})

    return handle
