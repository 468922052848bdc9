"""Times as kubectl takes them: 90s, 10m, 1h30m."""

import re

_DURATION = re.compile(r"(?:([0-9.]+)h)?(?:([0-9.]+)m)?(?:([0-9.]+)s?)?")


class BadDuration(Exception):  # noqa: N818 (reads as what it is)
    def __init__(self, text: str, option: str) -> None:
        super().__init__(f"{option} {text!r} is no time; write for example 90s, 10m or 1h30m")


def seconds(text: str, option: str = "--timeout") -> float:
    found = _DURATION.fullmatch(text)
    if not found or not any(found.groups()):
        raise BadDuration(text, option)
    try:
        hours, minutes, rest = (float(part or 0) for part in found.groups())
    except ValueError:
        raise BadDuration(text, option) from None
    return 3600 * hours + 60 * minutes + rest
