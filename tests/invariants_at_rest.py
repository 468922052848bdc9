"""What must hold when nothing moves any more. Numbers: reliability-performance.md 3."""

from collections import Counter
from typing import TYPE_CHECKING

from invariants_of_requests import CHILDREN, SECRET
from simulated_history import owner_of, trains

from paddle_operator.api.paddlejob import CleanPodPolicy
from paddle_operator.api.resources import EVENTS, PODS

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
    worker = life.job["status"].get("worker", {})
    counted: int = sum(worker.get(name, 0) for name in COUNTERS)
    return bool(counted == life.job["spec"]["worker"]["replicas"])


def all_pods_of_a_job_were_told_the_same(life: "Life") -> bool:
    """8: all pods of one attempt carry the same endpoint list, that of their own job."""
    starts = life.kubelet.started.values()
    own = all(owner_of(start.pod) == owner_of(start.config_map) for start in starts)
    told = {(owner_of(start.pod), start.peers) for start in starts}
    return own and len(told) == len({owner for owner, _ in told})


def pods_are_cleaned_up_as_asked(life: "Life") -> bool:
    """11: Always: no pods; OnCompletion and OnFailure as named; otherwise all are kept, and none runs."""
    spec, phase = life.job["spec"], life.job["status"].get("phase")
    cleaned = {
        CleanPodPolicy.ALWAYS: FINAL,
        CleanPodPolicy.NEVER: set(),
        CleanPodPolicy.ON_FAILURE: {"Failed"},
    }
    policy = CleanPodPolicy(spec.get("cleanPodPolicy", ""))
    own = [pod for pod in life.history.of_kind(PODS).values() if trains(pod)]
    if phase in cleaned.get(policy, {"Completed"}):
        return not own
    ended = [pod["status"]["phase"] in {"Succeeded", "Failed"} for pod in own]
    return all(ended) and len(own) == spec["worker"]["replicas"]


def a_job_costs_few_requests(life: "Life") -> bool:
    """15: at most 2N + 15 requests a job, and one delete for each child; again after each fault."""
    workers = life.job["spec"]["worker"]["replicas"]
    asked = Counter(
        (request.turn.job.uid, request.verb == "delete")
        for request in life.witness.requests
        if request.turn is not None
    )
    most = {False: 2 * workers + 15, True: workers}
    return life.faults.lasting or all(
        count <= most[deletes] * (1 + life.witness.faults) for (_, deletes), count in asked.items()
    )


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
    children = life.job["spec"]["worker"]["replicas"] + 1
    turns = Counter(turn.job.uid for turn in life.witness.turns)
    most = (3 * children + 20) * (1 + life.witness.faults) + life.witness.changed_at[-1] / LOOK_SECONDS
    return life.faults.lasting or all(count <= most for count in turns.values())


AT_REST = (
    it_comes_to_rest,
    no_child_outlives_its_job,
    everybody_is_counted,
    all_pods_of_a_job_were_told_the_same,
    pods_are_cleaned_up_as_asked,
    a_job_costs_few_requests,
    events_are_few,
    nothing_fails_unforeseen,
    no_secret_is_logged,
    a_goal_is_reached_in_few_turns,
)
