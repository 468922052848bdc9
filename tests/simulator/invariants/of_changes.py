"""What must hold of the store after every change, whoever made it. Numbers: rules.py."""

from collections import Counter

from paddle_operator.api.meta import Manifest
from paddle_operator.api.names import (
    CREATED,
    FAILED,
    LABEL_INDEX,
    LABEL_ROLE,
    RESTARTING,
    RUNNING,
    SUSPENDED,
    pod_name,
)
from paddle_operator.api.paddlejob import Role
from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS
from paddle_operator.paddlejob.ranks import from_text
from simulator.history import FINAL, attempt_of, gives_way, owner_of, trains, variables_of
from simulator.witness import Change

USUAL_FAILURES_IN_PLACE, USUAL_DISRUPTIONS = 6, 3
OUR_CONDITIONS = {CREATED, RUNNING, RESTARTING, SUSPENDED, *FINAL}


def a_slot_has_one_live_pod(change: Change) -> bool:
    """1: at most one live owned pod per slot, whatever it is called."""
    if change.entry.resource != PODS:
        return True
    slots = Counter(
        (owner_of(pod), variables_of(pod)["TRAINING_ROLE"], variables_of(pod)["PADDLE_TRAINER_ID"])
        for (kind, _), pod in change.objects.items()
        if kind == PODS and trains(pod) and "deletionTimestamp" not in pod["metadata"]
    )
    return all(count == 1 for count in slots.values())


def a_pod_is_named_after_its_slot(change: Change) -> bool:
    """1 and 8: a pod is called f(job name, role, index) and nothing else, and its rank is the index.

    Of pods that we make: what others write on them afterwards is their affair.
    """
    pod = change.entry.after
    if change.entry.resource != PODS or pod is None or change.entry.before is not None:
        return True
    if change.request is None:
        return True
    owner, labels = pod["metadata"]["ownerReferences"][0], pod["metadata"]["labels"]
    expected = pod_name(owner["name"], labels[LABEL_ROLE], int(labels[LABEL_INDEX]))
    named, rank = pod["metadata"]["name"] == expected, variables_of(pod)["PADDLE_TRAINER_ID"]
    return bool(named and rank == labels[LABEL_INDEX])


def completed_and_failed_are_final(change: Change) -> bool:
    """4: Completed and Failed are absorbing."""
    before, after = _statuses(change)
    was, is_now = _final_conditions(before), _final_conditions(after)
    return before.get("phase") not in FINAL or (after["phase"] == before["phase"] and was == is_now)


def times_are_written_once(change: Change) -> bool:
    """4: startTime and completionTime are written once; startTime <= completionTime."""
    before, after = _statuses(change)
    kept = all(before.get(name) in {None, after.get(name)} for name in ("startTime", "completionTime"))
    return kept and after.get("startTime", "") <= after.get("completionTime", "9999")


def the_observed_generation_never_goes_down(change: Change) -> bool:
    """5: observedGeneration never goes down, and names no generation that never was."""
    before, after = _statuses(change)
    newest = (change.entry.after or {"metadata": {}})["metadata"].get("generation", 0)
    return before.get("observedGeneration", 0) <= after.get("observedGeneration", 0) <= newest or not after


def a_condition_moves_its_time_with_its_status(change: Change) -> bool:
    """5: one condition per type; lastTransitionTime moves only when status moves."""
    before, after = (_conditions(status) for status in _statuses(change))
    same = [kind for kind in before if kind in after and before[kind]["status"] == after[kind]["status"]]
    moved = [
        kind
        for kind in same
        if before[kind].get("lastTransitionTime") != after[kind].get("lastTransitionTime")
    ]
    return not moved and len(after) == len(_statuses(change)[1].get("conditions", ()))


def what_has_finished_stays_counted(change: Change) -> bool:
    """6: counters of finished pods never go down inside one attempt."""
    before, after = _statuses(change)
    if not after:
        return True
    return before.get("attempt") != after.get("attempt") or all(
        _stays_counted(*(status.get(role, {}) for status in _statuses(change))) for role in Role
    )


def _stays_counted(before: Manifest, after: Manifest) -> bool:
    counted = all(before.get(name, 0) <= after.get(name, 0) for name in ("succeeded", "failed"))
    ranks = [from_text(role.get("succeededRanks", ""), below=6000) for role in (before, after)]
    return counted and ranks[0] <= ranks[1]


def a_try_is_counted_once(change: Change) -> bool:
    """7: a new try begins with one more failure or disruption, or because the job is or was suspended.

    Who was restarted in place until then has failed once. Who gives its ports to an older job has not failed.
    """
    before, after = _statuses(change)
    tries = after.get("attempt", 0) - before.get("attempt", 0)
    restarts, failures, disruptions = (
        after.get(name, 0) - before.get(name, 0) for name in ("restarts", "failures", "disruptions")
    )
    if tries == 0:
        is_over = after.get("phase") == FAILED and failures + disruptions <= 1
        return restarts == 0 and (failures == disruptions == 0 or is_over)
    if after["phase"] == SUSPENDED or after.get("resumeTime") != before.get("resumeTime"):
        return (tries, restarts, disruptions) == (1, 0, 0) and failures in {0, 1}
    if gives_way(change.entry, change.objects):
        return (tries, restarts, failures, disruptions) == (1, 0, 0, 0)
    return (tries, restarts, failures + disruptions) == (1, 1, 1)


def no_limit_is_exceeded(change: Change) -> bool:
    """7: attempts <= limit + 1; one more than may be, and the job has failed."""
    _, status = _statuses(change)
    if not status:
        return True
    spec = (change.entry.after or {})["spec"]
    policy, one_more = spec.get("runPolicy", {}), status.get("phase") == FAILED
    templates = [spec[role]["template"]["spec"] for role in Role if role in spec]
    in_place = any(template.get("restartPolicy") == "OnFailure" for template in templates)
    failures = policy.get("backoffLimit", USUAL_FAILURES_IN_PLACE if in_place else 0)
    disruptions = policy.get("maxDisruptions", USUAL_DISRUPTIONS)
    return bool(
        status.get("failures", 0) <= failures + one_more
        and status.get("disruptions", 0) <= disruptions + one_more
    )


def tries_do_not_overlap(change: Change) -> bool:
    """7 and 8: nothing of a try is made while a pod or the list of peers of an older one is there."""
    made = change.entry.after
    if change.entry.before is not None or made is None or change.entry.resource not in {PODS, CONFIG_MAPS}:
        return True
    older = [
        one
        for (kind, _), one in change.objects.items()
        if kind in {PODS, CONFIG_MAPS} and owner_of(one) and owner_of(one) == owner_of(made)
    ]
    ours = [one for one in older if "paddlepaddle.org/attempt" in one["metadata"].get("labels", {})]
    return all(attempt_of(one) == attempt_of(made) for one in ours)


def a_status_names_only_pods_of_its_job(change: Change) -> bool:
    """3 and 24: what a job lists as its pods, it owns or has owned."""
    _, status = _statuses(change)
    named = {one["uid"] for role in Role for one in status.get(role, {}).get("refs", ())}
    if not named:
        return True
    uid = (change.entry.after or {})["metadata"]["uid"]
    return all(change.objects.owners.get(pod) == uid for pod in named)


def conditions_of_others_are_kept(change: Change) -> bool:
    """17: foreign conditions are never written."""
    before, after = (_conditions(status) for status in _statuses(change))
    foreign = {kind: one for kind, one in before.items() if kind not in OUR_CONDITIONS}
    return change.request is None or foreign.items() <= after.items()


def we_hold_nobody_back(change: Change) -> bool:
    """20: a finalizer only if there is something to undo; there is nothing. An older operator's is let go."""
    document = change.entry.after
    is_ours = change.request is not None
    return document is None or not is_ours or not document["metadata"].get("finalizers")


OF_A_CHANGE = (
    a_slot_has_one_live_pod,
    a_pod_is_named_after_its_slot,
    completed_and_failed_are_final,
    times_are_written_once,
    the_observed_generation_never_goes_down,
    a_condition_moves_its_time_with_its_status,
    what_has_finished_stays_counted,
    a_try_is_counted_once,
    no_limit_is_exceeded,
    tries_do_not_overlap,
    a_status_names_only_pods_of_its_job,
    conditions_of_others_are_kept,
    we_hold_nobody_back,
)


def _statuses(change: Change) -> tuple[Manifest, Manifest]:
    """Of a job that is changed, before and after; empty for everything else."""
    before, after = change.entry.before, change.entry.after
    if change.entry.resource != PADDLE_JOBS or before is None or after is None:
        return {}, {}
    return before.get("status", {}), after.get("status", {})


def _conditions(status: Manifest) -> dict[str, Manifest]:
    return {condition["type"]: condition for condition in status.get("conditions", ())}


def _final_conditions(status: Manifest) -> dict[str, str]:
    return {kind: one["status"] for kind, one in _conditions(status).items() if kind in FINAL}
