"""What must hold when nothing moves any more. Numbers: reliability-performance.md 3."""

from collections import Counter
from typing import TYPE_CHECKING

from invariants_of_requests import CHILDREN, SECRET
from simulated_history import intranet_of, owner_of, slots_of, trains

from paddle_operator.api.meta import Manifest
from paddle_operator.api.paddlejob import CleanPodPolicy, PaddleJob
from paddle_operator.api.resources import EVENTS, PODS, SERVICES

if TYPE_CHECKING:
    from simulated import Life

FINAL = {"Completed", "Failed"}
COUNTERS = ("pending", "starting", "running", "failed", "succeeded", "unknown")
# Not more often than that does the operator look whether an obstacle is gone.
LOOK_SECONDS = 10.0


def it_comes_to_rest(life: "Life") -> bool:
    """14 and 25: at the fixed point nothing is asked and nothing is written."""
    return life.rested


def no_child_outlives_its_job(life: "Life") -> bool:
    """2 and 20: a child that is made too late is gone within the liveness bound."""
    alive = {document["metadata"]["uid"] for document in life.history.objects.values()}
    children = [one for (kind, _), one in life.history.objects.items() if kind in CHILDREN and owner_of(one)]
    return all(owner_of(child) in alive for child in children)


def everybody_is_counted(life: "Life") -> bool:
    """6: at the end succeeded + failed + active = slots."""
    return all(
        sum(job["status"].get(role, {}).get(name, 0) for name in COUNTERS) == slots
        for job in life.jobs.values()
        for role, slots in Counter(role for role, _ in slots_of(job)).items()
    )


def all_pods_of_a_job_were_told_the_same(life: "Life") -> bool:
    """8: all pods of one attempt carry the same endpoint list."""
    told = {(owner_of(start.pod), str(start.told)) for start in life.kubelet.started.values()}
    return len(told) == len({owner for owner, _ in told})


def no_container_starts_with_the_map_of_another_job(life: "Life") -> bool:
    """8: the list of a namesake that is dead, or of a stranger, would lead astray."""
    starts = life.kubelet.started.values()
    return all(owner_of(start.pod) == owner_of(start.config_map) for start in starts)


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
    if job["status"].get("phase") in cleaned.get(policy, {"Completed"}):
        return not pods and not own[SERVICES]
    ended = all(pod["status"]["phase"] in {"Succeeded", "Failed"} for pod in pods)
    services = len(slots_of(job)) if intranet_of(job) == "Service" else 0
    return ended and len(pods) == len(slots_of(job)) and len(own[SERVICES]) == services


def a_job_costs_few_requests(life: "Life") -> bool:
    """15: at most 2N + 15 requests a job, one more on the host network, and one delete for each child that
    has a name of its own; again after each fault."""
    asked = Counter(
        (request.turn.job.uid, request.verb == "delete")
        for request in life.witness.requests
        if request.turn is not None
    )
    most = {}
    for turn in life.witness.turns:
        pods = sum(role.replicas for role in turn.job.roles.values())
        most[turn.job.uid, False] = 2 * pods + 15 + turn.job.on_host_network
        most[turn.job.uid, True] = _children(turn.job) - 1
    return life.faults.lasting or all(
        count <= most[which] * (1 + life.witness.faults) for which, count in asked.items()
    )


def _children(job: PaddleJob) -> int:
    """Pods, their services, and the config map."""
    pods = sum(role.replicas for role in job.roles.values())
    return 1 + pods * (2 if job.found_by_name else 1)


def events_are_few(life: "Life") -> bool:
    """16: at most 10 events a job; after a fault some may be told again."""
    told = Counter(one["involvedObject"]["uid"] for one in life.history.of_kind(EVENTS).values())
    return all(count <= 10 * (1 + life.witness.faults) for count in told.values())


def nothing_fails_unforeseen(life: "Life") -> bool:
    """21: never an uncaught exception."""
    return not [line for line in life.log if line["log_level"] in {"error", "critical"}]


def no_secret_is_logged(life: "Life") -> bool:
    """22: no secret byte in logs."""
    return not [line for line in life.log if SECRET in str(line)]


def a_goal_is_reached_in_few_turns(life: "Life") -> bool:
    """25: desired state in 3 * children + 20 reconciles, again after each fault; and a look now and then."""
    turns = Counter(turn.job.uid for turn in life.witness.turns)
    children = {turn.job.uid: _children(turn.job) for turn in life.witness.turns}
    looks = life.witness.changed_at[-1] / LOOK_SECONDS
    return life.faults.lasting or all(
        count <= (3 * children[uid] + 20) * (1 + life.witness.faults) + looks for uid, count in turns.items()
    )


AT_REST = (
    it_comes_to_rest,
    no_child_outlives_its_job,
    everybody_is_counted,
    all_pods_of_a_job_were_told_the_same,
    no_container_starts_with_the_map_of_another_job,
    children_are_cleaned_up_as_asked,
    a_job_costs_few_requests,
    events_are_few,
    nothing_fails_unforeseen,
    no_secret_is_logged,
    a_goal_is_reached_in_few_turns,
)
