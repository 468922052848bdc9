"""Who goes on when: everybody in a simulated life asks here before each step, and waits as long as it takes.

Actors are called by what they do: "manager 1 asks", "manager 1 hears" (an answer), "manager 1 watches pods",
"node". What a schedule does with the names is its own affair.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar, Protocol, Self, cast

from simulator.virtual_loop import VirtualLoop
from simulator.witness import CURRENT_TURN, CURRENT_WITNESS, Witness

NODE = "node"
A_MOMENT = 0.001
PACE_SECONDS = 0.5
LONGEST_LATENCY_SECONDS = 2.0


class Schedule(Protocol):
    @property
    def is_calm(self) -> bool:
        """Nobody waits long: what a job costs can be foreseen."""

    @property
    def longest_step(self) -> float:
        """In seconds; but a watch may stall for longer."""

    def afresh(self) -> "Schedule":
        """For the beginning of a life: nothing has been drawn yet."""

    async def pause(self, actor: str) -> None: ...


@dataclass(frozen=True)
class Steady:
    """Everybody is as quick as on a good day."""

    is_calm: bool = True
    longest_step: ClassVar[float] = PACE_SECONDS

    def afresh(self) -> Self:
        return self

    async def pause(self, actor: str) -> None:
        await asyncio.sleep(PACE_SECONDS if actor == NODE else A_MOMENT)


@dataclass
class Unsteady:
    """Requests and a node that take their time, and watches that now and then stall: each step is drawn.

    Each source of chance has its own dice, so that none disturbs another.
    """

    seed: int
    is_calm: ClassVar[bool] = False
    longest_step: ClassVar[float] = 3.0
    # Longer than the operator's patience with a watch.
    LONGEST_STALL_SECONDS: ClassVar[float] = 30.0

    def __post_init__(self) -> None:
        self._request, self._watch, self._node = (
            Random(f"{self.seed} {what}") for what in ("latency", "watch", "node")
        )

    def afresh(self) -> "Unsteady":
        return Unsteady(self.seed)

    async def pause(self, actor: str) -> None:
        await asyncio.sleep(self._seconds(actor))

    def _seconds(self, actor: str) -> float:
        if actor == NODE:
            return self._node.uniform(0.1, self.longest_step)
        if " watches " not in actor:
            return self._request.uniform(0, LONGEST_LATENCY_SECONDS)
        stalls = self._watch.random() >= 0.95
        return self._watch.uniform(2, self.LONGEST_STALL_SECONDS) if stalls else self._watch.uniform(0, 2)


@dataclass
class Priorities:
    """Probabilistic concurrency testing: a bug that needs few steps in a certain order is likely to be met.

    Each actor has a priority for its whole life, drawn once: who is low waits while others go on, in virtual
    time by orders of magnitude longer. At a few steps, drawn too, whoever is about to act falls below all.
    """

    seed: int
    depth: int
    is_calm: ClassVar[bool] = False
    LOWEST_SECONDS: ClassVar[float] = 10.0
    STEPS: ClassVar[int] = 250

    def __post_init__(self) -> None:
        falls = Random(f"{self.seed} falls")
        self._falls = set(falls.sample(range(1, self.STEPS), self.depth))
        self._steps = self._fallen = 0
        self._seconds: dict[str, float] = {}

    @property
    def longest_step(self) -> float:
        return self.LOWEST_SECONDS * (1 + self.depth)

    def afresh(self) -> "Priorities":
        return Priorities(self.seed, self.depth)

    async def pause(self, actor: str) -> None:
        self._steps += 1
        if self._steps in self._falls:
            self._fallen += 1
            self._seconds[actor] = self.LOWEST_SECONDS * (1 + self._fallen)
        await asyncio.sleep(self._seconds.get(actor) or self._drawn_for(actor))

    def _drawn_for(self, actor: str) -> float:
        """From a moment to the lowest, evenly over the magnitudes."""
        priority = Random(f"{self.seed} {actor}").random()
        self._seconds[actor] = A_MOMENT * (self.LOWEST_SECONDS / A_MOMENT) ** priority
        return self._seconds[actor]


class Explorer:
    """Nobody goes on by himself: whenever all wait, somebody chooses one of them, by his place in the line.

    The time goes on when nobody waits, or when nobody is chosen. Requests that only fill caches do not wait;
    whether answers do is asked for.
    """

    is_calm = False
    longest_step = 0.0
    """While somebody waits the time stands still."""

    def __init__(
        self, choose: Callable[[Sequence[str], Witness], int | None], *, answers_wait: bool = True
    ) -> None:
        self._choose = choose
        self._answers_wait = answers_wait
        self._waiting: list[tuple[str, asyncio.Future[None]]] = []
        self._witness: Witness | None = None

    def afresh(self) -> "Explorer":
        return Explorer(self._choose, answers_wait=self._answers_wait)

    async def pause(self, actor: str) -> None:
        fills_caches = actor.endswith((" asks", " hears")) and CURRENT_TURN.get() is None
        if fills_caches or (actor.endswith(" hears") and not self._answers_wait):
            await asyncio.sleep(0)
            return
        loop = cast("VirtualLoop", asyncio.get_running_loop())
        loop.when_quiet, self._witness = self._let_one_go, CURRENT_WITNESS.get()
        turn = loop.create_future()
        self._waiting.append((actor, turn))
        await turn

    def _let_one_go(self) -> bool:
        self._waiting = [(actor, turn) for actor, turn in self._waiting if not turn.done()]
        if not self._waiting or self._witness is None:
            return False
        chosen = self._choose([actor for actor, _ in self._waiting], self._witness)
        if chosen is None:
            return False
        self._waiting.pop(chosen)[1].set_result(None)
        return True
