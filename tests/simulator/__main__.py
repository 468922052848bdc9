"""All that the simulator knows, in as many processes as there are cores: `make simulate`.

python -m simulator                                        every fault at every step, and random lives
python -m simulator --only crashes                         one group
python -m simulator --seed "crashes completes before 7"    one case again, by its name
python -m simulator --seed 17                              one random life again
python -m simulator --only random --base 1700              random lives from that number on
python -m simulator --seed "undisturbed completes"         a life in which nothing goes wrong
"""

import argparse
import os
import secrets
import signal
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from simulator.batches import Batch, Result, batches, lived, verdict_of
from simulator.cases import Verdict
from simulator.names import NAMES, RANDOM, UNDISTURBED, UnknownNameError, named
from simulator.shrinking import shrink, tell

SCHEDULES = 100_000
# Where random lives begin if nobody says where: at one of so many numbers, another one in each run.
BASE_BITS = 32
# Of what is broken so much is told, and so much more is named.
TOLD = 5
NAMED = 50
LINE_SECONDS = 60.0
FILE_WIDTH = 132
# As shells say it of who was ended by Ctrl-C.
INTERRUPTED = 130
# The others are calm on purpose, or their fault came to nothing.
LEAST_STRUCK = 80


def main(arguments: Sequence[str] | None = None) -> int:
    asked = parsed(arguments)
    # A file has no width of its own: what is written there is not cut.
    console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else FILE_WIDTH)
    try:
        return replay(asked.seed, console) if asked.seed else run(asked, console)
    except KeyboardInterrupt:
        return INTERRUPTED


def run(asked: argparse.Namespace, console: Console) -> int:
    planned = batches(asked.only, asked.schedules, asked.base)
    drawn = f"; random lives from BASE={asked.base} on" if any(one.group == RANDOM for one in planned) else ""
    console.print(f"{len(planned):,} portions; processes: {asked.processes}{drawn}")
    totals: dict[str, Result] = {}
    try:
        with results(planned, asked.processes) as found:
            watch(found, len(planned), console, totals)
    except KeyboardInterrupt:
        console.print("interrupted; until then:")
        show(totals, console, asked.base, stories=0)
        raise
    show(totals, console, asked.base, stories=TOLD)
    is_well = not failures_of(totals)
    if not any(result.lives for result in totals.values()):
        console.print("nothing was lived")
        is_well = False
    if not asked.only and asked.schedules >= SCHEDULES:
        told_bars, are_enough = bars(totals)
        console.print("\n".join(told_bars))
        is_well = is_well and are_enough
    return 0 if is_well else 1


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m simulator", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--seed", default="", help="live one case again: its name, or the number of a random one"
    )
    parser.add_argument("--only", default="", choices=NAMES, help="one group", metavar="GROUP")
    parser.add_argument("--schedules", type=count, default=SCHEDULES, help="how many random lives")
    parser.add_argument(
        "--base", type=number, default=secrets.randbits(BASE_BITS), help="the first of them; else it is drawn"
    )
    parser.add_argument("--processes", type=count, default=os.cpu_count() or 1, help="1: only this one")
    return parser.parse_args(arguments)


def count(word: str) -> int:
    if not word.isdecimal() or int(word) == 0:
        raise argparse.ArgumentTypeError(f"{word} is no number from 1 on")
    return int(word)


def number(word: str) -> int:
    if not word.isdecimal():
        raise argparse.ArgumentTypeError(f"{word} is no number from 0 on")
    return int(word)


def replay(name: str, console: Console) -> int:
    try:
        verdict = verdict_of(name)
    except UnknownNameError as error:
        print(error, file=sys.stderr)
        return 2
    if verdict.broken:
        if verdict.case.startswith(UNDISTURBED) and not name.startswith(UNDISTURBED):
            console.print(f"{name}: broken without any fault already", markup=False)
        console.print(told(verdict), markup=False)
        return 1
    console.print(f"{verdict.case}: nothing is broken, in {verdict.writes} writes", markup=False)
    return 0


@contextmanager
def results(planned: Sequence[Batch], processes: int) -> Iterator[Iterable[tuple[str, Result]]]:
    if processes == 1:
        yield map(lived, planned)
        return
    # Ctrl-C goes to all; it is we who end them. What is ignored now, they ignore from their first line on.
    heard = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        pool = get_context("spawn").Pool(processes)
    finally:
        signal.signal(signal.SIGINT, heard)
    with pool:
        yield pool.imap_unordered(lived, planned)


def watch(
    found: Iterable[tuple[str, Result]], total: int, console: Console, totals: dict[str, Result]
) -> None:
    """Sums by group, while a bar says how far it is; where nobody looks at a bar, a line now and then."""
    began = time.monotonic()
    told_at = -LINE_SECONDS
    known: set[str] = set()
    columns = BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=total)
        for done, (group, result) in enumerate(found, start=1):
            totals[group] = totals.get(group, Result()) + result
            announce(result.failures, known, console)
            now = time.monotonic()
            said = so_far(sum(totals.values(), start=Result()), now - began)
            progress.update(bar, advance=1, description=said)
            if not console.is_terminal and now - told_at >= LINE_SECONDS:
                told_at = now
                console.print(f"{done} of {total} portions: {said}")


def announce(failures: Iterable[Verdict], known: set[str], console: Console) -> None:
    """What is broken is said as soon as its portion is through; of very many the first."""
    for failure in failures:
        if failure.case not in known:
            known.add(failure.case)
            if len(known) <= NAMED:
                console.print(in_a_line(failure), markup=False)


def in_a_line(failure: Verdict) -> str:
    return f"broken: {failure.case}: {failure.broken.splitlines()[-1]}"


def so_far(whole: Result, seconds: float) -> str:
    speed = f"{whole.lives / seconds:.0f} lives/s, {whole.writes / seconds:.0f} writes/s"
    return f"{speed}, {len(whole.failures)} broken" if whole.failures else speed


def failures_of(totals: dict[str, Result]) -> list[Verdict]:
    """In front those of which nothing alike comes before: their stories are told."""
    failures = sum(totals.values(), start=Result()).failures
    first = {failure.broken: failure for failure in reversed(failures)}
    return sorted(failures, key=lambda failure: failure is not first[failure.broken])


def show(totals: dict[str, Result], console: Console, base: int, *, stories: int) -> None:
    console.print(table(totals, base))
    failures = failures_of(totals)
    for failure in failures[:stories]:
        console.print(told(failure), markup=False)
    for failure in failures[stories:NAMED]:
        console.print(in_a_line(failure), markup=False)
    if len(failures) > NAMED:
        console.print(f"and {len(failures) - NAMED:,} more")
    if failures[stories:]:
        console.print('the story of each: make simulate SEED="its name"')


def table(totals: dict[str, Result], base: int) -> Table:
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
            found += f" from {base} on, a fault struck in {result.disturbed / (result.lives or 1):.0%}"
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
    again = f'SEED="{failure.case}"'
    try:
        story = tell(shrink(named(failure.case)))
    except UnknownNameError:  # a portion that went wrong before there was a case
        story, again = failure.broken, f"ONLY={failure.case.partition(' ')[0]}"
    except Exception:  # noqa: BLE001 (a case that cannot be made: that is the story)
        story = traceback.format_exc().strip()
    return f"\n{failure.case}: {story}\nagain: make simulate {again}"


if __name__ == "__main__":
    sys.exit(main())
