"""What a pod prints: its containers, and each process of the one that trains, as a stream of its own.

The log of a process is the truth for what it prints. So where there is one, of what the launcher prints only
its own words are shown, and only processes are measured.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from paddle_operator.local.logs import begins_a_run, process_log, process_logs

from .launcher import Copies, Repetition
from .measured import Measured
from .metrics import Metric
from .scene import Measurement, ProcessScene, process_name
from .tail import Tail


@dataclass
class Stream:
    """One log, and what was measured in it."""

    tail: Tail
    measured: Measured = field(default_factory=Measured)
    last_line: str = ""
    """Of this pod: an earlier one of its name may have said more."""
    latest: Measurement | None = None

    def begin_anew(self) -> None:
        self.last_line, self.latest = "", None

    def say(self, lines: list[str]) -> None:
        self.last_line = next((text for text in reversed(lines) if text.strip()), self.last_line)

    def measure(self, lines: Iterable[str], metric: Metric) -> None:
        for text in lines:
            if begins_a_run(text):
                self.measured.resume()
            elif (measurement := metric.measure(text)) is not None:
                self.measured.add(measurement)
                self.latest = measurement


@dataclass
class Training:
    """The container that trains."""

    log: Path
    metric: Metric
    processes: dict[int, Stream] = field(default_factory=dict)
    """By local rank, those that the launcher keeps a log of."""
    _own: Stream = field(init=False)
    _copies: Copies = field(init=False)
    _repetition: Repetition = field(default_factory=Repetition)

    def __post_init__(self) -> None:
        self._own = Stream(Tail(self.log))
        self._copies = Copies(process_log(self.log, 0))

    @property
    def is_several(self) -> bool:
        return len(self.processes) > 1

    @property
    def streams(self) -> list[Stream]:
        """The processes first: what they say goes before what is said of them."""
        return [*self.processes.values(), self._own]

    @property
    def last_line(self) -> str:
        return next((one.last_line for one in self.streams if one.last_line), "")

    @property
    def latest(self) -> Measurement | None:
        return next((one.latest for one in self.streams if one.latest is not None), None)

    @property
    def curve(self) -> tuple[Measurement, ...]:
        return next((curve for one in self.streams if (curve := one.measured.curve)), ())

    @property
    def bytes_read(self) -> int:
        return sum(one.tail.bytes_read for one in self.streams)

    def scenes(self, pod: str) -> tuple[ProcessScene, ...]:
        """None where there is but one: then it is the pod that is shown."""
        if not self.is_several:
            return ()
        return tuple(
            ProcessScene(process_name(pod, rank), rank, one.last_line, one.latest)
            for rank, one in self.processes.items()
        )

    def begin_anew(self) -> None:
        """Another pod has the name, and with it the log."""
        for one in self.streams:
            one.begin_anew()

    def read(self, pod: str, *, is_complete: bool) -> Iterator[tuple[str, list[str]]]:
        """New lines, each group with the name of who says them."""
        # Its own first: whatever the launcher has copied by then is in the log that it was copied from.
        own = self._own.tail.new_lines(is_complete=is_complete)
        self._look_for_processes()
        yield pod, self._of_the_container(own)
        for rank, one in self.processes.items():
            lines = one.tail.new_lines(is_complete=is_complete)
            one.say(lines)
            one.measure(lines, self.metric)
            yield (process_name(pod, rank) if self.is_several else pod), lines

    def _of_the_container(self, lines: list[str]) -> list[str]:
        said_once = [text for text in lines if not self._repetition.holds(text)]
        if self.processes:
            lines = self._copies.without(said_once)
        else:
            self._own.measure(said_once, self.metric)
        self._own.say(lines)
        return lines

    def _look_for_processes(self) -> None:
        for rank, log in process_logs(self.log).items():
            if rank not in self.processes:
                self.processes[rank] = Stream(Tail(log))
        self.processes = dict(sorted(self.processes.items()))
