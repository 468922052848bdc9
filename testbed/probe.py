"""What the components of a control plane answer, and what is known of each."""

import json
import ssl
from dataclasses import dataclass
from http.client import HTTPException, HTTPSConnection
from typing import Any

from testbed.components import API_SERVER, Layout
from testbed.errors import ControlPlaneError
from testbed.instance import ADMIN, Record

TIMEOUT_SECONDS = 2.0

Manifest = dict[str, Any]


@dataclass(frozen=True)
class ComponentStatus:
    component: str
    pid: int | None
    address: str
    healthy: bool

    @property
    def state(self) -> str:
        if self.pid is None:
            return "not running"
        return "healthy" if self.healthy else "running, not healthy"


class Prober:
    """Asks components over TLS, as the administrator; etcd is shown a client certificate."""

    def __init__(self, layout: Layout, record: Record) -> None:
        self._layout = layout
        self._record = record

    def is_ok(self, component: str, path: str) -> bool:
        """True for an answer of 200; every other answer, and none, is False."""
        try:
            status, _ = self._send("GET", component, path)
        except (OSError, HTTPException):
            # Also when somebody has deleted files of a running instance.
            return False
        return status == 200

    def get(self, path: str) -> Manifest:
        return self._ask("GET", path, None)

    def merge_patch(self, path: str, patch: Manifest) -> Manifest:
        return self._ask("PATCH", path, patch)

    def _ask(self, method: str, path: str, body: Manifest | None) -> Manifest:
        """The object that the API server answers with; if it refuses, an error with its words."""
        try:
            status, answer = self._send(method, API_SERVER, path, body)
            parsed: Manifest = json.loads(answer)
        except (OSError, HTTPException, ValueError) as error:
            raise ControlPlaneError(
                f"{method} {self._record.url}{path}: {error!r}",
                remedy=f"is the server well? See {self._layout.log(API_SERVER)}",
            ) from error
        if status != 200:
            raise ControlPlaneError(
                f"{method} {self._record.url}{path} was answered with {status}: {parsed.get('message')}",
                remedy=f"see that message, and {self._layout.log(API_SERVER)}",
            )
        return parsed

    def _send(
        self, method: str, component: str, path: str, body: Manifest | None = None
    ) -> tuple[int, bytes]:
        context = ssl.create_default_context(cafile=self._layout.ca)
        context.load_cert_chain(self._layout.certificate("etcd-client"), self._layout.key("etcd-client"))
        record = self._record
        connection = HTTPSConnection(
            record.address(component), record.ports[component], timeout=TIMEOUT_SECONDS, context=context
        )
        headers = {
            "Authorization": f"Bearer {record.tokens[ADMIN]}",
            "Content-Type": "application/merge-patch+json",
        }
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()
