"""The log of a container: one file for all of its runs, in which a line says where each of them begins."""

import os
import re
from pathlib import Path

from paddle_operator.api.meta import Key

LAST_WORDS_BYTES = 4096
_MARK = re.compile(r"\[(try|restart in place) \d+ begins\]")


def log_file(logs: Path, pod: Key, container: str) -> Path:
    """By the pod's name: the pods of later tries have the same one."""
    return logs / pod.namespace / pod.name / f"{container}.log"


def begins_a_run(line: str) -> bool:
    return _MARK.fullmatch(line) is not None


def begins_a_try(line: str) -> bool:
    return begins_a_run(line) and line.startswith("[try")


def begin_run(log: Path, attempt: int, restarts: int) -> int:
    """Says which run begins, unless it is the very first; returns where in the file it does."""
    mark = f"[try {attempt} begins]\n" if attempt else ""
    if restarts:
        mark = f"[restart in place {restarts} begins]\n"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab+") as file:
        if size := file.tell():
            file.seek(size - 1)
            if mark and file.read(1) != b"\n":
                file.write(b"\n")  # the last line of the run before has no end
        file.write(mark.encode())
        return file.tell()


def last_words(log: Path, since: int) -> str:
    """What a kubelet tells under FallbackToLogsOnError. Here always: the log is the user's own file."""
    with log.open("rb") as file:
        file.seek(max(since, file.seek(0, os.SEEK_END) - LAST_WORDS_BYTES))
        return file.read().decode(errors="replace")
