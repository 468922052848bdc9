"""All that the simulator knows, in as many processes as there are cores: `make simulate`.

python -m simulator                                        every fault at every step, and random lives
python -m simulator --only crashes                         one group
python -m simulator --seed "crashes completes before 7"    one case again, by its name
python -m simulator --seed 17                              one random life again
"""

import argparse
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from simulator.batches import NAMES, RANDOM, Batch, Result, batches, lived, named
from simulator.cases import Verdict, tried
from simulator.shrinking import shrink, tell

SCHEDULES = 100_000
# Of what is broken so much is told, and so much more is named.
TOLD = 5
NAMED = 50
LINE_SECONDS = 60.0
# The others are calm on purpose, or their fault came to nothing.
LEAST_STRUCK = 80


def main(arguments: Sequence[str] | None = None) -> int:
    asked = parsed(arguments)
    console = Console(highlight=False, soft_wrap=True)
    if asked.seed:
        return replay(asked.seed, console)
    planned = batches(asked.only, asked.schedules)
    with results(planned, asked.processes) as found:
        totals = watched(found, len(planned), console)
    console.print(table(totals))
    failures = [failure for result in totals.values() for failure in result.failures]
    for failure in failures[:TOLD]:
        console.print(told(failure), markup=False)
    for failure in failures[TOLD:NAMED]:
        console.print(f"also: {failure.case}", markup=False)
    are_enough = True
    if not asked.only and asked.schedules >= SCHEDULES:
        told_bars, are_enough = bars(totals)
        console.print("\n".join(told_bars))
    return 1 if failures or not are_enough else 0


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m simulator", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--seed", default="", help="live one case again: its name, or the number of a random one"
    )
    parser.add_argument("--only", default="", choices=NAMES, help="one group", metavar="GROUP")
    parser.add_argument("--schedules", type=int, default=SCHEDULES, help="how many random lives")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="1: only this one")
    return parser.parse_args(arguments)


def replay(name: str, console: Console) -> int:
    try:
        verdict = tried(named(name))
    except LookupError as error:
        print(error.args[0], file=sys.stderr)
        return 2
    if verdict.broken:
        console.print(told(verdict), markup=False)
        return 1
    console.print(f"{verdict.case}: nothing is broken, in {verdict.writes} writes", markup=False)
    return 0


@contextmanager
def results(planned: Sequence[Batch], processes: int) -> Iterator[Iterable[tuple[str, Result]]]:
    if processes == 1:
        yield map(lived, planned)
        return
    with get_context("spawn").Pool(processes) as pool:
        yield pool.imap_unordered(lived, planned)


def watched(found: Iterable[tuple[str, Result]], total: int, console: Console) -> dict[str, Result]:
    """Sums by group, while a bar says how far it is; where nobody looks at a bar, a line now and then."""
    totals: dict[str, Result] = {}
    began = told_at = time.monotonic()
    columns = BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=total)
        for done, (group, result) in enumerate(found, start=1):
            totals[group] = totals.get(group, Result()) + result
            now = time.monotonic()
            said = so_far(sum(totals.values(), start=Result()), now - began)
            progress.update(bar, advance=1, description=said)
            if not console.is_terminal and now - told_at >= LINE_SECONDS:
                told_at = now
                console.print(f"{done} of {total} portions: {said}")
    return totals


def so_far(whole: Result, seconds: float) -> str:
    speed = f"{whole.lives / seconds:.0f} lives/s, {whole.writes / seconds:.0f} writes/s"
    return f"{speed}, {len(whole.failures)} broken" if whole.failures else speed


def table(totals: dict[str, Result]) -> Table:
    shown = Table("group", *NUMBERS, title="simulated")
    for column in shown.columns[1:]:
        column.justify = "right"
    whole = sum(totals.values(), start=Result())
    for name, result in [*totals.items(), ("all", whole)]:
        seconds = result.seconds or 1.0
        speeds = (f"{result.lives / seconds:.0f}", f"{result.writes / seconds:,.0f}")
        numbers = (f"{result.lives:,}", f"{result.writes:,}", *speeds, str(len(result.failures)))
        found = f"{name}, {result.states:,} states" if result.states else name
        if name == RANDOM:
            found += f", a fault struck in {result.disturbed / result.lives:.0%}"
        shown.add_row(found, *numbers)
    return shown


def bars(totals: dict[str, Result]) -> tuple[list[str], bool]:
    """Of a whole run: what is asked of it, what it came to, and whether as much was lived as is asked."""
    lives = {name: result.lives for name, result in totals.items()}
    counts = [
        ("crash points", 600, lives.get("crashes", 0)),
        ("stale reads", 1_500, sum(lives.get(name, 0) for name in ("late-watches", "stale-lists"))),
        ("random lives", 100_000, lives.get(RANDOM, 0)),
    ]
    random = totals.get(RANDOM, Result())
    struck = round(100 * random.disturbed / (random.lives or 1))
    counts.append(("% of random lives in which a fault struck", LEAST_STRUCK, struck))
    # How fast it is depends on the machine, and on who else works there.
    speed = ("random lives per second and core", 30, round(random.lives / (random.seconds or 1.0)))
    told = [
        f"{'reached' if found >= asked else 'MISSED'}: {found:,} {what}, of {asked:,} that are asked"
        for what, asked, found in (*counts, speed)
    ]
    return told, all(found >= asked for _, asked, found in counts)


NUMBERS = ("lives", "writes", "lives per second and core", "writes per second and core", "violations")


def told(failure: Verdict) -> str:
    """What is broken, in the smallest life in which it is, and how to see it again."""
    try:
        story = tell(shrink(named(failure.case)))
    except LookupError:  # it went wrong before there was a case
        story = failure.broken
    return f'\n{failure.case}: {story}\nagain: make simulate SEED="{failure.case}"'


if __name__ == "__main__":
    sys.exit(main())
