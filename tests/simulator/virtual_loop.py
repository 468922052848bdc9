"""An event loop without sockets, threads or waiting: when nobody can go on, its clock jumps ahead.

Only what asyncio's own loop does for sockets, threads and people who look for slow callbacks is left out, so
tasks, futures and timers are the real ones. There is one thread, and nothing comes from outside: the same
coroutines take the same steps, each time.
"""

import asyncio
from asyncio import Handle, TimerHandle
from collections import deque
from collections.abc import Callable
from contextvars import Context
from heapq import heappop, heappush
from itertools import count
from typing import Any


class VirtualLoop(asyncio.BaseEventLoop):
    _ready: deque[Handle]
    _stopping: bool

    def __init__(self) -> None:
        super().__init__()
        self.when_quiet: Callable[[], bool] = lambda: False
        """Asked when nobody can go on, before the time does; whether that has changed meanwhile."""
        self._now = 0.0
        self._timers: list[tuple[float, int, TimerHandle]] = []
        self._order = count()
        """Of timers that fall due together the older is the first."""

    def time(self) -> float:
        return self._now

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Handle:
        handle = Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> TimerHandle:
        timer = TimerHandle(when, callback, args, self, context)
        heappush(self._timers, (when, next(self._order), timer))
        return timer

    def _run_once(self) -> None:
        ready, timers = self._ready, self._timers
        if not (ready or self._stopping or self.when_quiet()):
            while timers and timers[0][2].cancelled():
                heappop(timers)
            if not timers:
                raise RuntimeError("everybody waits for somebody else, for ever")
            self._now = max(self._now, timers[0][0])
        while timers and timers[0][0] <= self._now:
            ready.append(heappop(timers)[2])
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle.cancelled():
                handle._run()

    def _timer_handle_cancelled(self, _: TimerHandle) -> None:
        """It is passed over when its time comes."""

    def _process_events(self, _: object) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nobody sleeps who could be woken."""
