import sys
import time

SECONDS_BETWEEN_LINES = 15.0


class Progress:
    """One piece of work, told to a person on stdout.

    On a terminal one line counts the seconds; elsewhere (CI, a file) a line is printed at the start, every
    15 seconds and at the end, so that nobody takes a long build for a hanging one.
    """

    def __init__(self, subject: str, activity: str) -> None:
        self._subject = subject
        self._activity = activity
        self._started = time.monotonic()
        self._last_line = self._started
        self._terminal = sys.stdout.isatty()
        self._say(f"{subject}: {activity} ...")

    @property
    def elapsed_seconds(self) -> float:
        return time.monotonic() - self._started

    def tick(self) -> None:
        """Call as often as is handy while the work is under way."""
        now = time.monotonic()
        if now - self._last_line < (1.0 if self._terminal else SECONDS_BETWEEN_LINES):
            return
        self._last_line = now
        self._say(f"{self._subject}: {self._activity} ... {self.elapsed_seconds:.0f} s")

    def done(self, outcome: str) -> None:
        """Ends the line with the outcome and the time that it took."""
        seconds = self.elapsed_seconds
        precision = 0 if seconds >= 10 else 1
        self._say(f"{self._subject}: {outcome} in {seconds:.{precision}f} s")
        self.stop()

    def stop(self) -> None:
        """Leaves the line as it is, so that an error message starts on one of its own."""
        if self._terminal:
            print(flush=True)

    def _say(self, text: str) -> None:
        if self._terminal:
            # Back to the first column, then erase what the longer line before has left.
            print(f"\r{text}\x1b[K", end="", flush=True)
        else:
            print(text, flush=True)
