"""The table of ends in words, for `paddle-operator explain-exit`: plain lines of a given width."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from textwrap import wrap

from .ends import Counts, Meaning, meaning_of, meanings_of_code, table

LAST_CODE = 255
COUNTED = {
    Counts.FAILURE: "as a failure, against runPolicy.backoffLimit",
    Counts.DISRUPTION: "as a disruption, against runPolicy.maxDisruptions",
    Counts.NOTHING: "against nothing: the job is not restarted",
}
LIMITS = {Counts.FAILURE: "backoffLimit", Counts.DISRUPTION: "maxDisruptions"}
NOT_COUNTED = "not by itself: the pod waits, no longer than runPolicy.startDeadlineSeconds if that is set"
_ENDED_WELL = (
    "0: ended well. A job is Completed when all its workers have; only a parameter server has to serve until "
    "it is stopped: see ServerEnded."
)
# What people read elsewhere and ask for, too: it is in no row, because there is nothing in it.
_SAYS_LITTLE = {
    "error": "Error: the container ended with another code than 0. Ask for that code.",
    "podfailed": "PodFailed: a pod failed; status.failure has its reason and exit code. Ask for these.",
    "completed": _ENDED_WELL,
}
_REASONS_FIRST = (
    "The reason of a pod or container goes before its exit code: of a trainer that ran out of memory the "
    "code is 137, under Paddle's launcher 247, and the reason OOMKilled."
)
_MORE = "What to do about one of them: paddle-operator explain-exit 247, or any other code or reason."
_INDENT = 2
_LABEL = 9
_KEY = 26


class NotKnownError(ValueError):
    """No such code, and no such reason."""


def explain(word: str, width: int) -> str:
    """One exit code, or the reasons and classes that are spelled so, in whatever case."""
    word = word.strip()
    if not word:
        raise NotKnownError("the word is empty; give an exit code (0 to 255), or a reason such as OOMKilled")
    if word.isascii() and word.removeprefix("-").isdigit():
        return _lines(_code(word, width))
    if said := _SAYS_LITTLE.get(word.lower()):
        return _lines(wrap(said, width))
    rows = [*_spelled(word, table().end), *_spelled(word, table().waiting)]
    if not rows:
        raise NotKnownError(
            f"{word!r} is no exit code (0 to 255) and no reason that is known; {_nearest(word)}"
        )
    waiting = table().waiting
    return _lines(part for row in rows for part in (*_block(row, width, waits=row in waiting), ""))


def explain_all(width: int) -> str:
    """The whole table, a paragraph for each row; what to do is told for one at a time."""
    parts = [*wrap(_REASONS_FIRST, width), ""]
    parts += ["Reasons", "", *_listing((row for row in table().end if row.reasons), width)]
    parts += ["Exit codes", "", *_listing((row for row in table().end if row.codes), width)]
    parts += ["Reasons for which pods wait", "", *_listing(table().waiting, width)]
    return _lines([*parts, *wrap(_MORE, width)])


def key_of(row: Meaning) -> str:
    return ", ".join((*row.reasons, *row.codes))


def others_of_code(code: int) -> tuple[Meaning, ...]:
    """What else a code may mean; the same in other words is left out."""
    first, *others = meanings_of_code(code)
    return tuple(one for one in others if (one.kind, one.counts) != (first.kind, first.counts))


def _code(word: str, width: int) -> Iterator[str]:
    code = int(word) if len(word) <= 4 else LAST_CODE + 1
    if not 0 <= code <= LAST_CODE:
        hint = ""
        if -64 <= code < 0:
            hint = f"; what signal {-code} ended has {128 - code}, or {256 + code} under Paddle's launcher"
        raise NotKnownError(f"{word} is no exit code, these are 0 to {LAST_CODE}{hint}")
    if code == 0:
        yield from wrap(_ENDED_WELL, width)
        return
    yield from _block(meaning_of((), code), width, key=f"{code}")
    for row in others_of_code(code):
        yield from ("", *_block(row, width, key=f"{code} may also be"))


def _spelled(word: str, rows: Iterable[Meaning]) -> list[Meaning]:
    wanted = word.lower()
    return [row for row in rows if row.kind.lower() == wanted or _lowered(row).explains(wanted)]


def _lowered(row: Meaning) -> Meaning:
    return Meaning(kind=row.kind, means="", next="", reasons=tuple(one.lower() for one in row.reasons))


def _nearest(word: str) -> str:
    known = {one.lower(): one for row in (*table().end, *table().waiting) for one in row.reasons}
    near = get_close_matches(word.lower(), known, n=1)
    meant = f"is it {known[near[0]]}? " if near else ""
    return f"{meant}paddle-operator explain-exit, without a word, prints all"


def _block(row: Meaning, width: int, key: str = "", *, waits: bool = False) -> Iterator[str]:
    """One row with all that it says."""
    row = row.told({})
    yield from wrap(f"{key or key_of(row)}: {row.by or 'a pod that waits'}", width)
    yield from _field("class", row.kind, width)
    yield from _field("means", row.means, width)
    yield from _field("counts", NOT_COUNTED if waits else COUNTED[row.counts], width)
    yield from _field("next", row.next, width)
    if row.unless:
        yield from _field(
            "unless", "the pod or container has one of these reasons, which go before the code:", width
        )
        for reason in row.unless:
            other = meaning_of((reason,), None).told({})
            yield from _field("", f"- {reason} (class {other.kind}): {other.means}", width)


def _field(label: str, text: str, width: int) -> list[str]:
    margin = " " * (_INDENT + _LABEL)
    first = f"{' ' * _INDENT}{label:<{_LABEL}}"
    later = f"{margin}  " if text.startswith("- ") else margin
    return wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=later,
        break_on_hyphens=False,
        break_long_words=False,
    )


def _listing(rows: Iterable[Meaning], width: int) -> Iterator[str]:
    """Short keys stand before their text, long ones above it."""
    margin = " " * _KEY
    for row in rows:
        key, told = key_of(row), row.told({})
        limit = f", {LIMITS[row.counts]}" if row.by and row.counts in LIMITS else ""
        beside = f"{key:<{_KEY}}" if len(key) < _KEY else margin
        if beside == margin:
            yield from wrap(key, width, break_on_hyphens=False)
        yield from wrap(
            f"[{row.kind}{limit}] {told.means}",
            width,
            initial_indent=beside,
            subsequent_indent=margin,
            break_on_hyphens=False,
        )
    yield ""


def _lines(parts: Iterable[str]) -> str:
    return "\n".join(parts).rstrip("\n")
