"""Every write is refused once, each time with another error; nothing has changed, and the manager goes on."""

import pytest
from oracle import check_end, undisturbed
from sampling import sample
from simulated import live
from simulated_connection import Faults, RefusedWrite
from tally import TALLY
from workloads import LIVES

from paddle_operator.cluster import ApiError, Conflict, Forbidden, Throttled, Unreachable

ERRORS = [
    Conflict("a webhook does not like it"),
    Forbidden("exceeded quota"),
    Throttled("too many requests", 1.0),
    Unreachable("the server has a fault"),
]


REFUSED = [
    "completes",
    "fails",
    "is-recreated",
    "ps-completes",
    "service-ps-is-cleaned",
    "host-completes",
    "restarts",
    "restarts-until-the-limit",
    "ps-restarts",
    "service-restarts",
    "loses-a-pod",
    "loses-a-node",
    "is-suspended",
    "service-is-suspended-and-shrinks",
    "expires",
    "runs-too-long-after-a-restart",
    "does-not-start",
]


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_write_that_is_refused_once_changes_nothing_in_the_end(name: str, error: ApiError) -> None:
    calm, end = undisturbed(name)
    for write in sample(range(1, len(calm.witness.writes) + 1), "refused", name, error):
        fault = RefusedWrite(write, error)
        life = live(LIVES[name], Faults(refused=fault))
        life.check()
        check_end(life, end, fault)
        assert life.witness.faults == 1
        TALLY["refused writes"] += 1
