"""What a component answers is told apart: yes, no and nothing."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from testbed.certificates import Authority
from testbed.components import API_SERVER, HOST, Layout
from testbed.errors import ControlPlaneError
from testbed.instance import ADMIN, Record
from testbed.probe import Prober


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path)
    layout.certificates.mkdir()
    authority = Authority(layout.certificates)
    authority.issue("server", [HOST])
    authority.issue("etcd-client")
    return layout


@contextmanager
def served(layout: Layout, status: int, body: str) -> Iterator[Prober]:
    """Asks an API server that answers so, whatever it is asked."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        do_PATCH = do_GET  # noqa: N815 (the name that the base class looks for)

        def log_message(self, *_: Any) -> None:
            """Nobody reads it."""

    with HTTPServer((HOST, 0), Handler) as server:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(layout.certificate("server"), layout.key("server"))
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield Prober(layout, record(server.server_port))
        finally:
            server.shutdown()
            thread.join()


def record(port: int) -> Record:
    return Record((API_SERVER,), {API_SERVER: port}, {ADMIN: "secret"}, {})


def test_an_object_comes_as_it_is(layout: Layout) -> None:
    with served(layout, 200, '{"kind": "Node"}') as prober:
        assert prober.is_ok(API_SERVER, "/readyz")
        assert prober.get("/api/v1/nodes/node-1") == {"kind": "Node"}
        assert prober.merge_patch("/api/v1/nodes/node-1", {}) == {"kind": "Node"}


@pytest.mark.parametrize("code", [403, 404, 422, 500])
def test_a_refusal_is_an_error_that_repeats_the_servers_words(layout: Layout, code: int) -> None:
    with served(layout, code, '{"kind": "Status", "message": "nodes are not for you"}') as prober:
        assert not prober.is_ok(API_SERVER, "/readyz")
        with pytest.raises(ControlPlaneError, match=rf"GET \S+/nodes was .* {code}: nodes are not for you"):
            prober.get("/api/v1/nodes")
        with pytest.raises(ControlPlaneError, match=r"PATCH \S+/nodes was"):
            prober.merge_patch("/api/v1/nodes", {})


def test_nor_is_an_answer_of_something_else_taken_for_an_object(layout: Layout) -> None:
    with served(layout, 200, "<html>") as prober, pytest.raises(ControlPlaneError, match="JSON"):
        prober.get("/api/v1/nodes")


def test_a_server_that_is_away_is_an_error_with_a_remedy(layout: Layout) -> None:
    prober = Prober(layout, record(port=1))
    assert not prober.is_ok(API_SERVER, "/readyz")
    with pytest.raises(ControlPlaneError, match=r"refused[\s\S]*remedy: .*kube-apiserver.log"):
        prober.get("/api/v1/nodes")
