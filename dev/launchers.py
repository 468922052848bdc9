"""Which ways of starting train together, with which Paddle, in which network: tries all, and prints a table.

make launchers                        # under our operator, on this machine
make launchers WHAT=--go              # with the variables of the original operator
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from launchers import here, plain
from launchers.ways import BY_NAME, INTRANETS, VERSIONS, Process, Way, check, equal, worlds

from dev import paddles

# Also to be pasted into a page: a table of Markdown, each row as soon as it is known.
ROW = "| {:<20} | {:<6} | {:<15} | {:<16} | {:<10} | {:>7} |"
TITLES = ("way", "Paddle", "`intranet`", "world sizes", "parameters", "seconds")
TWO_NODES = "Host, two nodes"


class Outcome(NamedTuple):
    shown: str
    parameters: str
    seconds: float
    is_right: bool
    text: str


def main() -> int:
    options = _options()
    pythons = {version: paddles.ensure(version) for version in options.paddle}
    print(ROW.format(*TITLES))
    print("|" + "---|" * len(TITLES), flush=True)
    wrong = []
    networks = options.intranet or ([*INTRANETS] if options.go else [*INTRANETS, TWO_NODES])
    for name, version, network in product(options.way, options.paddle, networks):
        outcome = _tried(BY_NAME[name], network, pythons[version], go=options.go)
        cells = (name, version, network, outcome.shown, outcome.parameters, f"{outcome.seconds:.0f}")
        print(ROW.format(*cells), flush=True)
        if not outcome.is_right:
            wrong.append(outcome.text)
    if options.go:
        return 0
    for text in wrong:
        sys.stderr.write(text)
    return 1 if wrong else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m dev.launchers")
    parser.add_argument("--go", action="store_true", help="with the variables of the original operator")
    parser.add_argument("--way", nargs="*", choices=BY_NAME, default=[*BY_NAME])
    parser.add_argument("--paddle", nargs="*", choices=VERSIONS, default=[*VERSIONS])
    parser.add_argument("--intranet", nargs="*", choices=[*INTRANETS, TWO_NODES], default=[])
    return parser.parse_args()


def _tried(way: Way, network: str, python: Path, *, go: bool) -> Outcome:
    with TemporaryDirectory() as folder:
        if go:
            return _played(way, network, Path(folder), plain.go_operator, python)
        if network == TWO_NODES:
            return _played(way, network, Path(folder), plain.on_two_nodes, python)
        tried = here.run(way, network, Path(folder), python=python)
        end = "" if tried.code == 0 else f"ends with {tried.code}"
        return _outcome(way, tried.processes, end, tried.seconds, tried.text)


def _played(
    way: Way,
    network: str,
    folder: Path,
    environments: Callable[[str, Path], plain.Environments],
    python: Path,
) -> Outcome:
    played = plain.play(way, network, folder, environments, python=python)
    return _outcome(way, played.processes, _end_of(played.codes), played.seconds, played.text)


def _end_of(codes: Iterable[int | None]) -> str:
    if None in (told := set(codes)):
        return "hangs"
    return f"ends with {' and '.join(map(str, sorted(map(int, filter(None, told)))))}" if any(told) else ""


def _outcome(way: Way, processes: Sequence[Process], end: str, seconds: float, text: str) -> Outcome:
    try:
        check(way, [*processes])
    except AssertionError:
        is_right = False
    else:
        is_right = not end
    parameters = ("equal" if equal(processes) else "differ") if len(processes) > 1 else "-"
    return Outcome(end or worlds(processes), parameters, seconds, is_right, text)


if __name__ == "__main__":
    sys.exit(main())
