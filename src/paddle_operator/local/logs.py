"""The log of a container: one file for all of its runs, in which a line says where each of them begins.

Processes that Paddle's launcher starts in it have one each, beside it, named as the launcher names them.
"""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from paddle_operator.api.meta import Key

LAST_WORDS_BYTES = 4096
LAST_WORDS_OF_A_PROCESS = 400
MOST_PROCESSES = 64
"""Of a container, as far as their logs are told apart: more than any machine has accelerators."""
_PROCESS = "workerlog"
# The launcher's words of one that has failed, with the folder of its log.
_FAILED_PROCESS = re.compile(
    rf"^Container rank \d+ status failed .* log (/.*/){_PROCESS}\.\d+\s*$", re.MULTILINE
)
_MARK = re.compile(r"\[(try|restart in place) \d+ begins\]")


def log_file(logs: Path, pod: Key, container: str) -> Path:
    """By the pod's name: the pods of later tries have the same one."""
    return logs / pod.namespace / pod.name / f"{container}.log"


def process_log(log: Path, local_rank: int) -> Path:
    """Of one process of the container that has this log."""
    return log.with_name(f"{log.stem}.{_PROCESS}.{local_rank}")


def process_logs(log: Path) -> Mapping[int, Path]:
    """Those that there are, by local rank."""
    return _by_rank(log.parent.glob(f"{log.stem}.{_PROCESS}.*"))


def _by_rank(paths: Iterable[Path]) -> Mapping[int, Path]:
    found = {path.name.rpartition(".")[2]: path for path in paths}
    # An editor may leave a file of its own beside them.
    return {int(rank): found[rank] for rank in sorted(filter(str.isdecimal, found), key=int)}


def furnish_launcher(folder: Path, log: Path) -> None:
    """A folder for Paddle's launcher, whose logs of processes lead to ours.

    The launcher also writes the whole environment there, perhaps with secrets. That is not to be kept, not
    even if somebody kills us; so the folder is another one than that of the logs, and links lead there.
    """
    for one in (folder, log.parent):
        one.mkdir(parents=True, exist_ok=True)
    for local_rank in range(MOST_PROCESSES):
        link = folder / f"{_PROCESS}.{local_rank}"
        if not link.is_symlink():
            link.symlink_to(process_log(log, local_rank).absolute())


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
    # First in those of its processes: who sees the line in the container's log finds it in theirs.
    for one in process_logs(log).values():
        _write_mark(one, mark)
    return _write_mark(log, mark)


def _write_mark(log: Path, mark: str) -> int:
    with log.open("ab+") as file:
        if size := file.tell():
            file.seek(size - 1)
            if mark and file.read(1) != b"\n":
                file.write(b"\n")  # the last line of the run before has no end
        file.write(mark.encode())
        return file.tell()


def last_words(log: Path, since: int) -> str:
    """What a kubelet tells under FallbackToLogsOnError. Here always: the log is the user's own file.

    And the ends of its processes' own logs, under headers as `tail` prints them: the launcher shows one of
    them, and that may be a victim.
    """
    words = _end(log, since, LAST_WORDS_BYTES)
    processes = process_logs(log) or _logs_elsewhere(words)
    if len(processes) < 2:
        return words
    ends = {rank: _of_last_run(_end(one, 0, LAST_WORDS_OF_A_PROCESS)) for rank, one in processes.items()}
    return "".join([words, *(f"\n==> {_PROCESS}.{rank} <==\n{end}" for rank, end in ends.items())])


def _logs_elsewhere(words: str) -> Mapping[int, Path]:
    """Where a script has told its launcher to write, by a whole path: another one may be of several pods."""
    found = _FAILED_PROCESS.findall(words)
    return _by_rank(Path(found[-1]).glob(f"{_PROCESS}.*")) if found else {}


def _end(log: Path, since: int, most: int) -> str:
    with log.open("rb") as file:
        file.seek(max(since, file.seek(0, os.SEEK_END) - most))
        return file.read().decode(errors="replace")


def _of_last_run(text: str) -> str:
    *_, last = _MARK.split(text)[::2]
    return last
