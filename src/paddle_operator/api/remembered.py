"""What was made of a text is remembered, but not the text: it may be the end of a log, and hold secrets."""

from collections.abc import Callable
from functools import wraps
from hashlib import sha256
from typing import TypeVar

T = TypeVar("T")
# More than the pods of the largest job: all of them are asked about in each turn.
MOST = 16_384


def remembered(read: Callable[[str], T]) -> Callable[[str], T]:
    known: dict[bytes, T] = {}

    @wraps(read)
    def asked(text: str) -> T:
        digest = sha256(text.encode(errors="surrogatepass")).digest()
        if digest not in known:
            if len(known) >= MOST:
                known.clear()
            known[digest] = read(text)
        return known[digest]

    return asked
