"""One case: a life, what goes wrong in it, what must hold in the end. Its name finds it again."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from paddle_operator.api.meta import Manifest
from paddle_operator.api.names import ADDRESS_CHANGED
from paddle_operator.api.resources import PADDLE_JOBS
from simulator.deeds import DEEDS, OUT_OF_SIGHT, TRIES, Deed, called
from simulator.faults import Faults, Interference, RefusedFor, SecondLeader
from simulator.invariants.at_rest import no_container_starts_with_the_map_of_another_job
from simulator.life import Life, Workload, live
from simulator.oracle import ANOTHER_END, calm, differences, end_of
from simulator.schedule import Schedule, Steady
from simulator.witness import Violation

NOT_STRUCK = "a fault has not struck"
# Whatever becomes of a job meanwhile, it ends as it would have.
LASTING_CONDITIONS = {"Created", "Completed", "Failed"}


# A create has no precondition: who has not seen yet that the other one has ended a try, and deleted what was
# made for it, may make some of that again. It is gone as soon as he has; that is checked in the end.
MADE_TOO_LATE = frozenset(
    {
        # A worker, where servers are deleted already.
        "servers_are_made_before_workers",
        # A pod, where the list of its peers is deleted.
        "what_names_lead_to_stands_before_the_pod",
        # The same, where the ports of its job are given back.
        "a_pod_on_the_host_network_keeps_to_its_own_ports",
        # The list of peers that are gone.
        "peers_are_told_every_endpoint_in_the_order_of_ranks",
    }
)
BESIDE_ANOTHER_LEADER = frozenset(
    {
        # What was made too late is not seen by the one who makes the next try.
        "tries_do_not_overlap",
        # If it is the list of peers, whoever starts before it is deleted reads it.
        "no_container_starts_with_the_map_of_another_job",
        # No create, but the same: two statuses are written at once, and nothing compares them. The scheduler
        # does, as pods declare their ports: they find no common node.
        "live_jobs_share_no_host_ports",
    }
)


@dataclass(frozen=True)
class Case:
    name: str
    workload: Workload
    faults: Faults = field(default_factory=Faults)
    schedule: Schedule = field(default_factory=Steady)
    strikes: int = 1
    """So many of its faults, at least, must have had an effect, or the case would be none."""

    def lived(self) -> Life:
        return live(self.workload, self.faults, self.schedule)

    @property
    def deeds(self) -> list[Deed]:
        return [DEEDS[one.deed] for one in self.faults.of(Interference)]

    @property
    def waived(self) -> frozenset[str]:
        """Names of invariants that need not hold: because of deeds, or of who else leads."""
        beside = BESIDE_ANOTHER_LEADER if self.faults.of(SecondLeader) else frozenset()
        return frozenset[str]().union(beside, *(deed.waives for deed in self.deeds))

    @property
    def ends_before_all_is_made(self) -> bool:
        """A deadline does not wait until what is refused is let in."""
        return self.workload.has_deadline and bool(self.faults.of(RefusedFor))


@dataclass(frozen=True)
class Verdict:
    case: str
    writes: int = 0
    struck: int = 0
    """So many of its faults had an effect."""
    broken: str = ""
    """In a word. Empty: all is well."""


def tried(case: Case) -> Verdict:
    """An exception in one case is a failure of that case, and of no other."""
    try:
        life = case.lived()
        return Verdict(case.name, len(life.witness.writes), len(life.witness.struck), broken_in(life, case))
    except Exception as error:  # noqa: BLE001 (whatever it is, it is this case's)
        return Verdict(case.name, broken=type(innermost(error)).__name__)


def innermost(error: BaseException) -> BaseException:
    """Of several that have failed together, the first says more than that there are several."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def broken_in(life: Life, case: Case) -> str:
    """The first invariant, by its name; or that the end is another; or that it was no case at all."""
    if violations := violations_in(life, case):
        return violations[0].invariant.__name__
    if len(life.witness.struck) < case.strikes:
        return NOT_STRUCK
    return ANOTHER_END if any(different(life, case)) else ""


def violations_in(life: Life, case: Case) -> list[Violation]:
    late = MADE_TOO_LATE if case.faults.of(SecondLeader) else frozenset[str]()
    return [
        one
        for one in life.witness.violations
        if one.invariant.__name__ not in case.waived
        and not (one.is_for_an_old_try and one.invariant.__name__ in late)
    ]


def different(life: Life, case: Case) -> Iterable[str]:
    """In the end, from that of the undisturbed life, but for what was done to the job."""
    if any(deed.ends_it for deed in case.deeds):
        return [f"{name} is left" for name in life.jobs if name == life.workload.name]
    found, wanted = (
        {name: _sorted(_without(one, {*_names_but(name, life, case)})) for name, one in end.items()}
        for end in (end_of(life), calm(life.workload.without_tries(broken_off_in(life))).end)
    )
    if case.ends_before_all_is_made:
        return differences(_reasons(found), _reasons(wanted))
    costs = {called(deed.to) for deed in case.deeds if deed.costs}
    # What has lost its labels is left behind, until its job goes.
    left = costs - wanted.keys()
    return differences(
        {name: one for name, one in found.items() if name not in left},
        {name: one for name, one in wanted.items() if name in found or name not in costs},
    )


def _reasons(end: Manifest) -> Manifest:
    """Why each job ended, without who is to blame."""
    jobs = {name: one["status"] for name, one in end.items() if name.startswith(PADDLE_JOBS.plural)}
    return {
        name: {"phase": one["phase"], "reason": one.get("failure", {}).get("reason")}
        for name, one in jobs.items()
    }


def _names_but(name: str, life: Life, case: Case) -> Iterator[str]:
    """Of fields of the object of that name."""
    but = [deed.but for deed in case.deeds]
    if _has_read_a_wrong_list(life) or any(life.history.objects.given_up.values()):
        # Who has, or gives its ports to another job, begins anew.
        but.append(TRIES)
    for fields_but in but:
        yield from fields_but.get(name, ())
        yield from fields_but.get("", ())
    for deed in case.deeds:
        # It is stopped or deleted if nothing else goes wrong; but nobody tries again what is out of sight.
        if deed.waives >= OUT_OF_SIGHT and name == called(deed.to) and len(case.faults.all) > 1:
            yield "status"
    if case.faults.of(SecondLeader) and not case.schedule.is_calm and name.startswith(PADDLE_JOBS.plural):
        # Who has seen less says less about it.
        yield from ("node", "message", "conditions")


def _has_read_a_wrong_list(life: Life) -> bool:
    return any(
        one.invariant is no_container_starts_with_the_map_of_another_job for one in life.witness.violations
    )


def broken_off_in(life: Life) -> frozenset[int]:
    """Tries that the operator broke off because somebody had read a list that another leader made too late.

    How their pods were to end, by the workload, they never did: a calm life that knows nothing of these
    tries is the one that this life is to be measured by.
    """
    if not _has_read_a_wrong_list(life):
        return frozenset()
    jobs = [change.entry.after for change in life.witness.changes if change.entry.resource == PADDLE_JOBS]
    failures = (
        job.get("status", {}).get("failure", {})
        for job in jobs
        if job is not None and job["metadata"]["name"] == life.workload.name
    )
    return frozenset(one.get("attempt", 0) for one in failures if one.get("reason") == ADDRESS_CHANGED)


def _without(part: Any, names: set[str]) -> Any:
    """Also in all parts of it."""
    if isinstance(part, list):
        return [_without(one, names) for one in part]
    if not isinstance(part, dict):
        return part
    left = {name: _without(one, names) for name, one in part.items() if name not in names}
    if "conditions" in part and "conditions" in names:
        left["conditions"] = _in_words(part["conditions"])
    return left


def _in_words(conditions: list[Manifest]) -> list[Manifest]:
    lasting = [one for one in conditions if one["type"] in LASTING_CONDITIONS]
    return [{"type": one["type"], "status": one["status"]} for one in lasting]


def _sorted(part: Any) -> Any:
    """In which order conditions came does not matter."""
    if isinstance(part, list):
        return sorted(
            map(_sorted, part), key=lambda one: one.get("type", "") if isinstance(one, dict) else ""
        )
    return {name: _sorted(one) for name, one in part.items()} if isinstance(part, dict) else part
