"""The rules that the invariants check: what users may rely on, in a sentence each.

The docstring of an invariant begins with the numbers of its rules.
"""

import re
from collections.abc import Callable
from typing import Any

from simulator import invariants

RULES = {
    1: "A role and rank has at most one live pod, named after job, role and rank.",
    2: "Nothing is made for a job that is gone, going, suspended or over; what came too late soon goes.",
    3: "Every change of a child names the UID that is meant; what is not the job's is never touched.",
    4: "`Completed` and `Failed` are final; the times of start and completion are written once.",
    5: "`observedGeneration` never goes down; a condition moves its time only with its status.",
    6: "Within a try what has ended stays counted, and in the end everybody is.",
    7: "A try that failed is counted once, whatever crashes when, and never beyond the limit.",
    8: "All pods of a try are told the same peers: each rank once, where it can be found.",
    9: "Servers are made before workers, in every try.",
    10: "A gang has one PodGroup, made before its pods, of the right size.",
    11: "At rest `cleanPodPolicy` is kept to.",
    12: "An elastic job stays within its bounds, and is resized once at a time, from its highest rank down.",
    13: "Every request stays in the namespace of its job.",
    14: "At rest nothing is asked; nothing is written that stands there already, or asked for twice.",
    15: "A job of N pods costs at most 2N + 15 requests, and one for each child that is cleaned up.",
    16: "Events are few and short.",
    17: "A status is written only as it was read; what others write is left alone.",
    18: "All this holds while two managers act.",
    19: "With a wrong clock nothing happens early, and no deadline is forgotten.",
    20: "Nothing of ours holds back who is deleted.",
    21: "Nothing that the server accepts raises an exception.",
    22: "No secret is in a status, an event, a name or a log.",
    23: "A SampleJob destroys once at most, and only below its root.",
    24: "Labels of children are hints; the UID of the owner and the name decide.",
    25: "Once faults stop, the goal is reached in few turns, and told soon.",
    26: "The end is that of the same life without faults.",
    27: "What a watch never showed makes no difference after the next list.",
    28: "What is refused is asked for less and less often, and said.",
    29: "An edit that is taken back leaves no trace.",
}
NOT_BUILT = {10, 12, 23}
BY_GROUPS = {18: ("second-leader", "second-leader-and-more"), 29: ("edits",)}
"""Rules that are a group of lives, in which all others have to hold."""
BY_THE_END = {26, 27}
"""Rules that are seen when the end of each life is compared."""


def numbers_of(invariant: Callable[..., Any]) -> set[int]:
    """From its docstring: "7: ..." or "7 and 8: ..."."""
    begins = re.match(r"(\d+)(?: and (\d+))?: ", invariant.__doc__ or "")
    assert begins, f"the docstring of {invariant.__name__} begins with no number of a rule"
    return {int(number) for number in begins.groups() if number}


def invariants_of(rule: int) -> list[str]:
    known = invariants.ALL
    everything: tuple[Callable[..., bool], ...] = (
        *known.of_a_request,
        *known.of_an_answer,
        *known.of_a_change,
        *known.at_rest,
    )
    return [one.__name__ for one in everything if rule in numbers_of(one)]
