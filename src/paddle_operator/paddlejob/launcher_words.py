"""What a container says at its end of the trainers in it: their reports, or the words of launcher and gloo.

Where several trainers run in one pod, the exit code of their launcher is that of the first in its list that
did not end well, be it only that the launcher stopped it. Its words name one that had failed before that; it
looks once a second, so that may be a victim too. Gloo's words name whom a victim has lost:

    Container rank 1 status failed cmd ['python', '-u', 'train.py'] code 1 log log/workerlog.1
    ... gloo/transport/tcp/pair.cc:584] TIMEOUT self_rank = 2 pair_rank = 3 peer_str = [10.0.0.7]:45966

A log may hold secrets, and what it says may be made up. Nothing leaves this file but numbers and the path of
a log; what is made up misleads whoever reads of that job, and nobody else.
"""

import re
from typing import NamedTuple

from paddle_operator.api.remembered import remembered
from paddle_operator.api.report import Report, read_report

MOST_OF_A_PATH = 256
UNCAUGHT = 1
"""With which Python ends if nobody catches an error."""
# As 2.6.2, 3.0.0 and 3.3.1 print it. The command may hold anything, so the last `code` of the line counts.
_FAILED = re.compile(
    r"^Container rank (\d{1,5}) status failed cmd .* code (-?\d{1,3}) log (.*)$", re.MULTILINE | re.ASCII
)
_LOG_OF_A_TRAINER = re.compile(r"([\w./@%+=:-]*/)?workerlog\.\d{1,5}")
# What `tail log/workerlog.*` prints before each of several files.
_HEADER = re.compile(r"^==> (?:.*/)?workerlog\.(\d{1,5}) <==$", re.MULTILINE | re.ASCII)
_GLOO = re.compile(r"gloo/transport/tcp/\w+\.cc")
_LOSS = re.compile(r"\bself_rank = (\d{1,6}) pair_rank = (\d{1,6})\b", re.ASCII)
_REPLICAS = re.compile(r"Run Pod: \w+, replicas (\d{1,5}), status ", re.ASCII)
# What Paddle itself says in a trainer that its launcher stops, and in one that gloo makes abort.
_STOPPED = re.compile(r"`(Termination|Process abort) signal` is detected by the operating system")
_RAISED = "Traceback (most recent call last):"


class Words(NamedTuple):
    """One trainer that the launcher has found to have failed."""

    process: int
    """Its place among the trainers of the pod: its local rank."""
    code: int
    """Its own; of one that a signal ended less than 0."""
    log: str
    """Where that is, inside the pod; empty if there is none, or none that could be shown."""


class Loss(NamedTuple):
    """One trainer that lost the connection to another: global ranks."""

    by: int
    of: int


class Told(NamedTuple):
    words: Words | None = None
    lost_a_peer: bool = False
    """The trainer of whom the words are, or if there are none, some trainer of the pod."""
    raised: bool = False
    """So has that one raised an exception, of whatever kind."""
    losses: tuple[Loss, ...] = ()
    """By whomever in the pod: with each other's the words may be repeated."""
    processes: int | None = None
    """How many trainers the launcher has started, if that is in the text."""
    victims: frozenset[int] = frozenset()
    """The processes whose own logs, if the text has them, say that they lost a peer or were stopped."""
    others: frozenset[int] = frozenset()
    """Those whose own logs do not."""


NOTHING = Told()


@remembered
def listen(text: str) -> Told:
    """Of several runs, as of an elastic launcher, the last one counts."""
    if not text:
        return NOTHING
    if (report := read_report(text)) is not None:
        return _with_report(listen(text.strip().partition("\n")[2]), report)
    said, *headed = _HEADER.split(text)
    found = list(_FAILED.finditer(said))
    detail = said[found[-1].end() :] if found else said
    own_logs = {int(process): log for process, log in zip(headed[::2], headed[1::2], strict=True)}
    victims = frozenset(
        process for process, log in own_logs.items() if _GLOO.search(log) or _STOPPED.search(log)
    )
    return Told(
        words=_words(found[-1]) if found else None,
        lost_a_peer=_GLOO.search(detail) is not None,
        raised=_RAISED in detail,
        losses=tuple(sorted({Loss(int(by), int(of)) for by, of in _LOSS.findall(text)})),
        processes=next((int(count) for count in reversed(_REPLICAS.findall(said))), None) or None,
        victims=victims,
        others=frozenset(own_logs) - victims,
    )


def _with_report(heard: Told, report: Report) -> Told:
    """What trainers say themselves goes before what launchers say of them. Without errors they say nothing.

    One that has said nothing of an error while others lost a peer was killed.
    """
    ordered = sorted(report.processes, key=lambda one: one.rank or 0)
    places = {place if one.local_rank is None else one.local_rank: one for place, one in enumerate(ordered)}
    own = {place for place, one in places.items() if one.error and not one.lost_peer}
    victims = {place for place, one in places.items() if one.lost_peer}
    silent = places.keys() - own - victims
    if not own and not victims:
        return heard
    words = heard.words
    if len(own) == 1:
        (first,) = own
        words = Words(first, UNCAUGHT, log_beside(words.log, first) if words is not None else "")
    return heard._replace(
        words=words,
        lost_a_peer=not own,
        raised=bool(own),
        victims=frozenset(victims),
        others=frozenset(own or silent),
    )


def log_beside(log: str, process: int) -> str:
    """The log of another trainer of that pod; in general words if the path of this one is not known."""
    known = _LOG_OF_A_TRAINER.fullmatch(log)
    return f"{(known[1] or '') if known else ''}workerlog.{process}"


def _words(found: re.Match[str]) -> Words:
    log = found[3].strip()
    is_fit = len(log) <= MOST_OF_A_PATH and log.isprintable() and _LOG_OF_A_TRAINER.fullmatch(log)
    return Words(int(found[1]), int(found[2]), log if is_fit else "")
