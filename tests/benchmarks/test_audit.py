"""Requests of one account, by verb and resource, from the audit log."""

import json
from pathlib import Path
from typing import Any

from benchmarks.audit import count, requests_in


def entry(verb: str, resource: str, *, user: str = "us", stage: str = "ResponseComplete") -> dict[str, Any]:
    kind, _, part = resource.partition("/")
    where = {"resource": kind} | ({"subresource": part} if part else {})
    return {"verb": verb, "user": {"username": user}, "stage": stage, "objectRef": where, "requestURI": "/x"}


def test_requests_are_counted_once_and_watches_when_they_begin() -> None:
    entries = [
        entry("create", "pods"),
        entry("create", "pods"),
        entry("patch", "paddlejobs/status"),
        entry("watch", "pods", stage="ResponseStarted"),
        entry("watch", "pods"),
        entry("create", "pods", user="somebody else"),
        {**entry("get", ""), "objectRef": {}},
    ]
    assert count(entries, "us") == {
        "create pods": 2,
        "patch paddlejobs/status": 1,
        "watch pods": 1,
        "get /x": 1,
    }


def test_what_was_logged_before_and_half_a_line_are_left_out(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    line = json.dumps(entry("create", "pods")) + "\n"
    log.write_text(line + line + line[:20])
    assert requests_in(log, len(line), "us") == {"create pods": 1}
