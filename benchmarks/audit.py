"""Who asked the API server for what, from its audit log."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any


def requests_in(log: Path, since: int, user: str) -> Counter[str]:
    """By verb and resource, those that began or ended since; a watch counts when it begins."""
    return count(_entries(log, since), user)


def count(entries: Iterable[dict[str, Any]], user: str) -> Counter[str]:
    return Counter(
        f"{entry['verb']} {_resource(entry)}"
        for entry in entries
        if entry["user"].get("username") == user
        and entry["stage"] == ("ResponseStarted" if entry["verb"] == "watch" else "ResponseComplete")
    )


def _resource(entry: dict[str, Any]) -> str:
    where = entry.get("objectRef", {})
    if "resource" not in where:
        return str(entry["requestURI"])
    return "/".join(where[part] for part in ("resource", "subresource") if part in where)


def _entries(log: Path, since: int) -> Iterator[dict[str, Any]]:
    with log.open("rb") as file:
        file.seek(since)
        for line in file:
            # The last line may be half written.
            if line.endswith(b"\n"):
                yield json.loads(line)
