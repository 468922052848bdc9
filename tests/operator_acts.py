"""What operators in pods did, as the server wrote it down: whether one at a time, whether nothing twice."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path

from audit import READS, Request, read_audit_log

from paddle_operator.api.rights import LEASE_NAME

ACCOUNT = "system:serviceaccount:paddle-system:paddle-manager-sa"


@dataclass
class Watchman:
    """Of the operator's account, from now on."""

    log: Path
    _from: int = field(init=False)

    def __post_init__(self) -> None:
        self._from = self.log.stat().st_size

    def acts(self) -> list[Request]:
        """But watches, which last."""
        asked = read_audit_log(self.log, self._from)
        return sorted(
            (one for one in asked if one.user == ACCOUNT and one.verb != "watch"), key=lambda one: one.at
        )


def one_at_a_time(acts: Iterable[Request]) -> list[str]:
    """The pods whose operators changed something, in their order: none before the one before was done."""
    turns = [(pod, list(turn)) for pod, turn in groupby(filter(_changes_jobs, acts), key=_pod)]
    for (_, earlier), (_, later) in pairwise(turns):
        assert max(act.ended for act in earlier) <= later[0].at, (earlier, later[0])
    pods = [pod for pod, _ in turns]
    assert len(set(pods)) == len(pods), pods
    return pods


def longest_gap(acts: Iterable[Request]) -> float:
    """Seconds that nobody held the lease, when it went from one operator to the next."""
    held = [act for act in acts if act.name == LEASE_NAME and act.is_accepted_write]
    turns = [list(turn) for _, turn in groupby(held, key=_pod)]
    return max((later[0].ended - earlier[-1].ended).total_seconds() for earlier, later in pairwise(turns))


def pods_made(acts: Sequence[Request]) -> int:
    """How many; none of them twice."""
    made = Counter((act.namespace, act.name) for act in acts if str(act) == "create pods" and act.code < 300)
    assert set(made.values()) <= {1}, made
    return len(made)


def refused(acts: Iterable[Request]) -> list[Request]:
    return [act for act in acts if act.code == 403]


def _pod(act: Request) -> str:
    return act.pod


def _changes_jobs(act: Request) -> bool:
    """Or what belongs to them. An event only tells."""
    return act.verb not in READS and act.resource != "events" and act.name != LEASE_NAME
