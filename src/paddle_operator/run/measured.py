"""What a process has measured so far: the points of its curve."""

from dataclasses import dataclass, field

from .scene import Measurement

MOST_MEASUREMENTS = 4096


@dataclass
class Measured:
    """What was measured so far, thinned out evenly: a curve needs no more, and a run may last for weeks."""

    latest: Measurement | None = None
    _kept: list[Measurement] = field(default_factory=list)
    _stride: int = 1
    _count: int = 0
    _is_resumed: bool = False

    def resume(self) -> None:
        """Training begins anew, at a checkpoint perhaps: steps that are done again count only once."""
        self._is_resumed = True

    def add(self, measurement: Measurement) -> None:
        if self._is_resumed and measurement.step is not None:
            by_step = {one.step: one for one in self._kept if one.step is not None}
            self._kept = [one for step, one in by_step.items() if step < measurement.step]
        # The first of a run is always kept: after it was thinned out, there may be none.
        if self._is_resumed or self._count % self._stride == 0:
            self._kept.append(measurement)
        self._is_resumed = False
        self.latest = measurement
        self._count += 1
        if len(self._kept) >= MOST_MEASUREMENTS:
            del self._kept[1::2]
            self._stride *= 2

    @property
    def curve(self) -> tuple[Measurement, ...]:
        ends_with_latest = self.latest is None or self._kept[-1] is self.latest
        return (*self._kept,) if ends_with_latest else (*self._kept, self.latest)  # type: ignore[arg-type]
