"""From a results file to tables: medians, their spread, their ratio to the floor; the bars; what went wrong.

python -m benchmarks.report FILE
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from benchmarks.bars import COMPARED, PEERS, judge, ratio_to_peers
from benchmarks.operators import OPERATORS
from benchmarks.results import (
    CLEANED,
    CPU,
    CREATED,
    FIRST_WRITE,
    JOB_CREATED,
    JOB_RUNNING,
    LAG,
    MOST_CPU_OF_NODE,
    MOST_CPU_OF_OTHERS,
    NODE_CPU,
    PEAK,
    REQUESTS,
    RUNNING,
    SERVER_CPU,
    Figure,
    Metric,
    Results,
    key_of,
)
from benchmarks.results_file import read
from benchmarks.workloads import FLOOR, WORKLOADS, Workload

Row = list[str]


def report(lines: Iterable[str | bytes]) -> str:
    results = Results(lines)
    parts = [
        f"## All figures\n\n{tables(results)}",
        f"## Bars\n\n{bars(results)}",
        f"## Against the best of the peers\n\n{beside_peers(results)}",
    ]
    if wrong := failures(results):
        parts.append(f"## Failed\n\n{wrong}")
    return "\n".join([*parts, quiet(results)])


def quiet(results: Results) -> str:
    told = f"{results.disturbed} of {results.count} measurements were disturbed"
    told = f"{told}: others used more than {MOST_CPU_OF_OTHERS:.0%} of a core meanwhile.\n"
    return f"{told}In {results.limited} the fake node used more than {MOST_CPU_OF_NODE:.0%} of one.\n"


def tables(results: Results) -> str:
    """Of all that was measured, each with its heading."""
    return "\n".join(
        f"### {workload.name}, {mode}\n\n{table(results, workload, mode)}"
        for workload in WORKLOADS
        for mode in workload.modes
        if results.has(workload.name, mode)
    )


def table(results: Results, workload: Workload, mode: str) -> str:
    metrics = metrics_of(workload)
    rows = []
    for key, operator in OPERATORS.items():
        runs = results.runs.get((workload.name, mode, key))
        if runs:
            cells = [_cell(results, workload.name, mode, key, metric) for metric in metrics]
            rows.append([operator.title, *cells, str(len(runs))])
    return lines_of(["", *(metric.title for metric in metrics), "runs"], rows)


def metrics_of(workload: Workload) -> tuple[Metric, ...]:
    if workload.is_start:
        return FIRST_WRITE, CPU, PEAK
    # Jobs that come one by one are not all there until the last has come: each counts from its own coming.
    started = (JOB_CREATED, JOB_RUNNING) if workload.jobs_per_second else (CREATED, RUNNING)
    if not workload.has_node:
        return CREATED, REQUESTS, CPU, SERVER_CPU, PEAK
    cleaned = (CLEANED,) if workload.cleans else ()
    return *started, LAG, *cleaned, REQUESTS, CPU, SERVER_CPU, NODE_CPU, PEAK


def _cell(results: Results, workload: str, mode: str, operator: str, metric: Metric) -> str:
    figure = results.figure(workload, mode, operator, metric)
    if figure is None:
        return ""
    floor = results.figure(workload, mode, FLOOR, metric)
    is_compared = operator != FLOOR and floor and floor.median > 0 and floor.median >= metric.least_compared
    ratio = f", {figure.median / floor.median:.1f}x" if floor and is_compared else ""
    return shown(figure, metric.digits) + ratio


def shown(figure: Figure, digits: int) -> str:
    middle, least, most = (f"{value:.{digits}f}" for value in (figure.median, figure.least, figure.most))
    return middle if least == most else f"{middle} ({least}-{most})"


def bars(results: Results) -> str:
    rows = [
        [one.workload, one.mode, one.metric, one.figure, one.limit, one.verdict] for one in judge(results)
    ]
    return lines_of(["workload", "mode", "figure", "median", "at most", ""], rows)


def beside_peers(results: Results) -> str:
    """Our figure divided by the best that any peer has, in any of its modes. Above 1 it was better."""
    rows = []
    for workload in WORKLOADS:
        for mode in workload.modes if PEERS & {*workload.operators} else ():
            ratios = [ratio_to_peers(results, workload, mode, metric) for metric in COMPARED]
            if any(ratio is not None for ratio in ratios):
                cells = ["" if ratio is None else f"{ratio:.2f}x" for ratio in ratios]
                rows.append([workload.name, mode, *cells])
    return lines_of(["workload", "mode", *(metric.title for metric in COMPARED)], rows)


def failures(results: Results) -> str:
    """Nothing, if nothing failed."""
    rows = [["", "", _title(key), "", _one_line(why)] for key, why in results.missing.items()]
    for one in results.failures:
        workload, mode, operator, repeat = key_of(one)
        rows.append([workload, mode, _title(operator), str(repeat), _one_line(one["error"])])
    return lines_of(["workload", "mode", "operator", "repeat", "what failed"], rows) if rows else ""


def about(results: Results) -> str:
    """When, where and of what."""
    first = results.abouts[0]
    rows = [
        ["begun", ", ".join(one["began"] for one in results.abouts)],
        ["minutes", f"{results.seconds / 60:.0f}"],
        ["commit", ", ".join(dict.fromkeys(one["commit"] for one in results.abouts))],
        ["processor", f"{first['cores']} x {first['processor']}"],
        ["memory, GiB", str(first["memory_gib"])],
        *([name, version] for name, version in first["versions"].items()),
    ]
    return lines_of(["", ""], rows)


def _title(operator: str) -> str:
    """Of one that this version does not know, what the file calls it."""
    return OPERATORS[operator].title if operator in OPERATORS else operator


def _one_line(text: str) -> str:
    return " ".join(text.replace("|", "/").split())


def lines_of(head: Row, rows: Iterable[Row]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in [head, ["---"] * len(head), *rows])


def main() -> None:
    parser = argparse.ArgumentParser(description="Tables of what was measured.")
    parser.add_argument("results", type=Path)
    file = parser.parse_args().results
    if not (lines := read(file)):
        sys.exit(f"nothing is measured in {file}")
    sys.stdout.write(report(lines))


if __name__ == "__main__":
    main()
