"""What was asked of an API server, from its audit log."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

READS = frozenset({"get", "list", "watch"})
POD_OF_AN_ACCOUNT = "authentication.kubernetes.io/pod-name"


@dataclass(frozen=True)
class Request:
    user: str
    verb: str
    resource: str
    namespace: str
    name: str
    code: int
    group: str
    at: datetime
    """When the server received it."""
    ended: datetime
    agent: str
    """The program that asked."""
    pod: str
    """In which it ran; empty for one outside the cluster."""

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"

    @property
    def is_accepted_write(self) -> bool:
        return self.verb not in READS and self.code < 300


def read_audit_log(log: Path, since: int = 0) -> list[Request]:
    """From that byte on. The server may be about to write the last line."""
    with log.open("rb") as lines:
        lines.seek(since)
        entries = [json.loads(line) for line in lines if line.endswith(b"\n")]
    return [
        _request(entry)
        for entry in entries
        if entry.get("stage") == "ResponseComplete" or entry.get("verb") == "watch"
    ]


def _request(entry: dict[str, Any]) -> Request:
    about, user = entry.get("objectRef", {}), entry["user"]
    return Request(
        # Of one with a token that is no more, nothing is known.
        user=user.get("username", ""),
        verb=entry["verb"],
        resource="/".join(part for part in (about.get("resource"), about.get("subresource")) if part),
        namespace=about.get("namespace", ""),
        name=about.get("name", ""),
        code=entry.get("responseStatus", {}).get("code", 0),
        group=about.get("apiGroup", ""),
        at=datetime.fromisoformat(entry["requestReceivedTimestamp"]),
        ended=datetime.fromisoformat(entry["stageTimestamp"]),
        agent=entry.get("userAgent", ""),
        pod=user.get("extra", {}).get(POD_OF_AN_ACCOUNT, [""])[0],
    )


def tally(requests: Iterable[Request]) -> Counter[str]:
    """By verb and resource; watches are renewals, not work."""
    return Counter(str(request) for request in requests if request.verb != "watch")
