"""How long a person waits for the command line, against the floor: Python alone, and typer alone.

    python -m benchmarks.command_line [--runs 15]

Byte code is made by a first run that is not counted. The runs of all rows take turns, so that a busy moment
of the machine hits them alike; each row shows its median, its least, and the ratio of its median to Python's.
"""

import argparse
import statistics
import subprocess
import sys
import time

GOALS_MS = {"import paddle_operator.cli": 150, "paddle-operator --help": 250}
ROWS = {
    "python": ["-c", "pass"],
    "import typer": ["-c", "import typer"],
    "import paddle_operator.cli": ["-c", "import paddle_operator.cli"],
    "paddle-operator --help": ["-m", "paddle_operator", "--help"],
    "paddle-operator render": ["-m", "paddle_operator", "render", "examples/02-collective/job.yaml"],
}


def milliseconds(words: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, check=True)
    return 1000 * (time.perf_counter() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the command line.")
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    for words in ROWS.values():
        milliseconds(words)
    measured: dict[str, list[float]] = {name: [] for name in ROWS}
    for _ in range(runs):
        for name, words in ROWS.items():
            measured[name].append(milliseconds(words))
    floor = statistics.median(measured["python"])
    print(f"{'':<28} {'median':>9} {'least':>9} {'x python':>9}   goal")
    for name, times in measured.items():
        median, goal = statistics.median(times), GOALS_MS.get(name)
        told = "" if goal is None else f"under {goal} ms: {'met' if median < goal else 'MISSED'}"
        print(f"{name:<28} {median:>6.0f} ms {min(times):>6.0f} ms {median / floor:>9.1f}   {told}".rstrip())


if __name__ == "__main__":
    main()
