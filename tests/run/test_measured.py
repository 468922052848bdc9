"""The points of a curve: thinned out, and steps that are done again once."""

from itertools import pairwise

from paddle_operator.run.measured import MOST_MEASUREMENTS, Measured
from paddle_operator.run.scene import Measurement


def test_a_long_curve_is_thinned_out_evenly_and_ends_with_the_latest() -> None:
    measured = Measured()
    for step in range(100_000):
        measured.add(Measurement(step, 1.0))
    steps = [one.step or 0 for one in measured.curve]
    assert len(steps) <= MOST_MEASUREMENTS
    assert (steps[0], steps[-1]) == (0, 99_999)
    gaps = {later - earlier for earlier, later in pairwise(steps[:-1])}
    assert len(gaps) == 1


def test_a_loss_without_steps_goes_on_after_a_restart() -> None:
    measured = Measured()
    for loss in (3.0, 2.0):
        measured.add(Measurement(None, loss))
    measured.resume()
    measured.add(Measurement(None, 1.0))
    assert [one.loss for one in measured.curve] == [3.0, 2.0, 1.0]


def test_a_short_curve_is_whole() -> None:
    assert Measured().curve == ()
    measured = Measured()
    for step in range(5):
        measured.add(Measurement(step, 1.0))
    assert [point.step for point in measured.curve] == [0, 1, 2, 3, 4]
