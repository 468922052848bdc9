"""Sets of ranks as short text, as an indexed Job of Kubernetes writes them: 0-3,7."""

from collections.abc import Iterable

LONGEST_SPAN = 20


def to_text(ranks: Iterable[int]) -> str:
    spans: list[list[int]] = []
    for rank in sorted(ranks):
        if spans and spans[-1][1] == rank - 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def from_text(text: str, below: int) -> set[int]:
    """The ranks below a bound; what is not written as above is passed over."""
    ranks: set[int] = set()
    for span in text.split(","):
        first, _, last = span.partition("-")
        last = last or first
        if first.isdecimal() and last.isdecimal() and len(span) <= LONGEST_SPAN:
            ranks.update(range(int(first), min(int(last) + 1, below)))
    return ranks
