"""Of every group of the matrix a sample: the end is that of an undisturbed life, and all invariants hold.

Each case says itself how many of its faults must strike. `make simulate` lives all of them.
"""

import pytest
from sampling import shuffled
from simulator.__main__ import told
from simulator.cases import tried
from simulator.sweeps import GROUPS
from tally import TALLY

# So many lives of each group are drawn, and so many cases of each of these.
DRAWN = {
    "crashes": 16,
    "late-watches": 16,
    "stale-lists": 10,
    "broken-watches": 16,
    "refused-writes": 20,
    "lasting-refusals": 8,
    "second-leader": 16,
    "edits": 24,
    "clocks": 8,
    "pairs": 4,
    "second-leader-and-more": 4,
}
CASES = 10


def test_every_group_is_drawn_from() -> None:
    assert DRAWN.keys() == GROUPS.keys()


@pytest.mark.parametrize(
    ("group", "number"), [(group, number) for group, count in DRAWN.items() for number in range(count)]
)
def test_what_goes_wrong_changes_nothing_in_the_end(group: str, number: int) -> None:
    lives = shuffled(GROUPS[group].lives, group)
    life = lives[number % len(lives)]
    cases = shuffled([*GROUPS[group].cases(life)], group, number)[:CASES]
    broken = [verdict for verdict in map(tried, cases) if verdict.broken]
    TALLY[group] += len(cases)
    assert not broken, "\n".join([told(broken[0]), *(f"also: {one.case}" for one in broken[1:])])


@pytest.mark.parametrize("group", GROUPS)
def test_names_of_cases_are_their_own(group: str) -> None:
    life = GROUPS[group].lives[0]
    names = [case.name for case in GROUPS[group].cases(life)]
    assert len(set(names)) == len(names) > 0
    assert all(name.startswith(f"{group} {life} ") for name in names)
