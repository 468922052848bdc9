"""Which key to look at next: each at most once at a time, not too often, later when it keeps failing.

A key that changes while it is worked on comes again afterwards. Between two turns of one key there is a short
pause, so that the many events of a large job are answered together. Keys carry no reason: a turn looks at the
world, not at what has changed in it.
"""

import asyncio
import heapq
import itertools
from collections.abc import Callable
from math import inf

from paddle_operator.api.meta import Key

PAUSE_SECONDS = 0.05
FIRST_RETRY_SECONDS = 0.2
LONGEST_RETRY_SECONDS = 60.0
# Longer than two failures of one back-off are apart: what failed so long ago is another story.
FAILURE_LASTS_SECONDS = 2 * LONGEST_RETRY_SECONDS
LONGEST_HOLD_SECONDS = 1.0
SPARE_ENTRIES = 64
# Clocks tick: to wait for less than a tick would be to wait without time going on, for ever.
TICK_SECONDS = 1e-5


class KeyQueue:
    def __init__(
        self, pause_seconds: float = PAUSE_SECONDS, on_take: Callable[[float], None] = lambda _: None
    ) -> None:
        """``on_take`` is told how many seconds late a turn begins."""
        self._pause = pause_seconds
        self._on_take = on_take
        self._heap: list[tuple[float, int, Key]] = []
        self._order = itertools.count()
        self._due: dict[Key, float] = {}
        self._taken: set[Key] = set()
        self._not_before: dict[Key, float] = {}
        self._failures: dict[Key, tuple[int, float]] = {}
        """How many, and when the last one was."""
        self._gone: set[Key] = set()
        self._changed = asyncio.Event()
        self._one_waits = asyncio.Lock()
        self._closed = False
        self._nothing_taken = asyncio.Event()
        self._nothing_taken.set()

    def __len__(self) -> int:
        return len(self._due)

    @property
    def overdue(self) -> int:
        """Keys whose turn has come. Those that only wait for their time are not counted."""
        now = _now()
        return sum(due <= now for due in self._due.values())

    def add(self, key: Key, delay_seconds: float = 0.0) -> None:
        """Ask for a turn; of several wishes for one key the earliest counts."""
        due = max(_now() + delay_seconds, self._not_before.get(key, 0.0))
        if due < self._due.get(key, inf):
            self._due[key] = due
            if key not in self._taken:
                self._push(key, due)

    def retry(self, key: Key) -> float:
        """Ask for a turn after a failure; returns the delay, which doubles up to a minute."""
        failures, last = self._failures.get(key, (0, 0.0))
        if _now() - last > FAILURE_LASTS_SECONDS:
            failures = 0
        self._failures[key] = failures + 1, _now()
        delay = min(FIRST_RETRY_SECONDS * 2.0 ** min(failures, 16), LONGEST_RETRY_SECONDS)
        # News is held back for a second at most: it may be what mends the failure.
        self._not_before[key] = _now() + min(delay, LONGEST_HOLD_SECONDS)
        self.add(key, delay)
        return delay

    def succeeded(self, key: Key) -> None:
        self._failures.pop(key, None)

    def forget(self, key: Key) -> None:
        """The object is gone: nothing about it is remembered. Wishes that came since are kept."""
        self._failures.pop(key, None)
        self._gone.add(key)

    async def take(self) -> Key:
        """The next key whose turn has come. Call done() when its turn is over."""
        # Of all workers only one is woken when something changes.
        async with self._one_waits:
            return await self._next()

    async def _next(self) -> Key:
        while True:
            while self._heap and self._is_stale(self._heap[0]):
                heapq.heappop(self._heap)
            wait = self._heap[0][0] - _now() if self._heap and not self._closed else None
            if wait is not None and wait <= TICK_SECONDS:
                _, _, key = heapq.heappop(self._heap)
                del self._due[key]
                self._taken.add(key)
                self._nothing_taken.clear()
                self._on_take(max(0.0, -wait))
                return key
            self._changed.clear()
            try:
                async with asyncio.timeout(wait):
                    await self._changed.wait()
            except TimeoutError:
                pass

    async def close(self) -> None:
        """From now on nothing is handed out. Returns when all that was handed out is done."""
        self._closed = True
        await self._nothing_taken.wait()

    def done(self, key: Key) -> None:
        self._taken.discard(key)
        if not self._taken:
            self._nothing_taken.set()
        if key in self._gone:
            self._gone.remove(key)
            self._not_before.pop(key, None)
            if key in self._due:
                self._push(key, self._due[key])
            return
        not_before = max(self._not_before.get(key, 0.0), _now() + self._pause)
        self._not_before[key] = not_before
        if key in self._due:
            self._due[key] = max(self._due[key], not_before)
            self._push(key, self._due[key])

    def _push(self, key: Key, due: float) -> None:
        if len(self._heap) > 2 * len(self._due) + SPARE_ENTRIES:
            # Wishes that were overtaken would lie here until their own time, which may be days ahead.
            self._heap = [entry for entry in self._heap if not self._is_stale(entry)]
            heapq.heapify(self._heap)
        heapq.heappush(self._heap, (due, next(self._order), key))
        self._changed.set()

    def _is_stale(self, entry: tuple[float, int, Key]) -> bool:
        due, _, key = entry
        return key in self._taken or self._due.get(key) != due


def _now() -> float:
    return asyncio.get_running_loop().time()
