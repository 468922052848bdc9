"""From the server's answer to an error of cluster.py's tree."""

import msgspec

from paddle_operator.cluster import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    Throttled,
    Unauthorized,
    Unreachable,
)

_BY_CODE: dict[int, type[ApiError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: Invalid,
    409: Conflict,
    410: Gone,
    413: Invalid,
    415: Invalid,
    422: Invalid,
}


LONGEST_PAUSE_SECONDS = 60.0


class Status(msgspec.Struct, rename="camel"):
    """The server's own words, as in every answer that is not a success and in ERROR lines of a watch."""

    code: int = 0
    reason: str = ""
    message: str = ""


def error_from(status: Status, retry_after: str = "") -> ApiError:
    text = status.message or f"HTTP {status.code}"
    if status.reason == "AlreadyExists":
        return AlreadyExists(text)
    if status.code == 429:
        return Throttled(text, _seconds(retry_after))
    return _BY_CODE.get(status.code, Unreachable)(text)


def error_from_response(code: int, body: bytes, retry_after: str = "") -> ApiError:
    try:
        status = msgspec.json.decode(body, type=Status)
    except (ValueError, RecursionError):
        status = Status(message=body[:200].decode(errors="replace").strip())
    return error_from(msgspec.structs.replace(status, code=code), retry_after)


def _seconds(retry_after: str) -> float:
    """At least a little, and at most so long that a mistake of a proxy does not stop us for a day."""
    try:
        return min(max(0.1, float(retry_after)), LONGEST_PAUSE_SECONDS)
    except ValueError:
        return 1.0
