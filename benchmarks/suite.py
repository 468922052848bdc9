"""The operator against the floor and its peers, on a real API server with a fake node: times, requests, CPU.

    python -m benchmarks.suite [--only 1x256,50x4] [--operators floor,ours] [--modes PodIP]
                               [--repeats N] [--out FILE] [--resume]

One control plane for the run; for each measurement a namespace, a fake node and an operator of its own. The
operators take turns, so that a busy moment of the machine hits them alike, and each repeat begins with
another one. Each measurement is a line of JSON in FILE as soon as it is there, one that failed as well;
--resume goes on where a run was cut off. At the end, and whenever by `python -m benchmarks.report FILE`,
there are the tables of medians and spread, and the bars.
"""

import argparse
import asyncio
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from benchmarks.bench import Bench
from benchmarks.measure import Case, measure
from benchmarks.operators import OPERATORS, Operator
from benchmarks.processes import processor
from benchmarks.report import report
from benchmarks.results import Key, Results
from benchmarks.results_file import read
from benchmarks.workloads import BY_NAME, OURS, POD_IP, SERVICE, WORKLOADS
from testbed import binaries
from testbed.controlplane import ControlPlane
from testbed.errors import RemedyError

TOP = Path(__file__).parents[1]
# A run changes them by itself.
MADE = (":!benchmarks/results", ":!docs")


@dataclass(frozen=True)
class Turn:
    case: Case
    repeat: int

    @property
    def key(self) -> Key:
        return self.case.workload.name, self.case.mode, self.case.operator.key, self.repeat

    def __str__(self) -> str:
        workload, mode, operator, repeat = self.key
        return f"{workload} {mode} {operator} #{repeat}"


def turns(options: argparse.Namespace) -> Iterator[Turn]:
    """A/B/A/B: of one workload, all operators in all modes once, then all again, beginning with the next."""
    for workload in WORKLOADS:
        if workload.name not in options.only:
            continue
        pairs = [
            (mode, key)
            for mode in workload.modes
            for key in workload.operators
            if mode in options.modes and key in options.operators and mode in OPERATORS[key].modes
        ]
        for repeat in range(options.repeats or workload.repeats):
            first = repeat % max(1, len(pairs))
            for mode, key in pairs[first:] + pairs[:first]:
                if repeat < workload.repeats_of(mode, key):
                    yield Turn(Case(workload, mode, OPERATORS[key]), repeat)


def done_before(out: Path) -> list[bytes]:
    """The lines of the run that is gone on with."""
    lines = read(out) if out.exists() else []
    before = Results(lines)
    if before.abouts and (then := before.abouts[-1]["commit"]) != commit():
        # Figures are divided by others of the same run.
        sys.exit(f"{out} is of commit {then}, this is {commit()}: check that one out, or begin anew")
    return lines


def opened_after(kept: list[bytes], out: Path) -> TextIO:
    """What is written comes after these lines: after no older run, nor glued to a line that was cut off."""
    try:
        file = out.open("a")
        file.truncate(len(b"\n".join(kept)))
    except OSError as error:
        sys.exit(f"{out} cannot be written: {error.strerror}")
    if kept:
        # The last one may lack it.
        file.write("\n")
        file.flush()
    return file


def about_the_run(workloads: list[str]) -> dict[str, Any]:
    """What a reader of the results has to know about the machine and the programs."""
    modules = (binaries.KUBERNETES, binaries.ETCD, binaries.GO_OPERATOR, binaries.TRAINING_OPERATOR)
    versions = {module.name: module.version for module in modules} | {"python": platform.python_version()}
    return {
        "commit": commit(),
        "versions": versions,
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "etcd_fsync": False,
        "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "workloads": workloads,
    }


def commit() -> str:
    """The last that changed more than a run does by itself, and whether anything in this checkout differs.

    So a run can be gone on with, when its results so far, or its pages, were committed.
    """

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=TOP, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    last = git("log", "-1", "--format=%h", "--abbrev=12", "--", ".", *MADE)
    changed = git("status", "--porcelain", "--", ".", *MADE)
    return (last or "unknown") + (" dirty" if changed else "")


def missing_among(operators: Iterable[Operator]) -> dict[str, str]:
    """Who cannot be had, and why; programs are built here, before anything is measured."""
    missing = {}
    for operator in operators:
        try:
            for have in operator.needs:
                have()
        except RemedyError as error:
            missing[operator.key] = str(error)
    return missing


def write(out: TextIO, line: dict[str, Any]) -> None:
    out.write(json.dumps(line) + "\n")
    out.flush()


async def run(plane: ControlPlane, folder: Path, to_do: list[Turn], out: TextIO) -> None:
    bench = Bench(plane, folder)
    await bench.prepare(kubeflow=any(turn.case.operator.key.startswith("kubeflow") for turn in to_do))
    await warm_up(bench, to_do)
    began = time.monotonic()
    for number, turn in enumerate(to_do):
        found = await measured(bench, turn, str(number))
        write(out, found)
        left = (time.monotonic() - began) / (number + 1) * (len(to_do) - number - 1)
        told = found.get("error") or ", ".join(f"{k} {v}" for k, v in _essence(found).items())
        print(f"{number + 1} of {len(to_do)}, {left / 60:.0f} min left: {turn}: {told}", flush=True)


async def measured(bench: Bench, turn: Turn, name: str) -> dict[str, Any]:
    workload, mode, operator, repeat = turn.key
    found = {"workload": workload, "mode": mode, "operator": operator, "repeat": repeat}
    began = time.monotonic()
    try:
        await bench.make_foreign_pods(turn.case.workload.foreign_pods)
        found |= await measure(bench, turn.case, name)
    except Exception as error:  # noqa: BLE001 (whatever it is, the others shall have their turns)
        found["error"] = f"{type(error).__name__}: {error}"
    return found | {"wall_seconds": round(time.monotonic() - began, 1)}


async def warm_up(bench: Bench, to_do: list[Turn]) -> None:
    """The first jobs of a kind on a new server are slow, whoever makes them, and so is a first large one."""
    first = {turn.case.operator.api_version: turn.case.operator for turn in to_do}
    cases = [Case(BY_NAME["1x8"], operator.modes[0], operator) for operator in first.values()]
    cases.append(Case(BY_NAME["1x64"], POD_IP, OPERATORS[OURS]))
    for number, case in enumerate(cases):
        found = await measured(bench, Turn(case, number), f"warm-up-{number}")
        if "error" in found:
            print(f"warm-up by {case.operator.title}: {found['error']}", flush=True)


def _essence(found: dict[str, Any]) -> dict[str, Any]:
    wanted = ("first_write", "created", "running", "completed_lag", "cleaned_after_end")
    times = {name: f"{found['times'][name]:.2f}" for name in wanted if name in found["times"]}
    return times | {"requests": found["requests"], "CPU": found["cpu"]["operator"]}


def _some_of(known: list[str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = text.split(",")
        if unknown := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)} is none of {', '.join(known)}")
        return names

    return parse


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    everything = {"only": [*BY_NAME], "operators": [*OPERATORS], "modes": [POD_IP, SERVICE]}
    for name, known in everything.items():
        parser.add_argument(
            f"--{name}", type=_some_of(known), default=known, metavar="NAMES", help=f"of {','.join(known)}"
        )
    parser.add_argument("--repeats", type=int, help="default: as many as the workload wants")
    parser.add_argument("--out", type=Path, help="default: a file that is gone afterwards")
    parser.add_argument("--resume", action="store_true", help="keep what is in FILE and add what is missing")
    return parser.parse_args()


def main() -> None:
    options = parse()
    # So that the control plane does not outlive a run that is told to stop.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        out: Path = options.out or folder / "results.jsonl"
        before = done_before(out) if options.resume else []
        measured_before = Results(before).measured
        to_do = [turn for turn in turns(options) if turn.key not in measured_before]
        missing = missing_among({turn.case.operator.key: turn.case.operator for turn in to_do}.values())
        with opened_after(before, out) as file:
            write(file, {"about": about_the_run(options.only)})
            for key, why in missing.items():
                write(file, {"missing": key, "why": why})
            with ControlPlane(f"bench-{os.getpid()}") as plane:
                at_hand = [turn for turn in to_do if turn.case.operator.key not in missing]
                asyncio.run(run(plane, folder, at_hand, file))
        sys.stdout.write(report(read(out)))


if __name__ == "__main__":
    main()
