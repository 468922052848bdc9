"""The barrier between two tries: what is left of an earlier one goes, and nothing new is made before that.

A pod whose node does not answer stays Terminating for ever: only its kubelet could say that its processes
have ended. That is said; and where the job asks for it (forceDeleteAfterSeconds), it is deleted by force.
"""

from datetime import datetime, timedelta

from paddle_operator.api.core import ConfigMap, Pod, Service
from paddle_operator.api.meta import KubeObject
from paddle_operator.api.names import LABEL_JOB_UID
from paddle_operator.api.resources import CONFIG_MAPS, PODS, SERVICES, AnyResource, Target
from paddle_operator.plan import Delete, Step

from .observed import Observed

# A kubelet may need so long after a pod's grace period: volumes are slow to go, too.
OVERDUE_AFTER = timedelta(seconds=30)
HIDDEN_GOES_AFTER = timedelta(seconds=2)
_KINDS: dict[type, AnyResource] = {Pod: PODS, Service: SERVICES, ConfigMap: CONFIG_MAPS}


def sweep(seen: Observed) -> Step:
    left = [one for one in seen.leftovers if not one.metadata.terminating]
    forced = [
        Delete(Target.of(PODS, one), force=True)
        for one in _going(seen)
        if (due := _force_at(seen, one)) is not None and due <= seen.now
    ]
    return (*(Delete(Target.of(_KINDS[type(one)], one)) for one in left), *forced)


def next_look(seen: Observed) -> datetime | None:
    """When something that is on its way out is overdue, may be deleted by force, or goes unseen."""
    going = [*_going(seen), *(pod for pod in seen.own.values() if pod.metadata.terminating)]
    times = [due + OVERDUE_AFTER for one in going if (due := one.metadata.deletion_timestamp)]
    times += [due for one in going if (due := _force_at(seen, one)) is not None]
    times += [seen.now + _patience(seen, one) for one in seen.leftovers if _is_hidden(one)]
    return min((time for time in times if time > seen.now), default=None)


def _patience(seen: Observed, hidden: KubeObject) -> timedelta:
    """The longer it is going, the less often it is looked for: a finalizer may hold it for days."""
    since = hidden.metadata.deletion_timestamp or seen.now
    return max(HIDDEN_GOES_AFTER, (seen.now - since) / 4)


def _is_hidden(thing: KubeObject) -> bool:
    """A config map is found by its name, also without our label; but then no watch shows that it goes."""
    return isinstance(thing, ConfigMap) and LABEL_JOB_UID not in thing.metadata.labels


def is_overdue(thing: KubeObject, now: datetime) -> bool:
    due = thing.metadata.deletion_timestamp
    return due is not None and due + OVERDUE_AFTER <= now


def stuck_in_words(seen: Observed) -> str:
    """What the barrier waits for in vain; empty if it does not."""
    stuck = [one for one in _going(seen) if is_overdue(one, seen.now)]
    if not stuck:
        return ""
    first, more = stuck[0], f" and {len(stuck) - 1} more" if len(stuck) > 1 else ""
    what = f"{type(first).__name__.lower()} {first.metadata.name}{more} should be gone and is not"
    if first.metadata.finalizers:
        held = first.metadata.finalizers[0]
        return f"{what}, because of its finalizer {held}; whoever put that there has to take it off"
    if not isinstance(first, Pod):
        return what
    remedy = (
        "it will be deleted by force"
        if seen.job.run_policy.force_delete_after_seconds is not None
        else f"once that node is surely down: kubectl delete pod {first.metadata.name} --force "
        "--grace-period=0, or set runPolicy.forceDeleteAfterSeconds"
    )
    return f"{what}: node {first.spec.node_name} has not confirmed that its processes have ended; {remedy}"


def _going(seen: Observed) -> list[Pod | ConfigMap | Service]:
    """On its way out: what is left of earlier tries, and the pods of a job that has ended."""
    ended = seen.own.values() if seen.job.status.finished else ()
    return [one for one in (*seen.leftovers, *ended) if one.metadata.terminating]


def _force_at(seen: Observed, thing: KubeObject) -> datetime | None:
    """None: never. Against a finalizer force does not help."""
    seconds, due = seen.job.run_policy.force_delete_after_seconds, thing.metadata.deletion_timestamp
    if not isinstance(thing, Pod) or thing.metadata.finalizers or seconds is None or due is None:
        return None
    return due + timedelta(seconds=seconds)
