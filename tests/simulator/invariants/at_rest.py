"""What must hold when nothing moves any more. Numbers: rules.py."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from paddle_operator.api.meta import Manifest
from paddle_operator.api.names import ACTIVE_DEADLINE, POD_LOST, START_DEADLINE, pod_name
from paddle_operator.api.paddlejob import CleanPodPolicy, PaddleJob
from paddle_operator.api.resources import EVENTS, PADDLE_JOBS, PODS, SERVICES, AnyResource
from paddle_operator.cluster import Conflict, NotFound
from paddle_operator.runtime.events import BURST
from paddle_operator.runtime.informer import SILENCE_SECONDS
from simulator.faults import (
    BrokenWatch,
    CrashAt,
    HeldBack,
    Interference,
    LateChange,
    RefusedFor,
    RefusedWrite,
    SecondLeader,
    StaleList,
)
from simulator.history import FINAL, attempt_of, intranet_of, owner_of, slots_of, trains
from simulator.invariants.of_requests import CHILDREN, SECRET
from simulator.witness import Request

if TYPE_CHECKING:
    from simulator.life import Life

COUNTERS = ("pending", "starting", "running", "failed", "succeeded", "unknown")
# Not more often than that does the operator look whether an obstacle is gone.
LOOK_SECONDS = 10.0
# Times in objects are whole seconds.
SLACK = 2.0
# The refused one, and what is asked before it in the same turn.
REQUESTS_AROUND_A_REFUSAL = 3
# To look, to ask, to write, to be told: so many may each take their time until a deadline is noticed.
STEPS_OF_A_TURN = 6
STALL_SECONDS = 30.0
# Until a new process has asked for everything, too.
RESTART_SECONDS = 2.0
LONGEST_BACKOFF_SECONDS = 60.0
# A refused write is tried again, an edit is taken back.
FEW_SECONDS = 5.0
# Whoever is told that an object has moved on, or is gone, waits to be shown how, and then lists it.
CONFLICT_SECONDS = 12.0
TURNS_TO_AN_END = 3


def it_comes_to_rest(life: "Life") -> bool:
    """14 and 25: at the fixed point nothing is asked and nothing is written."""
    return life.rested


def no_child_outlives_its_job(life: "Life") -> bool:
    """2 and 20: a child that is made too late is gone within the liveness bound; but not from a lost node."""
    alive = {document["metadata"]["uid"] for document in life.history.objects.values()}
    children = [
        one
        for (kind, _), one in life.history.objects.items()
        if kind in CHILDREN and owner_of(one) and one["metadata"]["uid"] not in life.kubelet.lost
    ]
    return all(owner_of(child) in alive for child in children)


def everybody_is_counted(life: "Life") -> bool:
    """6: at the end succeeded + failed + active = slots, but for pods that others have deleted."""
    return all(
        sum(job["status"].get(role, {}).get(name, 0) for name in COUNTERS) == slots
        for job in life.jobs.values()
        if job["status"].get("phase") in FINAL and not _has_lost_a_pod(job)
        for role, slots in _slots_to_fill(life, job).items()
    )


def _slots_to_fill(life: "Life", job: Manifest) -> Counter[str]:
    """By role. A deadline may pass before all pods are made."""
    slots = slots_of(job)
    if job["status"].get("failure", {}).get("reason") in {ACTIVE_DEADLINE, START_DEADLINE}:
        entries = [change.entry for change in life.witness.changes if change.entry.resource == PODS]
        this_try = (job["metadata"]["uid"], job["status"].get("attempt", 0))
        pods = [entry.after for entry in entries if entry.after is not None]
        made = {one["metadata"]["name"] for one in pods if (owner_of(one), attempt_of(one)) == this_try}
        slots = [slot for slot in slots if pod_name(job["metadata"]["name"], *slot) in made]
    return Counter(role for role, _ in slots)


def all_pods_of_a_job_were_told_the_same(life: "Life") -> bool:
    """8: all pods of one attempt carry the same endpoint list.

    A second leader may make pods of a try that is over: they find each other at new addresses, and go.
    """
    last = {job["metadata"]["uid"]: job["status"].get("attempt", 0) for job in life.jobs.values()}
    are_two = bool(life.faults.of(SecondLeader))
    told = {
        (owner_of(start.pod), start.attempt, str(start.told))
        for start in life.kubelet.started.values()
        if not (are_two and start.attempt < last.get(owner_of(start.pod), 0))
    }
    return len(told) == len({(owner, attempt) for owner, attempt, _ in told})


def no_container_starts_with_the_map_of_another_job(life: "Life") -> bool:
    """8: the list of a namesake that is dead, of a stranger, or of an earlier try, would lead astray.

    A second leader may be late with a pod of a try that is over, and that has to go: it finds a later list.
    """
    are_two = bool(life.faults.of(SecondLeader))
    return all(
        owner_of(start.pod) == owner_of(start.config_map)
        and (
            start.attempt == attempt_of(start.config_map)
            or (are_two and start.attempt < attempt_of(start.config_map))
        )
        for start in life.kubelet.started.values()
    )


def children_are_cleaned_up_as_asked(life: "Life") -> bool:
    """11: Always: no pods; OnCompletion and OnFailure as named; otherwise all are kept, and none runs.

    Services share the fate of their pods.
    """
    return all(_is_cleaned_up(life, job) for job in life.jobs.values())


def _is_cleaned_up(life: "Life", job: Manifest) -> bool:
    cleaned = {
        CleanPodPolicy.ALWAYS: FINAL,
        CleanPodPolicy.NEVER: set(),
        CleanPodPolicy.ON_FAILURE: {"Failed"},
    }
    policy = CleanPodPolicy(job["spec"].get("cleanPodPolicy", ""))
    own = {
        kind: [one for one in life.history.of_kind(kind).values() if owner_of(one) == job["metadata"]["uid"]]
        for kind in (PODS, SERVICES)
    }
    pods = [pod for pod in own[PODS] if trains(pod)]
    if job["status"].get("phase") == "Suspended":
        return all(pod["metadata"]["uid"] in life.kubelet.lost for pod in pods)
    if job["status"].get("phase") not in FINAL:
        return True  # it waits for a node that is gone
    if job["status"].get("phase") in cleaned.get(policy, {"Completed"}):
        return not pods and not own[SERVICES]
    ended = all(pod["status"]["phase"] in {"Succeeded", "Failed"} for pod in pods)
    services = len(slots_of(job)) if intranet_of(job) == "Service" else 0
    kept = _slots_to_fill(life, job).total() - _has_lost_a_pod(job)
    pods_are_kept = kept - _taken_away(life, job, PODS) <= len(pods) <= kept
    services_are_kept = services - _taken_away(life, job, SERVICES) <= len(own[SERVICES]) <= services
    return ended and pods_are_kept and services_are_kept


def _taken_away(life: "Life", job: Manifest, kind: AnyResource) -> int:
    """Children that others have deleted."""
    deleted = [
        change.entry
        for change in life.witness.changes
        if change.entry.resource == kind and change.request is None and change.entry.before is not None
    ]
    return sum(
        owner_of(entry.before) == job["metadata"]["uid"]
        and "deletionTimestamp" not in entry.before["metadata"]
        and (entry.after is None or "deletionTimestamp" in entry.after["metadata"])
        for entry in deleted
        if entry.before is not None
    )


def _has_lost_a_pod(job: Manifest) -> bool:
    return bool(job["status"].get("failure", {}).get("reason") == POD_LOST)


def a_job_costs_few_requests(life: "Life") -> bool:
    """15: at most 2N + 15 requests a try, one more on the host network, five more if it was suspended,
    four if it waits for a namesake to be gone, and one to clean up each child; again after each fault, and
    three for each refusal; three times as many if everybody takes his time."""
    # Of two leaders neither pays for the other; but one that is slow finds much that is done already.
    are_two = bool(life.faults.of(SecondLeader))
    often = (1 + len(life.witness.struck) + are_two) * _slowness(life)
    refused = REQUESTS_AROUND_A_REFUSAL * len(life.witness.refusals)
    asked = Counter(
        (request.turn.job.uid, _cleans_up(request), id(request.process) if are_two else 0)
        for request in life.witness.requests
        if request.turn is not None
    )
    most: Counter[tuple[str, bool]] = Counter()
    for turn in life.witness.turns:
        pods = sum(role.replicas for role in turn.job.roles.values())
        tries = 1 + turn.job.status.attempt
        anew = 5 if turn.job.status.resume_time is not None or turn.job.run_policy.suspend else 0
        anew += 4 if life.workload.recreation is not None else 0
        makes = tries * (2 * pods + 15 + turn.job.on_host_network + anew)
        most |= Counter({(turn.job.uid, False): makes, (turn.job.uid, True): tries * _children(turn.job)})
    return all(
        count <= most[uid, cleans_up] * often + refused for (uid, cleans_up, _), count in asked.items()
    )


def _slowness(life: "Life") -> int:
    """Who is slow is told of what others do one by one, and looks more often."""
    return 1 if life.schedule.is_calm else 3


def _cleans_up(request: Request) -> bool:
    """Deletes it; or ends a pod that is kept."""
    stops = request.verb == "patch" and request.resource == PODS and "spec" in request.body
    return request.verb == "delete" or stops


def _children(job: PaddleJob) -> int:
    """Pods, their services, and the config map."""
    pods = sum(role.replicas for role in job.roles.values())
    return 1 + pods * (2 if job.found_by_name else 1)


def events_are_few(life: "Life") -> bool:
    """16: at most 10 events a job and 2 more a try; after a fault some may be told again.

    Two leaders may contradict each other, each within its own budget of events.
    """
    quarrel = 2 * BURST if life.faults.of(SecondLeader) else 0
    told = Counter(one["involvedObject"]["uid"] for one in life.history.of_kind(EVENTS).values())
    most = {turn.job.uid: 10 + 2 * turn.job.status.attempt for turn in life.witness.turns}
    return all(count <= most[uid] * (1 + len(life.witness.struck)) + quarrel for uid, count in told.items())


def nothing_happens_before_its_time(life: "Life") -> bool:
    """19: clocks that are set cause no early failure and no early delete; nor are deadlines forgotten."""
    # A request that is slow arrives later than what it says.
    slack = SLACK + (0.0 if life.schedule.is_calm else 2 * life.schedule.longest_step)
    return all(after - slack <= waited for after, waited in _timed(life))


def deadlines_are_kept(life: "Life") -> bool:
    """19: a deadline is noticed also if nothing else happens; later only by what a fault takes."""
    late = SLACK + _seconds_lost(life)
    late += STEPS_OF_A_TURN * life.schedule.longest_step + (0.0 if life.schedule.is_calm else STALL_SECONDS)
    return all(waited <= after + late for after, waited in _timed(life))


def _seconds_lost(life: "Life") -> float:
    moved_on = [error for _, error in life.witness.refusals if isinstance(error, (Conflict, NotFound))]
    return sum(map(_seconds_lost_by, life.witness.struck)) + CONFLICT_SECONDS * len(moved_on)


def _seconds_lost_by(fault: object) -> float:
    """Until a new process has looked, a watch is given up for silent, or a write is let in again."""
    match fault:
        case CrashAt():
            return RESTART_SECONDS
        case LateChange() | HeldBack() | BrokenWatch() | StaleList():
            return SILENCE_SECONDS
        case RefusedFor() if fault.resource is PADDLE_JOBS:
            return fault.until_seconds + LONGEST_BACKOFF_SECONDS
        case RefusedWrite() | RefusedFor() | Interference():
            return FEW_SECONDS
    return 0.0


def _timed(life: "Life") -> Iterator[tuple[float, float]]:
    """What was promised, and what it took, in true seconds: of deadlines that passed, and of the end."""
    times: dict[tuple[str, str], float] = {}
    for change in life.witness.changes:
        before, after = change.entry.before or {}, change.entry.after
        if change.entry.resource == PODS and after is not None:
            times.setdefault((owner_of(after), f"made for {attempt_of(after)}"), change.at)
        if change.entry.resource != PADDLE_JOBS or before.get("metadata", {}).get("generation") is None:
            continue
        uid = before["metadata"]["uid"]
        policy, status = before["spec"].get("runPolicy", {}), (after or before).get("status", {})
        by_us = after is None and change.request is not None
        if by_us and times.get((uid, "ended")) and "ttlSecondsAfterFinished" in policy:
            yield policy["ttlSecondsAfterFinished"], change.at - times[uid, "ended"]
        if status.get("startTime"):
            times.setdefault((uid, "started"), change.at)
        if status.get("phase") in FINAL and (uid, "ended") not in times:
            times[uid, "ended"] = change.at
            reason = status.get("failure", {}).get("reason")
            if reason == ACTIVE_DEADLINE:
                yield policy["activeDeadlineSeconds"], change.at - times[uid, "started"]
            if reason == START_DEADLINE:
                made_at = times.get((uid, f"made for {status.get('attempt', 0)}"), 0.0)
                yield policy["startDeadlineSeconds"], change.at - made_at


def the_end_is_told_soon(life: "Life") -> bool:
    """25: a job is called Completed when its last worker has ended; later only by what a fault takes."""
    late = SLACK + _seconds_lost(life)
    # Of pods, watches may show all that came before first.
    steps = TURNS_TO_AN_END * STEPS_OF_A_TURN + (0 if life.schedule.is_calm else life.witness.told[PODS])
    late += steps * life.schedule.longest_step
    return all(told - ended <= late for ended, told in _completions(life))


def _completions(life: "Life") -> Iterator[tuple[float, float]]:
    """Of each job that is called Completed: when its last worker ended, and when that was written."""
    ended: dict[str, float] = {}
    told: dict[str, float] = {}
    for change in life.witness.changes:
        before, after = change.entry.before or {}, change.entry.after or {}
        was, phase = (one.get("status", {}).get("phase") for one in (before, after))
        if was == phase:
            continue
        if change.entry.resource == PODS and phase == "Succeeded":
            ended[owner_of(after)] = change.at
        elif change.entry.resource == PADDLE_JOBS and phase == "Completed":
            told[after["metadata"]["uid"]] = change.at
    return ((ended[uid], at) for uid, at in told.items() if uid in ended)


def nothing_fails_unforeseen(life: "Life") -> bool:
    """21: never an uncaught exception."""
    return not [line for line in life.log if line["log_level"] in {"error", "critical"}]


def no_secret_is_logged(life: "Life") -> bool:
    """22: no secret byte in logs."""
    return not [line for line in life.log if SECRET in str(line)]


def a_goal_is_reached_in_few_turns(life: "Life") -> bool:
    """25: desired state in 3 * children + 20 reconciles a try, again after each fault; a look now and then,
    and after each refusal; three times as many if everybody takes his time."""
    turns = Counter(turn.job.uid for turn in life.witness.turns)
    most: Counter[str] = Counter()
    for turn in life.witness.turns:
        most |= Counter({turn.job.uid: (1 + turn.job.status.attempt) * (3 * _children(turn.job) + 20)})
    often = (1 + len(life.witness.struck)) * _slowness(life)
    looks = life.witness.changed_at[-1] / LOOK_SECONDS + len(life.witness.refusals)
    return all(count <= most[uid] * often + looks for uid, count in turns.items())


AT_REST = (
    it_comes_to_rest,
    no_child_outlives_its_job,
    everybody_is_counted,
    all_pods_of_a_job_were_told_the_same,
    no_container_starts_with_the_map_of_another_job,
    children_are_cleaned_up_as_asked,
    a_job_costs_few_requests,
    events_are_few,
    nothing_happens_before_its_time,
    deadlines_are_kept,
    the_end_is_told_soon,
    nothing_fails_unforeseen,
    no_secret_is_logged,
    a_goal_is_reached_in_few_turns,
)
