"""One pod's life on the fake node: what is known of it, when and how it ends. Times are loop times."""

import asyncio
import enum
from dataclasses import dataclass
from ipaddress import IPv4Address

from testbed.node_pods import DEFAULT_BEHAVIOUR, Behaviour, Pod
from testbed.node_status import Ending, Place

NEVER = float("inf")


class Stage(enum.Enum):
    UNBOUND = enum.auto()
    PREPARING = enum.auto()
    RUNNING = enum.auto()
    FINISHED = enum.auto()
    GONE = enum.auto()


@dataclass(slots=True, eq=False)
class Life:
    pod: Pod
    stage: Stage = Stage.UNBOUND
    behaviour: Behaviour = DEFAULT_BEHAVIOUR
    place: Place | None = None
    taken_at: float = 0.0
    # PREPARING: the next look at the config maps, the pod as it was at the last one, what was reported.
    look_at: float = 0.0
    looked_at: tuple[object, ...] | None = None
    shown: list[str | None] | None = None
    was_denied: bool = False
    # RUNNING
    started_at: str | None = None
    ends_at: float = NEVER
    ordered_exit: int | None = None
    # FINISHED
    ended_at: float = 0.0
    # Deletion or deadline: since when the containers are told to stop.
    stopping_since: float | None = None
    is_past_deadline: bool = False
    # Its place among the workers: a pod is queued at most once and served by one worker at a time.
    is_queued: bool = False
    is_served: bool = False
    timer: asyncio.TimerHandle | None = None

    def begin_to_run(self, now: float, started_at: str) -> None:
        self.stage = Stage.RUNNING
        self.started_at = started_at
        self.ends_at = NEVER if self.behaviour.runs_for_ever else now + self.behaviour.run_seconds

    def note_orders_to_stop(self, now: float) -> float:
        """The deadline that is still to come, if any; counted from the pod's start, as a kubelet counts."""
        if self.stopping_since is not None:
            return NEVER
        seconds = self.pod.spec.active_deadline_seconds
        deadline = NEVER if seconds is None else self.taken_at + seconds
        if not self.pod.is_being_deleted and deadline > now:
            return deadline
        self.stopping_since = now
        self.is_past_deadline = not self.pod.is_being_deleted
        return NEVER

    def ending(self) -> Ending:
        """The earliest end in view of running containers: ordered, told to stop, or by themselves."""
        if self.ordered_exit is not None:
            return Ending(0.0, self.ordered_exit, _reason(self.ordered_exit))
        code = self.behaviour.exit_code
        natural = Ending(self.ends_at, code, self.behaviour.reason or _reason(code))
        return natural if self.stopping_since is None else min(natural, self._stopped(), key=_at)

    def _stopped(self) -> Ending:
        """After the time that the containers take for it, but killed when the grace period is over."""
        grace = self.pod.metadata.deletion_grace_period_seconds
        if grace is None:
            grace = self.pod.spec.termination_grace_period_seconds
        seconds = self.behaviour.termination_seconds
        code = 137 if seconds > grace else self.behaviour.termination_exit_code
        at = (self.stopping_since or 0.0) + min(seconds, grace)
        return deadline_exceeded(at, code) if self.is_past_deadline else Ending(at, code, _reason(code))


def deadline_exceeded(at: float, exit_code: int) -> Ending:
    message = "Pod was active on the node longer than the specified deadline"
    return Ending(at, exit_code, _reason(exit_code), "DeadlineExceeded", message)


def _at(ending: Ending) -> float:
    return ending.at


def _reason(exit_code: int) -> str:
    return "Completed" if exit_code == 0 else "Error"


class Addresses:
    """Hands out addresses in turn, none twice at a time, from the range reserved for benchmarks."""

    HOST = "198.18.0.2"
    _FIRST, _LAST = IPv4Address("198.18.1.0"), IPv4Address("198.19.255.255")

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._last = self._FIRST

    def take(self) -> str:
        while True:
            self._last = self._FIRST if self._last == self._LAST else self._last + 1
            address = str(self._last)
            if address not in self._used and not address.endswith((".0", ".255")):
                self._used.add(address)
                return address

    def keep(self, address: str) -> None:
        self._used.add(address)

    def give_back(self, address: str) -> None:
        self._used.discard(address)
