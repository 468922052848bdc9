"""What time it is for deadlines: the server's, and no hour passes because somebody sets a clock."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from scripted import DAY_ZERO

from paddle_operator.runtime.clock import LARGEST_CORRECTION, RESOLUTION, SteadyClock

HOUR = 3600.0


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


@dataclass
class World:
    """Three clocks: this machine's wall clock, which people set; one that nobody can set; the server's."""

    ours: datetime = DAY_ZERO
    theirs: datetime = DAY_ZERO
    drift: float = 0.0
    """How many seconds the server's clock gains in one of ours."""
    ticks: float = 1_000.0
    clock: SteadyClock = field(init=False)

    def __post_init__(self) -> None:
        self.clock = SteadyClock(lambda: self.ours, lambda: self.ticks)

    def pass_by(self, count: float) -> None:
        self.ticks += count
        self.ours += seconds(count)
        self.theirs += seconds(count * (1 + self.drift))

    def answer(self) -> None:
        """As in the Date of an answer: cut down to whole seconds."""
        self.clock.heed(self.theirs.replace(microsecond=0))

    def follow(self, count: int, every: float = 1.0) -> None:
        for _ in range(count):
            self.pass_by(every)
            self.answer()

    @property
    def error(self) -> float:
        """Of ours against the server's, in seconds."""
        return (self.clock() - self.theirs).total_seconds()


def test_before_the_server_has_spoken_it_is_what_this_machine_says() -> None:
    world = World(theirs=DAY_ZERO + seconds(HOUR))
    world.pass_by(7)
    assert world.clock() == DAY_ZERO + seconds(7)


@pytest.mark.parametrize(
    "ahead", [0.0, 0.7, -0.7, 30.0, -30.0, HOUR, -HOUR, 400 * 24 * HOUR, -400 * 24 * HOUR]
)
def test_the_first_answer_sets_it_however_wrong_this_machine_is(ahead: float) -> None:
    world = World(ours=DAY_ZERO + seconds(ahead), theirs=DAY_ZERO + seconds(0.4))
    world.answer()
    assert abs(world.error) <= RESOLUTION.total_seconds()


def test_an_answer_that_fits_changes_nothing() -> None:
    """A date has whole seconds: all that is within the one is as good."""
    world = World(theirs=DAY_ZERO + seconds(0.9))
    world.pass_by(0.05)
    before = world.clock()
    world.answer()
    assert world.clock() == before


@pytest.mark.parametrize("jump", [HOUR, -HOUR, 400 * 24 * HOUR])
def test_whoever_sets_the_clock_of_this_machine_moves_no_deadline(jump: float) -> None:
    world = World()
    world.answer()
    world.follow(10)
    world.ours += seconds(jump)
    world.follow(10)
    assert abs(world.error) <= RESOLUTION.total_seconds()


def test_a_server_whose_clock_is_set_forward_is_followed_only_slowly() -> None:
    """Another of several servers answers, say, or somebody sets its clock: no job is an hour older by it."""
    world = World()
    world.answer()
    world.follow(60)
    world.theirs += seconds(HOUR)
    for step in range(1, 61):
        before = world.clock()
        world.follow(1)
        assert abs((world.clock() - before).total_seconds() - 1) <= LARGEST_CORRECTION + 1e-6
        moved = (world.clock() - DAY_ZERO).total_seconds() - 60 - step
        assert 0 <= moved <= LARGEST_CORRECTION * step + 1 + 1e-6


def test_a_server_whose_clock_is_set_back_is_followed_at_once() -> None:
    """Else what it stamps from now on would be an hour old from the start."""
    world = World()
    world.answer()
    world.follow(60)
    world.theirs -= seconds(HOUR)
    world.follow(1)
    assert abs(world.error) <= RESOLUTION.total_seconds()


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_a_server_that_was_set_for_good_is_believed_in_the_end(jump: float) -> None:
    world = World()
    world.answer()
    world.theirs += seconds(jump)
    world.follow(int(2 * HOUR / LARGEST_CORRECTION / 60), every=60.0)
    assert abs(world.error) <= RESOLUTION.total_seconds()


def test_time_never_runs_backwards_from_one_answer_to_the_next() -> None:
    world = World()
    world.answer()
    world.theirs -= seconds(HOUR)
    times = []
    for _ in range(200):
        world.follow(1, every=0.25)
        times.append(world.clock())
    assert times == sorted(times)


@pytest.mark.parametrize("drift", [0.01, -0.01, 0.05, -0.05])
def test_a_slow_drift_is_followed(drift: float) -> None:
    world = World(drift=drift)
    world.answer()
    for _ in range(600):
        world.follow(1)
        assert abs(world.error) <= RESOLUTION.total_seconds() + 0.1


def test_two_servers_that_differ_by_a_minute_do_not_shake_it() -> None:
    """Behind a load balancer they answer in turn."""
    world = World()
    world.answer()
    for count in range(600):
        world.pass_by(1)
        world.clock.heed((world.theirs + seconds(60 if count % 2 else 0)).replace(microsecond=0))
        assert -1 <= world.error <= 61


def test_a_long_silence_allows_a_larger_correction() -> None:
    world = World(drift=0.05)
    world.answer()
    world.pass_by(HOUR)
    world.answer()
    assert abs(world.error) <= RESOLUTION.total_seconds()
