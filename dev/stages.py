"""Run make targets one after the other and end with a table of the time that each took.

    python3 dev/stages.py environment lint unit

The first stage that fails ends the run. Output of the stages passes through untouched. It needs nothing but
the standard library, because the first stage is the one that makes the virtual environment.
"""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from types import FrameType

# Tests against an API server need some seconds to stop it. A second Ctrl-C does not wait.
GRACE_SECONDS = 20.0
STOPPED = -1


@dataclass(frozen=True)
class Result:
    stage: str
    seconds: float
    returncode: int


class Interrupted(Exception):  # noqa: N818 - no error: somebody wants us to stop
    def __init__(self, signal_number: int) -> None:
        super().__init__(signal.Signals(signal_number).name)
        self.signal_number = signal_number


def main(stages: list[str]) -> int:
    if not stages:
        print("usage: stages.py TARGET...", file=sys.stderr)
        return 2
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, raise_interrupted)
    results: list[Result] = []
    try:
        run_stages(stages, results)
    except Interrupted as interrupted:
        print(f"\nstopped by {interrupted}", flush=True)
        print(table(stages, results), flush=True)
        return 128 + interrupted.signal_number
    print(table(stages, results), flush=True)
    return 0 if all(result.returncode == 0 for result in results) else 1


def raise_interrupted(number: int, _frame: FrameType | None) -> None:
    # make passes a SIGTERM on to us that its whole group got already: only a second Ctrl-C shall hurry us.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    raise Interrupted(number)


def run_stages(stages: list[str], results: list[Result]) -> None:
    for stage in stages:
        print(f"== {stage}", flush=True)
        started = time.monotonic()
        returncode = STOPPED
        try:
            returncode = run_target(stage)
        finally:
            results.append(Result(stage, time.monotonic() - started, returncode))
        if returncode != 0:
            return


def run_target(target: str) -> int:
    """The target gets a session of its own, so that all its processes can be reached with one signal."""
    command = [os.environ.get("MAKE", "make"), "--no-print-directory", target]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            return process.wait()
        except Interrupted:
            stop(process)
            raise


def stop(process: subprocess.Popen[bytes]) -> None:
    """SIGINT lets pytest end its fixtures and report; what is left after that is killed."""
    group = process.pid
    signal_group(group, signal.SIGINT)
    try:
        process.wait(GRACE_SECONDS)
    except (subprocess.TimeoutExpired, Interrupted):
        print("\nkilling what did not stop", file=sys.stderr, flush=True)
    finally:
        signal_group(group, signal.SIGKILL)


def signal_group(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return  # all of it has ended


def table(stages: list[str], results: list[Result]) -> str:
    width = max(len("total"), *map(len, stages))
    rows = [row(result.stage, width, result.seconds, verdict(result)) for result in results]
    rows += [f"  {stage:<{width}}  {'-':>7}    not run" for stage in stages[len(results) :]]
    rows.append(row("total", width, sum(result.seconds for result in results), ""))
    return "\n".join(["", "== time per stage", *rows])


def row(name: str, width: int, seconds: float, note: str) -> str:
    return f"  {name:<{width}}  {seconds:7.1f} s  {note}".rstrip()


def verdict(result: Result) -> str:
    if result.returncode == 0:
        return "ok"
    if result.returncode == STOPPED:
        return "stopped"
    return f"FAILED, exit code {result.returncode}; alone: make {result.stage}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
