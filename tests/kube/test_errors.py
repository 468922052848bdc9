"""From the server's answer to an error of our own tree."""

import msgspec
import pytest

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
from paddle_operator.kube.errors import error_from_response


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", Invalid),
        (401, "Unauthorized", Unauthorized),
        (403, "Forbidden", Forbidden),
        (404, "NotFound", NotFound),
        (405, "MethodNotAllowed", Invalid),
        (409, "AlreadyExists", AlreadyExists),
        (409, "Conflict", Conflict),
        (409, "", Conflict),
        (410, "Expired", Gone),
        (410, "Gone", Gone),
        (413, "RequestEntityTooLarge", Invalid),
        (415, "UnsupportedMediaType", Invalid),
        (422, "Invalid", Invalid),
        (429, "TooManyRequests", Throttled),
        (500, "InternalError", Unreachable),
        (502, "", Unreachable),
        (503, "ServiceUnavailable", Unreachable),
        (504, "Timeout", Unreachable),
        (599, "never heard of", Unreachable),
    ],
)
def test_each_answer_has_its_error(code: int, reason: str, kind: type[ApiError]) -> None:
    body = msgspec.json.encode({"kind": "Status", "code": code, "reason": reason, "message": "so it is"})
    error = error_from_response(code, body)
    assert type(error) is kind
    assert str(error) == "so it is"


def test_the_code_of_the_answer_counts_and_not_the_one_in_its_body() -> None:
    assert type(error_from_response(404, b'{"code": 500}')) is NotFound


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "HTTP 502"),
        (b"{}", "HTTP 502"),
        (b"<html>bad gateway</html>", "<html>bad gateway</html>"),
        (b"[]", "[]"),
        (b'{"message": null}', '{"message": null}'),
        (b'{"message": "\xff"}', '{"message": "\ufffd"}'),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"[" * 100_000, "[" * 200),
        (b'{"a":' * 100_000, '{"a":' * 40),
        (b"  x" + b"y" * 1000, "x" + "y" * 197),
    ],
    ids=["nothing", "empty", "html", "list", "null", "no utf-8", "binary", "deep", "deep object", "long"],
)
def test_an_answer_in_any_other_shape_gives_a_short_text(body: bytes, text: str) -> None:
    error = error_from_response(502, body)
    assert type(error) is Unreachable
    assert str(error) == text


@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [
        ("7", 7),
        ("0.5", 0.5),
        ("0", 0.1),
        ("-5", 0.1),
        ("", 1),
        ("Wed, 18 Nov 2026 12:00:00 GMT", 1),
        ("nan", 0.1),
        ("inf", 60),
        ("86400", 60),
    ],
)
def test_a_pause_is_neither_nothing_nor_a_day(retry_after: str, seconds: float) -> None:
    error = error_from_response(429, b"{}", retry_after)
    assert isinstance(error, Throttled)
    assert error.retry_after_seconds == seconds
