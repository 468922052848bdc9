"""The fake node's way to the API server: keep-alive requests, and lists that stay true by a watch.

HTTP/1.1 is spoken over asyncio streams: with aiohttp's client, benchmarks/fake_node.py measured 0.67-0.90 ms
of CPU time per status patch, with this one 0.38-0.66. The node must never be what limits a measurement.
"""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Self, TypeVar
from urllib.parse import urlsplit

import msgspec
import yaml
from msgspec import Struct

from testbed.node_pods import KubeObject, Meta

T = TypeVar("T", bound=KubeObject)
# Answers to a list can be long; a line of a watch is one object.
_BUFFER_BYTES = 1 << 20


class ApiError(Exception):
    """The server refused a request."""

    def __init__(self, status: int, what: str) -> None:
        super().__init__(f"{status} for {what}")
        self.status = status


@dataclass(frozen=True, slots=True)
class Server:
    url: str
    token: str
    ca_pem: str | None

    @classmethod
    def of_kubeconfig(cls, path: Path) -> Self:
        """The current context, if its user has a token; other credentials are not read."""
        config = yaml.safe_load(path.read_text())
        named = {
            kind: {each["name"]: each for each in config[kind]} for kind in ("contexts", "clusters", "users")
        }
        context = named["contexts"][config["current-context"]]["context"]
        cluster = named["clusters"][context["cluster"]]["cluster"]
        ca_pem = None
        if data := cluster.get("certificate-authority-data"):
            ca_pem = base64.b64decode(data).decode()
        elif file := cluster.get("certificate-authority"):
            ca_pem = (path.parent / file).read_text()
        return cls(cluster["server"], named["users"][context["user"]]["user"]["token"], ca_pem)


_Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class ApiClient:
    """Sends requests with a bearer token, each on a connection of its own, which is kept for the next.

    Whatever breaks a connection is raised as ConnectionError.
    """

    def __init__(self, server: Server) -> None:
        parts = urlsplit(server.url)
        self._host, self._port = parts.hostname, parts.port
        self._tls = ssl.create_default_context(cadata=server.ca_pem) if parts.scheme == "https" else None
        self._headers = (
            f"Host: {parts.netloc}\r\nAuthorization: Bearer {server.token}\r\nAccept: application/json\r\n"
        )
        self._idle: list[_Connection] = []

    async def close(self) -> None:
        """Call it when no request is under way."""
        for _, writer in self._idle:
            writer.transport.abort()
            with suppress(OSError):
                await writer.wait_closed()
        self._idle.clear()

    async def send(
        self, method: str, path: str, body: bytes = b"", media: str = "application/json"
    ) -> tuple[int, bytes]:
        async with self._connection() as (reader, writer):
            status, length = await self._begin((reader, writer), method, path, body, media)
            if length is not None:
                return status, await reader.readexactly(length)
            chunks = []
            while chunk := await _chunk(reader):
                chunks.append(chunk)
            return status, b"".join(chunks)

    async def lines(self, path: str, tell: Callable[[bytes], None]) -> None:
        """Tells each line of the answer as it arrives, until the server ends it."""
        async with self._connection() as (reader, writer):
            status, length = await self._begin((reader, writer), "GET", path, b"", "application/json")
            if status != 200 or length is not None:
                raise ApiError(status, path)
            rest = b""
            while chunk := await _chunk(reader):
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    tell(line)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[_Connection]:
        connection = self._kept() or await self._connect()
        try:
            yield connection
        except BaseException as error:
            # An answer may still be on its way: nobody else may read it.
            connection[1].transport.abort()
            if isinstance(error, (OSError, EOFError)):
                raise ConnectionError(str(error)) from error
            raise
        self._idle.append(connection)

    def _kept(self) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection[0].at_eof():
                return connection
            connection[1].transport.abort()
        return None

    async def _connect(self) -> _Connection:
        try:
            return await asyncio.open_connection(self._host, self._port, ssl=self._tls, limit=_BUFFER_BYTES)
        except OSError as error:
            raise ConnectionError(str(error)) from error

    async def _begin(
        self, connection: _Connection, method: str, path: str, body: bytes, media: str
    ) -> tuple[int, int | None]:
        """Status and length of the answer; None: it comes in chunks."""
        reader, writer = connection
        about_body = f"Content-Type: {media}\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(f"{method} {path} HTTP/1.1\r\n{self._headers}{about_body}".encode() + body)
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
        status = int(answer[9:12])
        if (at := answer.find(b"\r\ncontent-length:")) < 0:
            return status, None
        return status, int(answer[at + 17 : answer.index(b"\r\n", at + 17)])


async def _chunk(reader: asyncio.StreamReader) -> bytes:
    """The next part of a chunked answer; nothing: it is complete."""
    size = int(await reader.readuntil(b"\r\n"), 16)
    return (await reader.readexactly(size + 2))[:-2]


class _List(Struct, Generic[T], frozen=True):
    metadata: Meta
    items: list[T]


class _Event(Struct, Generic[T], frozen=True):
    type: str
    object: T


class _Failure(Struct, frozen=True):
    code: int = 0


class _ErrorEvent(Struct, frozen=True):
    object: _Failure


class Follower(Generic[T]):
    """Tells `replace` the whole state after every list, and `apply` each change (event type, object).

    A closed watch is resumed where it ended; only a version that the server has forgotten costs a new list.
    """

    def __init__(
        self,
        client: ApiClient,
        path: str,
        kind: type[T],
        *,
        replace: Callable[[list[T]], None],
        apply: Callable[[str, T], None],
    ) -> None:
        self._client = client
        self._path = path
        self._lists: msgspec.json.Decoder[_List[T]] = msgspec.json.Decoder(_List[kind])  # type: ignore[valid-type]
        self._events: msgspec.json.Decoder[_Event[T]] = msgspec.json.Decoder(_Event[kind])  # type: ignore[valid-type]
        self._replace = replace
        self._apply = apply
        self._version = ""

    async def list(self) -> None:
        status, body = await self._client.send("GET", self._path)
        if status != 200:
            raise ApiError(status, self._path)
        listed = self._lists.decode(body)
        self._version = listed.metadata.resource_version
        self._replace(listed.items)

    async def follow(self) -> None:
        """Never ends by itself: what the server does wrong is tried again."""
        while True:
            try:
                if not self._version:
                    await self.list()
                await self._watch()
            except ApiError as error:
                if error.status == 410:
                    self._version = ""
                    continue
                await asyncio.sleep(0.2)
            except ConnectionError:
                await asyncio.sleep(0.2)

    async def _watch(self) -> None:
        query = f"?watch=1&allowWatchBookmarks=true&timeoutSeconds=290&resourceVersion={self._version}"
        await self._client.lines(self._path + query, self._tell)

    def _tell(self, line: bytes) -> None:
        event = self._events.decode(line)
        if event.type == "ERROR":
            raise ApiError(msgspec.json.decode(line, type=_ErrorEvent).object.code, self._path)
        self._version = event.object.metadata.resource_version
        if event.type != "BOOKMARK":
            self._apply(event.type, event.object)
