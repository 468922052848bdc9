"""What lives with two leaders are measured by, where one of them breaks off a try of the job."""

from math import inf

import pytest
from simulator.cases import Case, broken_off_in, tried
from simulator.faults import SecondLeader, faults
from simulator.life import Workload, live
from simulator.schedule import Priorities
from simulator.workloads import job, restarted

CODES: dict[str, int | tuple[int, ...]] = {"resnet-worker-0": 3, "resnet-worker-1": (1, 2, 0)}
SECONDS: dict[str, float | tuple[float, ...]] = {"resnet-worker-0": (inf, 5.0)}
TWICE = restarted(failures=2, limit=1, servers=1, policy="OnFailure")


@pytest.mark.parametrize(
    ("tries", "codes", "seconds"),
    [
        ({0}, (2, 0), (5.0,)),
        ({1}, (1, 0), (inf, 5.0)),
        ({0, 1}, (0,), (5.0,)),
        # As the last one, so all that follow.
        ({2}, (1, 2, 0), (inf, 5.0)),
        (set(), (1, 2, 0), (inf, 5.0)),
    ],
)
def test_a_try_that_was_broken_off_is_not_one_of_those_in_which_pods_end(
    tries: set[int], codes: tuple[int, ...], seconds: tuple[float, ...]
) -> None:
    left = Workload(job(), CODES, SECONDS).without_tries(tries)
    assert left.exit_codes == {"resnet-worker-0": 3, "resnet-worker-1": codes}
    assert left.run_seconds == {"resnet-worker-0": seconds}


def test_a_life_of_which_no_try_was_broken_off_stays_the_same() -> None:
    assert TWICE.without_tries([]) is TWICE


def test_a_failure_that_never_came_is_not_missed() -> None:
    """`random 5022997`: pods of the second try read the list of the first, which the other leader was late to
    make, and all begin anew before worker 1 ends with its second 1. In the third try it ends well.
    """
    case = Case("late", TWICE, faults(SecondLeader(0.0)), Priorities(5022997, depth=0))
    life = live(case.workload, case.faults, case.schedule)
    assert broken_off_in(life) == {1}, "this is no such life any more"
    assert (life.job["status"]["phase"], life.job["status"]["failures"]) == ("Completed", 1)
    assert tried(case).broken == ""
