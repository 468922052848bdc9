import ssl
from http.client import HTTPException, HTTPSConnection

from testbed.components import Layout

TIMEOUT_SECONDS = 2.0


class Prober:
    """Asks components over TLS, as the administrator; etcd is shown a client certificate."""

    def __init__(self, layout: Layout, token: str) -> None:
        self._layout = layout
        self._token = token

    def is_ok(self, address: str, port: int, path: str) -> bool:
        """True for an answer of 200; every other answer, and none, is False."""
        try:
            context = ssl.create_default_context(cafile=self._layout.ca)
            context.load_cert_chain(self._layout.certificate("etcd-client"), self._layout.key("etcd-client"))
        except OSError:
            # Somebody has deleted files of a running instance.
            return False
        connection = HTTPSConnection(address, port, timeout=TIMEOUT_SECONDS, context=context)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self._token}"})
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()
