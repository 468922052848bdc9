"""Requests to the API server: bytes out, bytes in. The only place that opens a connection."""

import asyncio.sslproto
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp

from paddle_operator import __version__
from paddle_operator.cluster import Unreachable

from .config import Credentials
from .errors import error_from_response

REQUEST_SECONDS = 30.0
CONNECT_SECONDS = 5.0
# The server's own bound for an object in etcd is 1.5 MiB; a line of a watch is one object.
LONGEST_LINE = 16 * 1024 * 1024
# Not compressed: on a cluster's network that would cost more than it spares, here and at the server.
HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "User-Agent": f"paddle-operator/{__version__}",
}
REQUEST_TIMEOUT = aiohttp.ClientTimeout(total=REQUEST_SECONDS, connect=CONNECT_SECONDS)
WATCH_TIMEOUT = aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS)
# asyncio keeps a buffer for each TLS connection, of 256 KiB if nobody says otherwise: for 36 of them that is
# 8 MiB more than it takes. A TLS record has 16 KiB.
asyncio.sslproto.SSLProtocol.max_size = 32 * 1024
# What aiohttp and the socket below it raise; ValueError for addresses that are none.
TROUBLE = (aiohttp.ClientError, TimeoutError, OSError, ValueError)


@dataclass(frozen=True)
class Answer:
    """To one request; a watch is answered when it begins."""

    method: str
    path: str
    status: int
    """0: there was none."""
    seconds: float
    is_watch: bool = False


class Transport:
    """One connection pool to one server. Errors are those of cluster.py and nothing else."""

    def __init__(
        self,
        credentials: Credentials,
        on_date: Callable[[datetime], None] = lambda _: None,
        on_answer: Callable[[Answer], None] = lambda _: None,
    ) -> None:
        self._credentials = credentials
        self._on_date = on_date
        self._on_answer = on_answer
        self._last_date = ""
        self._token = credentials.token
        self._token_changed_at = 0
        self._session = aiohttp.ClientSession(
            # The executor bounds what is in flight; watches come on top and must never wait for a place.
            connector=aiohttp.TCPConnector(ssl=credentials.tls or True, limit=0),
            headers=HEADERS,
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
    ) -> bytes:
        headers = self._headers()
        if body is not None:
            headers["Content-Type"] = content_type
        begun, status = time.monotonic(), 0
        try:
            async with self._session.request(
                method,
                self._credentials.server + path,
                params=query,
                data=body,
                headers=headers,
                timeout=REQUEST_TIMEOUT,
                allow_redirects=False,
            ) as response:
                self._tell_date(response.headers.get("Date", ""))
                answer = await response.read()
                status = response.status
                if status >= 300:
                    raise error_from_response(status, answer, response.headers.get("Retry-After", ""))
                return answer
        except TROUBLE as error:
            raise Unreachable(f"{method} {path}: {_described(error)}") from error
        finally:
            self._on_answer(Answer(method, path, status, time.monotonic() - begun))

    async def lines(self, path: str, query: dict[str, str]) -> AsyncGenerator[bytes, None]:
        """A stream line by line, for as long as it lasts; how long to wait for a line is up to the caller."""
        begun, status = time.monotonic(), 0
        try:
            async with self._session.get(
                self._credentials.server + path,
                params=query,
                headers=self._headers(),
                timeout=WATCH_TIMEOUT,
                allow_redirects=False,
            ) as response:
                status = response.status
                self._on_answer(Answer("GET", path, status, time.monotonic() - begun, is_watch=True))
                if status >= 300:
                    answer = await response.read()
                    raise error_from_response(status, answer, response.headers.get("Retry-After", ""))
                async with aclosing(_split_lines(response.content)) as lines:
                    async for line in lines:
                        yield line
        except TROUBLE as error:
            if not status:
                self._on_answer(Answer("GET", path, 0, time.monotonic() - begun, is_watch=True))
            raise Unreachable(f"GET {path}: {_described(error)}") from error

    def _tell_date(self, written: str) -> None:
        """Once a second at most: many answers come within one."""
        if not written or written == self._last_date:
            return
        self._last_date = written
        try:
            date = parsedate_to_datetime(written)
        except ValueError:
            return
        if date.tzinfo is not None:
            self._on_date(date)

    def _headers(self) -> dict[str, str]:
        if self._session.closed:
            raise Unreachable("the connection is closed")
        file = self._credentials.token_file
        if file is not None:
            try:
                changed_at = file.stat().st_mtime_ns
                if changed_at != self._token_changed_at:
                    self._token, self._token_changed_at = _read_token(file), changed_at
            except (OSError, ValueError) as error:
                raise Unreachable(f"{file}: the token cannot be read: {error}") from error
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}


def _read_token(file: Path) -> str:
    """The token in a file; ValueError for what cannot be one, such as a file that is just being written."""
    token = file.read_text(encoding="ascii").strip()
    if not token or not token.isprintable():
        raise ValueError("the file holds no token" if not token else "the file holds more than a token")
    return token


async def _split_lines(content: aiohttp.StreamReader) -> AsyncGenerator[bytes, None]:
    """Our own splitting, because aiohttp's gives up on lines beyond 128 KiB. A cut last line is dropped."""
    rest = b""
    async for chunk in content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > LONGEST_LINE:
            raise Unreachable(f"the server sent a line of more than {LONGEST_LINE} bytes")
        for line in lines:
            if line:
                yield line


def _described(error: Exception) -> str:
    return str(error) or type(error).__name__
