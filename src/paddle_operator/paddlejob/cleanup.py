"""What becomes of the pods when a job has ended: cleanPodPolicy."""

from paddle_operator.api.core import ENDED_PHASES, Pod
from paddle_operator.api.paddlejob import CleanPodPolicy, Phase
from paddle_operator.api.resources import PODS, SERVICES, Target
from paddle_operator.plan import Delete, Patch, Step

from .observed import Observed

_CLEANED_AFTER = {
    CleanPodPolicy.ALWAYS: {Phase.COMPLETED, Phase.FAILED},
    CleanPodPolicy.ON_COMPLETION: {Phase.COMPLETED},
    CleanPodPolicy.ON_FAILURE: {Phase.FAILED},
    CleanPodPolicy.NEVER: set[Phase](),
}
STOP_AFTER_SECONDS = 1


def clean_up(seen: Observed, end: Phase) -> Step:
    """Delete the pods and their services; where pods are kept, end those that still run.

    A finished job holds no GPU. And parameter servers would serve for ever: nobody but us ends them.
    """
    live = [pod for pod in seen.own.values() if not pod.metadata.terminating]
    if end in _CLEANED_AFTER[seen.job.spec.effective_clean_pod_policy]:
        pods = [Delete(Target.of(PODS, pod)) for pod in live]
        # Those of slots that the job has no more are swept.
        mine = [one for one in seen.own_services if one.metadata.name in seen.slots]
        services = [one for one in mine if not one.metadata.terminating]
        return (*pods, *(Delete(Target.of(SERVICES, service)) for service in services))
    return tuple(_stop(pod) for pod in live if _still_runs(pod))


def _still_runs(pod: Pod) -> bool:
    """Also for the sake of a side-car: the pod, not training, holds the node's resources."""
    ended = pod.status.phase in ENDED_PHASES
    return not ended and pod.spec.active_deadline_seconds != STOP_AFTER_SECONDS


def _stop(pod: Pod) -> Patch | Delete:
    """The kubelet ends a pod whose deadline has passed, and keeps the object and its log."""
    target = Target.of(PODS, pod)
    if not pod.spec.node_name:
        # No kubelet, no log, and it would take a place as soon as there is one; if it has none even now.
        return Delete(target, as_seen=True)
    return Patch(target, {"spec": {"activeDeadlineSeconds": STOP_AFTER_SECONDS}}, purpose="stop")
