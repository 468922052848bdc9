"""What time it is, for deadlines: the server's time, carried on by a clock that nobody sets."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

RESOLUTION = timedelta(seconds=1)
# How much of the time that has passed may be put right at once.
LARGEST_CORRECTION = 0.1


def wall_clock() -> datetime:
    return datetime.now(UTC)


def since_boot() -> float:
    """Goes on while the machine sleeps, where there is such a clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class SteadyClock:
    """Times in objects are the server's, so it is that clock by which a deadline passes.

    Its first answer sets ours, whatever this machine's own clock says; from then on ours goes by itself. When
    the server's is set forward, ours follows only slowly, and when it is set back, at once: so whichever
    clock somebody sets by an hour, nothing is taken to be an hour older than it is. Late is the lesser harm.
    """

    def __init__(
        self,
        wall: Callable[[], datetime] = wall_clock,
        steady: Callable[[], float] = since_boot,
    ) -> None:
        self._steady = steady
        self._set_to, self._set_at = wall(), steady()
        self._has_been_told = False

    def __call__(self) -> datetime:
        return self._set_to + timedelta(seconds=self._steady() - self._set_at)

    def heed(self, told: datetime) -> None:
        """What the server has just said, in whole seconds."""
        now = self()
        target = min(max(now, told), told + RESOLUTION)
        if self._has_been_told:
            target = min(target, now + LARGEST_CORRECTION * timedelta(seconds=self._steady() - self._set_at))
        self._set_to, self._set_at = target, self._steady()
        self._has_been_told = True
