"""The comparison as a picture: bars side by side, in SVG, from a results file. Pure, but for main.

python -m benchmarks.chart FILE > docs/performance.svg
"""

import argparse
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

from benchmarks.results import CPU, REQUESTS, RUNNING, SERVER_CPU, Metric, Results
from benchmarks.results_file import read
from benchmarks.workloads import FLOOR, GO, KUBEFLOW, OURS, POD_IP, SERVICE, TUNED

WORKLOADS = {"1x256": "one job of 256 pods", "50x4": "50 jobs of 4 pods"}
METRICS = (RUNNING, REQUESTS, CPU, SERVER_CPU)
ROWS = (
    ("floor, PodIP", POD_IP, FLOOR, "#b8b8b8"),
    ("floor, Service", SERVICE, FLOOR, "#b8b8b8"),
    ("ours, PodIP", POD_IP, OURS, "#2a6fdb"),
    ("ours, Service", SERVICE, OURS, "#2a6fdb"),
    ("training-operator, tuned", SERVICE, TUNED, "#e0a030"),
    ("training-operator", SERVICE, KUBEFLOW, "#e0a030"),
    ("Go paddle-operator, PodIP", POD_IP, GO, "#c0504d"),
    ("Go, Service", SERVICE, GO, "#c0504d"),
)
LABELS, PANEL, BAR, GAP, HEAD = 170, 200, 14, 5, 44
NUMBERS = 52
"""Room for a figure behind its bar."""


@dataclass(frozen=True)
class Mark:
    label: str
    colour: str
    value: float


def chart(lines: Iterable[str | bytes]) -> str:
    results = Results(lines)
    shown = [
        workload for workload in WORKLOADS if any(results.has(workload, mode) for mode in (POD_IP, SERVICE))
    ]
    height = 0
    parts: list[str] = []
    for workload in shown:
        parts.append(_text(0, height + 16, WORKLOADS[workload], weight="bold"))
        rows = [row for row in ROWS if results.runs.get((workload, row[1], row[2]))]
        for place, (label, *_) in enumerate(rows):
            parts.append(_text(LABELS - 8, _y(height, place) + BAR - 3, label, anchor="end"))
        for column, metric in enumerate(METRICS):
            marks = [_mark(results, workload, row, metric) for row in rows]
            parts += _panel(marks, metric, LABELS + column * PANEL, height)
        height = _y(height, len(rows)) + 12
    width = LABELS + len(METRICS) * PANEL
    size = f'width="{width}" height="{height}" font-family="sans-serif" font-size="12"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
    return "\n".join([head, '<rect width="100%" height="100%" fill="#fff"/>', *parts, "</svg>", ""])


def _mark(results: Results, workload: str, row: tuple[str, str, str, str], metric: Metric) -> Mark:
    label, mode, operator, colour = row
    figure = results.figure(workload, mode, operator, metric)
    return Mark(label, colour, figure.median if figure else 0.0)


def _panel(marks: list[Mark], metric: Metric, left: int, top: int) -> Iterator[str]:
    yield _text(left, top + HEAD - 8, metric.title, colour="#555")
    most = max((mark.value for mark in marks), default=0.0) or 1.0
    for place, mark in enumerate(marks):
        width = max(1.0, mark.value / most * (PANEL - NUMBERS - 10))
        y = _y(top, place)
        yield f'<rect x="{left}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{mark.colour}"/>'
        yield _text(left + width + 4, y + BAR - 3, f"{mark.value:,.{min(metric.digits, 2)}f}")


def _y(top: int, place: int) -> int:
    return top + HEAD + place * (BAR + GAP)


def _text(
    x: float, y: float, words: str, *, anchor: str = "start", weight: str = "normal", colour: str = "#222"
) -> str:
    style = f'text-anchor="{anchor}" font-weight="{weight}" fill="{colour}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(words)}</text>'


def main() -> None:
    parser = argparse.ArgumentParser(description="A picture of what was measured.")
    parser.add_argument("results", type=Path)
    sys.stdout.write(chart(read(parser.parse_args().results)))


if __name__ == "__main__":
    main()
