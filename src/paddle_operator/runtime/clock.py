"""What time it is, for deadlines: the server's time, carried on by a clock that nobody sets."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

RESOLUTION = timedelta(seconds=1)
# How much of the time that has passed may be put right at once.
LARGEST_CORRECTION = 0.1


def wall_clock() -> datetime:
    return datetime.now(UTC)


class SteadyClock:
    """Times in objects are the server's, so it is that clock by which a deadline passes.

    Its first answer sets ours, whatever this machine's own clock says; from then on ours goes by itself and
    follows the server's only slowly. So when somebody sets either clock by an hour, no job is an hour older.
    """

    def __init__(
        self,
        wall: Callable[[], datetime] = wall_clock,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._monotonic = monotonic
        self._set_to, self._set_at = wall(), monotonic()
        self._has_been_told = False

    def __call__(self) -> datetime:
        return self._set_to + timedelta(seconds=self._monotonic() - self._set_at)

    def heed(self, told: datetime) -> None:
        """What the server has just said, in whole seconds."""
        now = self()
        target = min(max(now, told), told + RESOLUTION)
        if self._has_been_told:
            most = LARGEST_CORRECTION * timedelta(seconds=self._monotonic() - self._set_at)
            target = min(max(target, now - most), now + most)
        self._set_to, self._set_at = target, self._monotonic()
        self._has_been_told = True
