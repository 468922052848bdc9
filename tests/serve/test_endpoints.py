"""The addresses of the manager, asked over loopback."""

import asyncio
import socket

import aiohttp
import pytest

from paddle_operator.serve.endpoints import Address, BadAddress, CannotListen, Page, Reply, serving


def free_address() -> Address:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return Address("127.0.0.1", probe.getsockname()[1])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":8080", Address("", 8080)),
        ("127.0.0.1:80", Address("127.0.0.1", 80)),
        ("[::1]:80", Address("::1", 80)),
        ("0", None),
        ("", None),
    ],
)
def test_addresses_are_written_as_in_go(text: str, expected: Address | None) -> None:
    assert Address.parse(text) == expected


@pytest.mark.parametrize("text", ["8080", ":", ":0", ":70000", "host:http", ":-1"])
def test_what_is_no_address_is_refused_with_examples(text: str) -> None:
    with pytest.raises(BadAddress, match=":8080"):
        Address.parse(text)


async def test_pages_of_one_address_share_it_and_one_that_is_off_is_left_out() -> None:
    address = free_address()
    pages = [
        Page(address, "/healthz", lambda: Reply(b"ok\n")),
        Page(address, "/readyz", lambda: Reply(b"not yet\n", 503)),
        Page(None, "/metrics", lambda: Reply(b"")),
    ]
    async with serving(pages), aiohttp.ClientSession() as session:
        for path, expected in (("healthz", (200, "ok\n")), ("readyz", (503, "not yet\n"))):
            async with session.get(f"http://{address}/{path}") as response:
                assert (response.status, await response.text()) == expected
        async with session.get(f"http://{address}/metrics") as response:
            assert response.status == 404
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(address.host, address.port)


async def test_an_address_that_is_taken_is_named() -> None:
    address = free_address()
    page = Page(address, "/", lambda: Reply(b""))
    async with serving([page]):
        with pytest.raises(CannotListen, match=f"{address}: .*in use"):
            async with serving([page]):
                pass
