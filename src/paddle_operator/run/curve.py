"""The loss as a small picture made of characters. Pure: numbers in, text out.

A loss may be anything that a script prints: what is not finite leaves a gap, and never sets the scale.
Where more values come than there are columns, a column stands for the mean of its values.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, isfinite, nan
from typing import Self

from .scene import Measurement

BLOCKS = "▁▂▃▄▅▆▇█"
WIDEST_LABEL = len("-1.234e+100")
AXIS = " ┤"
# With less room than this beside its labels, a chart goes without them.
NARROWEST_PLOT = 8
LOWEST_PLOT = 2

# A braille character is two dots wide and four high; these are the bits of its dots, row by row.
NO_DOTS = 0x2800
DOTS_ACROSS = 2
DOTS_DOWN = 4
DOT_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def loss_text(loss: float) -> str:
    if not isfinite(loss) or loss == 0 or 0.001 <= abs(loss) < 10_000:
        return f"{loss:.4f}"
    return f"{loss:.3e}"


@dataclass(frozen=True)
class Scale:
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Self | None:
        finite = [value for value in values if isfinite(value)]
        return cls(min(finite), max(finite)) if finite else None

    def share(self, value: float) -> float:
        """Where a value lies, from 0 (lowest) to 1 (highest); all are lowest if all are the same."""
        # Halves, because the difference of two huge numbers may be infinite.
        span = self.high / 2 - self.low / 2
        share = (value / 2 - self.low / 2) / span if span > 0 else 0.0
        # Between tiny numbers, rounding takes a mean or a point of a line well beyond its ends.
        return min(1.0, max(0.0, share))


def spark(values: Sequence[float], width: int) -> str:
    """One row of blocks, no wider than `width`, no wider than there are values."""
    columns = _squeeze(values, width)
    scale = Scale.of(columns)
    if scale is None:
        return ""
    top = len(BLOCKS) - 1
    return "".join(BLOCKS[round(scale.share(one) * top)] if isfinite(one) else " " for one in columns)


def chart(curve: Sequence[Measurement], width: int, height: int) -> list[str]:
    """At most `height` rows of at most `width` characters: the curve, its highest, its lowest, its steps."""
    plot_width = width - WIDEST_LABEL - len(AXIS)
    labelled = plot_width >= NARROWEST_PLOT and height - 1 >= LOWEST_PLOT
    if not labelled:
        plot_width = width
    dots = plot_width * DOTS_ACROSS
    values = _squeeze([one.loss for one in curve], dots)
    scale = Scale.of(values)
    if scale is None or height < 1:
        return []
    columns = _stretch(values, dots)
    if not labelled:
        return _plot(columns, scale, height)
    return _with_labels(_plot(columns, scale, height - 1), scale, _steps(curve, plot_width))


def evenly(count: int, most: int) -> list[int]:
    """About `most` of the places 0 to `count - 1`, but the first and the last in any case."""
    chosen = min(count, max(2, most))
    if chosen < 2:
        return list(range(chosen))
    return [round(place * (count - 1) / (chosen - 1)) for place in range(chosen)]


def _squeeze(values: Sequence[float], width: int) -> list[float]:
    """At most `width` values, evenly made."""
    if width < 1:
        return []
    count = len(values)
    if count <= width:
        return list(values)
    ends = [column * count // width for column in range(width + 1)]
    return [_mean(values[start:end]) for start, end in pairwise(ends)]


def _mean(values: Sequence[float]) -> float:
    finite = [value for value in values if isfinite(value)]
    # Divided before they are added, because the sum of huge numbers may be infinite.
    return sum(value / len(finite) for value in finite) if finite else nan


def _stretch(values: Sequence[float], width: int) -> list[float]:
    """Straight lines from value to value across the whole width; one value alone stays a dot."""
    if not 2 <= len(values) < width:
        return list(values)
    stretched = [values[0]]
    # Each value has a column of its own, so that no peak is lost between two columns.
    placed = zip(evenly(width, len(values)), values, strict=True)
    for (start, left), (end, right) in pairwise(placed):
        length = end - start
        stretched += [_between(left, right, column / length) for column in range(1, length + 1)]
    return stretched


def _between(left: float, right: float, way: float) -> float:
    if isfinite(left) and isfinite(right):
        return left * (1 - way) + right * way
    return left if way < 0.5 else right


def _plot(columns: Sequence[float], scale: Scale, height: int) -> list[str]:
    """`height` rows of braille: a line through the columns, with a gap where a column has no value."""
    cells = [[0] * ceil(len(columns) / DOTS_ACROSS) for _ in range(height)]
    lowest_dot = height * DOTS_DOWN - 1
    before: int | None = None
    for x, value in enumerate(columns):
        y = round((1 - scale.share(value)) * lowest_dot) if isfinite(value) else None
        for dot in _joined(before, y):
            cells[dot // DOTS_DOWN][x // DOTS_ACROSS] |= DOT_BITS[dot % DOTS_DOWN][x % DOTS_ACROSS]
        before = y
    return ["".join(_braille(bits) for bits in row).rstrip() for row in cells]


def _joined(before: int | None, y: int | None) -> Sequence[int]:
    """The dots of one column: its own, and those on the way from the column before."""
    if y is None:
        return ()
    if before is None or abs(before - y) < 2:
        return (y,)
    return range(before + 1, y + 1) if before < y else range(y, before)


def _braille(bits: int) -> str:
    # Some fonts draw the empty braille character as a row of rings.
    return chr(NO_DOTS + bits) if bits else " "


def _with_labels(plot: Sequence[str], scale: Scale, steps: str) -> list[str]:
    labels = [""] * len(plot)
    labels[-1] = loss_text(scale.low)
    if scale.high > scale.low:
        labels[0] = loss_text(scale.high)
    margin = max(map(len, labels))
    rows = [
        f"{label:>{margin}} {'┤' if label else '│'}{row}" for label, row in zip(labels, plot, strict=True)
    ]
    return [*rows, f"{'loss':>{margin}} └{steps}"]


def _steps(curve: Sequence[Measurement], width: int) -> str:
    """From which step on, at the left end, and up to which, at the right."""
    first, last = curve[0].step, curve[-1].step
    if first is None or last is None:
        return ""
    left, right = f" step {first}", str(last)
    if first == last or len(left) + len(right) >= width:
        return left[:width]
    return f"{left}{right:>{width - len(left)}}"
