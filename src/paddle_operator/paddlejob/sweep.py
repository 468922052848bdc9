"""The barrier between two tries: what is left of an earlier one goes, and nothing new is made before that.

A pod whose node does not answer stays Terminating for ever: only its kubelet could say that its processes
have ended. That is said; and where the job asks for it (forceDeleteAfterSeconds), it is deleted by force.
"""

import re
from datetime import datetime, timedelta

from paddle_operator.api.core import ConfigMap, Pod, Service
from paddle_operator.api.names import LABEL_ATTEMPT
from paddle_operator.api.paddlejob import Role
from paddle_operator.api.resources import CONFIG_MAPS, PODS, SERVICES, AnyResource, Target
from paddle_operator.plan import Delete, Step

from .config_map import tells_wrong_peers
from .observed import Observed

# A kubelet may need so long after a pod's grace period: volumes are slow to go, too.
OVERDUE_AFTER = timedelta(seconds=30)


def leftovers(seen: Observed) -> tuple[Pod | ConfigMap | Service, ...]:
    """Of earlier tries; and a list of peers that is wrong, as long as nobody has begun with it."""
    pods = [pod for pod in seen.all_pods if _is_left(seen, pod)]
    services = [one for one in seen.own_services if one.metadata.name not in seen.slots]
    found = seen.config_map
    is_ours = found is not None and found.metadata.controlled_by(seen.job.uid)
    is_old = is_ours and seen.own_config_map is None
    is_wrong = not seen.started and tells_wrong_peers(seen)
    return (*pods, *services, *((found,) if found is not None and (is_old or is_wrong) else ()))


def _is_left(seen: Observed, pod: Pod) -> bool:
    """A pod that names the job as its owner, but fills no slot that it ever had, is not ours to delete."""
    name = pod.metadata.name
    if name in seen.slots:
        return seen.attempt_of(pod) != seen.job.status.attempt
    slot = re.compile(rf"{re.escape(seen.job.metadata.name)}-({'|'.join(Role)})-\d+")
    return LABEL_ATTEMPT in pod.metadata.labels and bool(slot.fullmatch(name))


def sweep(seen: Observed) -> Step:
    deletes = [
        Delete(Target.of(_KINDS[type(one)], one)) for one in leftovers(seen) if not one.metadata.terminating
    ]
    forced = [
        Delete(Target.of(PODS, pod), force=True)
        for pod in _stuck(seen)
        if (due := _force_at(seen, pod)) is not None and due <= seen.now
    ]
    return (*deletes, *forced)


_KINDS: dict[type, AnyResource] = {Pod: PODS, Service: SERVICES, ConfigMap: CONFIG_MAPS}


def next_look(seen: Observed) -> datetime | None:
    """When a pod that is on its way out is overdue, or may be deleted by force."""
    going = [pod for pod in seen.all_pods if pod.metadata.terminating]
    times = [due + OVERDUE_AFTER for pod in going if (due := pod.metadata.deletion_timestamp)]
    times += [due for pod in going if (due := _force_at(seen, pod)) is not None]
    return min((time for time in times if time > seen.now), default=None)


def is_overdue(pod: Pod, now: datetime) -> bool:
    due = pod.metadata.deletion_timestamp
    return due is not None and due + OVERDUE_AFTER <= now


def stuck_in_words(seen: Observed) -> str:
    """What the barrier waits for in vain; empty if it does not."""
    stuck = [pod for pod in _stuck(seen) if is_overdue(pod, seen.now)]
    if not stuck:
        return ""
    first, more = stuck[0], f" and {len(stuck) - 1} more" if len(stuck) > 1 else ""
    if first.metadata.finalizers:
        return (
            f"pod {first.metadata.name}{more} should be gone and is not, because of its finalizer "
            f"{first.metadata.finalizers[0]}; whoever put that there has to take it off"
        )
    remedy = (
        "it will be deleted by force"
        if seen.job.run_policy.force_delete_after_seconds is not None
        else f"once that node is surely down: kubectl delete pod {first.metadata.name} --force "
        "--grace-period=0, or set runPolicy.forceDeleteAfterSeconds"
    )
    return (
        f"pod {first.metadata.name}{more} should be gone and is not, because node {first.spec.node_name} "
        f"does not answer; {remedy}"
    )


def _stuck(seen: Observed) -> list[Pod]:
    """On their way out: of earlier tries; and all of a job that has ended."""
    going = [pod for pod in seen.all_pods if pod.metadata.terminating]
    return [pod for pod in going if seen.job.status.finished or _is_left(seen, pod)]


def _force_at(seen: Observed, pod: Pod) -> datetime | None:
    seconds, due = seen.job.run_policy.force_delete_after_seconds, pod.metadata.deletion_timestamp
    if pod.metadata.finalizers:
        return None  # force does not help against those
    return due + timedelta(seconds=seconds) if seconds is not None and due is not None else None
