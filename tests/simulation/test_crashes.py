"""A crash before, after without reply, and after every write: the end is that of an undisturbed life."""

import pytest
from oracle import check_end, undisturbed
from sampling import sample
from simulated import live
from simulated_connection import CrashAt, Faults, Moment
from tally import TALLY
from workloads import LIVES


@pytest.mark.parametrize("name", LIVES)
@pytest.mark.parametrize("moment", Moment, ids=lambda moment: moment.name.lower())
def test_a_crash_at_any_write_changes_nothing_in_the_end(name: str, moment: Moment) -> None:
    calm, end = undisturbed(name)
    for write in sample(range(1, len(calm.witness.writes) + 1), "crash", name, moment):
        fault = CrashAt(write, moment)
        life = live(LIVES[name], Faults(crash=fault))
        life.check()
        check_end(life, end, fault)
        assert life.crashes == 1
        TALLY["crash points"] += 1
