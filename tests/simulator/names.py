"""Names of cases: `make simulate SEED=...` lives one again. Who mistypes one is told what there is."""

from collections.abc import Collection, Iterator
from contextlib import suppress
from difflib import get_close_matches
from itertools import chain

from simulator.cases import Case
from simulator.exhaustive import SEARCHES, Order, Path
from simulator.life import Workload
from simulator.oracle import UndisturbedError, calm
from simulator.random_lives import WORKLOADS, random_case, workload_of
from simulator.sweeps import GROUPS
from simulator.workloads import ALL

UNDISTURBED, RANDOM, EXHAUSTIVE = "undisturbed", "random", "exhaustive"
NAMES = (UNDISTURBED, *GROUPS, RANDOM, EXHAUSTIVE)
# Of many names so many are shown.
CLOSEST = 5


class UnknownNameError(LookupError):
    """There is no such case. The message is for the one who has asked."""


def named(name: str) -> Case:
    """The case of that name; but if its life is broken without any fault already, that life."""
    name = " ".join(name.split())
    try:
        return _named(f"{RANDOM} {name}" if name.isdecimal() else name)
    except UndisturbedError as error:
        return without_faults(error.workload)


def without_faults(workload: Workload) -> Case:
    """Called by the life that it is, or by the number that random lives draw."""
    called = chain(ALL.items(), ((str(number), workload_of(number)) for number in range(WORKLOADS)))
    return _without_faults(next(name for name, one in called if one is workload), workload)


def _without_faults(life: str, workload: Workload) -> Case:
    return Case(f"{UNDISTURBED} {life}", workload, strikes=0)


def _named(name: str) -> Case:
    group, _, rest = name.partition(" ")
    if group not in NAMES:
        raise UnknownNameError(f"there is no group {group!r}, but {', '.join(NAMES)}")
    if group == UNDISTURBED:
        return _undisturbed(rest)
    if group == RANDOM:
        return _random(rest)
    return _order(rest) if group == EXHAUSTIVE else _of_a_sweep(name, group, rest)


def _undisturbed(life: str) -> Case:
    if life.isdecimal() and int(life) < WORKLOADS:
        return _without_faults(life, workload_of(int(life)))
    if life not in ALL:
        raise UnknownNameError(_unknown(f"{UNDISTURBED} has no life {life!r}", life, ALL))
    return _without_faults(life, ALL[life])


def _random(number: str) -> Case:
    if not number.isdecimal():
        raise UnknownNameError(f"{RANDOM} needs a number, as in: {RANDOM} 17")
    case = random_case(int(number))
    calm(case.workload)  # also where no fault is drawn, its end must be known
    return case


def _of_a_sweep(name: str, group: str, rest: str) -> Case:
    life = rest.partition(" ")[0]
    if life not in GROUPS[group].lives:
        raise UnknownNameError(_unknown(f"{group} has no life {life!r}", life, GROUPS[group].lives))
    cases = {case.name: case for case in GROUPS[group].cases(life)}
    if name not in cases:
        raise UnknownNameError(_unknown(f"{group} {life} has no case {name!r}", name, cases))
    return cases[name]


def _order(rest: str) -> Order:
    search, _, listed = (part.strip() for part in rest.partition(":"))
    if search not in SEARCHES:
        known = "; ".join(SEARCHES)
        raise UnknownNameError(
            f"{EXHAUSTIVE} has no search {search!r}, but: {known}. Then a colon and choices"
        )
    if not listed:
        raise UnknownNameError(f"{EXHAUSTIVE} {search} needs choices, as in: {EXHAUSTIVE} {search}: 0")
    said = [choice.strip() for choice in listed.split(",")]
    if wrong := [choice for choice in said if not choice.isdecimal()]:
        raise UnknownNameError(f"choices are numbers from 0 on, as in {search}: 0,0,1; {wrong[0]!r} is none")
    workload, scope = SEARCHES[search]
    choices = tuple(map(int, said))
    name = f"{EXHAUSTIVE} {search}: {','.join(map(str, choices))}"
    order = Order(name, workload, scope=scope, choices=choices)
    calm(workload)
    if impossible := next(_impossible(order), ""):
        raise UnknownNameError(f"there is no such order: {impossible}")
    return order


def _impossible(order: Order) -> Iterator[str]:
    """What there is to choose from, only the life itself shows."""
    path = Path(order.choices, order.scope, seen=None)
    with suppress(Exception):  # what is broken is told when the order is lived
        list(path.lived(order.workload, {}))
    for number, (choice, count) in enumerate(zip(order.choices, path._counts, strict=False), start=1):
        if choice >= count:
            yield f"choice {number} is {choice}, but there only 0 to {count - 1} can be chosen"
    if path.is_whole and any(order.choices[len(path.choices) :]):
        yield f"{len(order.choices)} choices, but only {len(path.choices)} can be made"


def _unknown(what: str, asked: str, known: Collection[str]) -> str:
    closest = get_close_matches(asked, known, CLOSEST, cutoff=0.0)
    return f"{what}, but {len(known)} others, such as: {'; '.join(closest)}"
