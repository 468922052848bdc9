"""Runs the shell blocks of a Markdown page, in their order and in one shell, as a reader would type them.

Blocks are those between ```shell and ```. What cannot be run here says why to whoever reads the source:

    <!-- not run: needs a registry -->
    ```shell
    docker login registry.example.com
    ```

Lines that begin with `make` are left out, too: they set up the machine that a test runs on. All of these are
counted. Exports and `cd` last until the end of the page; the first command that fails ends it.
"""

import os
import re
import select
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

OPENING = re.compile(r"^```shell$")
CLOSING = re.compile(r"^```$")
NOT_RUN = re.compile(r"^<!-- not run: (.+) -->$")
SET_UP = re.compile(r"^make\b")
OF_SET_UP = "make: sets up the machine"
BLOCK_SECONDS = 150.0
# Each block is a file of the page's name and lines, so that bash complains about the line of the page. What
# blocks leave in the background does not hold the stdout of the shell, so its end tells that of the shell.
SHELL = """\
set -eEuo pipefail
trap 'echo "${BASH_SOURCE[0]##*/}: line $LINENO: exit code $?" >&2' ERR
for block in "$1"/*/; do
    echo "$block"
    . "$block"/*.md > "$block/output" 2>&1
done
echo end
"""


@dataclass(frozen=True)
class Block:
    line: int
    """Of the page, that of its first command."""
    commands: str
    """With an empty line in place of each that is left out."""
    left_out: tuple[str, ...] = ()
    """Why, once for each line or for the whole."""


class BlockError(Exception):
    """A block failed, or took too long."""


def blocks_of(text: str) -> Iterator[Block]:
    """Of a page; one of which nothing is run has no commands."""
    above, opened, lines = "", 0, list[str]()
    for number, line in enumerate(text.splitlines(), start=1):
        if opened and CLOSING.match(line):
            yield _block(opened + 1, lines, above)
            opened, lines = 0, []
        elif opened:
            lines.append(line)
        elif OPENING.match(line):
            opened = number
        if not opened:
            above = line


def _block(line: int, lines: list[str], above: str) -> Block:
    if reason := NOT_RUN.match(above):
        return Block(line, "", (reason[1],))
    kept = ["" if SET_UP.match(one) else one for one in lines]
    left_out = tuple(OF_SET_UP for one in lines if SET_UP.match(one))
    return Block(line, "\n".join(kept) if any(kept) else "", left_out)


@dataclass(frozen=True)
class Outcome:
    run: int
    left_out: Counter[str]
    seconds: float

    def __str__(self) -> str:
        reasons = "; ".join(f"{count} {reason}" for reason, count in sorted(self.left_out.items()))
        count = self.left_out.total()
        return f"{self.run} blocks run in {self.seconds:.0f} s, {count} left out" + (
            f" ({reasons})" if reasons else ""
        )


def run_page(page: Path, folder: Path, environment: Mapping[str, str], scratch: Path) -> Outcome:
    """In this folder; the scratch folder, which must be empty, gets what each block printed."""
    started = time.monotonic()
    blocks = [*blocks_of(page.read_text())]
    chosen = [block for block in blocks if block.commands]
    for index, block in enumerate(chosen):
        place = scratch / f"{index:03}"
        place.mkdir()
        (place / page.name).write_text("\n" * (block.line - 1) + block.commands + "\n")
    _run_all(page, chosen, folder, environment, scratch)
    left_out = Counter(reason for block in blocks for reason in block.left_out)
    return Outcome(len(chosen), left_out, time.monotonic() - started)


def _run_all(
    page: Path, blocks: list[Block], folder: Path, environment: Mapping[str, str], scratch: Path
) -> None:
    with subprocess.Popen(
        ["bash", "-c", SHELL, "bash", str(scratch)],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as shell:
        assert shell.stdout is not None
        try:
            _follow(page, blocks, shell.stdout.fileno(), scratch)
        finally:
            # And whatever a block has left in the background.
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)


def _follow(page: Path, blocks: list[Block], reports: int, scratch: Path) -> None:
    """The shell writes a line before each block, and one at the end."""
    begun = 0
    while begun <= len(blocks):
        ready, _, _ = select.select([reports], [], [], BLOCK_SECONDS)
        news = os.read(reports, 65536) if ready else b""
        if not news:
            why = "failed" if ready else f"did not end within {BLOCK_SECONDS:.0f} s"
            output = scratch / f"{begun - 1:03}" / "output"
            raise BlockError(_complaint(page, blocks[begun - 1], why, output))
        begun += news.count(b"\n")


def _complaint(page: Path, block: Block, why: str, output: Path) -> str:
    printed = output.read_text(errors="replace") if output.exists() else ""
    return f"{page.name}, line {block.line}: this block {why}:\n{block.commands}\n--- it printed:\n{printed}"
