"""Wake the kubelets once the config map is there.

A kubelet that found no config map tries again after 10 to 15 seconds and does not notice that the map has
come; but any change of the pod makes it look at once. So each pod gets a small annotation: 16 s become 3. The
first look after that can still fail (the node may not yet be allowed to read the new map): a pod that is
still stuck 3 s later is nudged again, three times at most; then the kubelet's own retry must do.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from paddle_operator.api.core import Pod
from paddle_operator.api.names import ANNOTATION_NUDGE
from paddle_operator.api.resources import PODS, Target
from paddle_operator.plan import Patch

from .observed import Observed
from .verdicts import has_started

AGAIN_AFTER = timedelta(seconds=3)
MOST_NUDGES = 4


def nudges(seen: Observed) -> tuple[Patch, ...]:
    return tuple(
        Patch(
            Target.of(PODS, pod),
            {"metadata": {"annotations": {ANNOTATION_NUDGE: f"{count + 1} {seen.now.isoformat()}"}}},
            purpose="nudge",
        )
        for pod, count, due in _waiting(seen)
        if due <= seen.now
    )


def next_nudge(seen: Observed) -> datetime | None:
    """When to look again, because a pod that was nudged may be stuck then."""
    return min((due for _, _, due in _waiting(seen) if due > seen.now), default=None)


def _waiting(seen: Observed) -> Iterator[tuple[Pod, int, datetime]]:
    """Pods whose containers have not started: how often each was nudged, and when the next nudge is due."""
    for pod in seen.own.values():
        if pod.metadata.terminating or has_started(pod):
            continue
        count, at = _last_nudge(pod)
        if at is None:
            yield pod, 0, seen.now
        elif count < MOST_NUDGES and _is_stuck(pod):
            yield pod, count, at + AGAIN_AFTER


def _is_stuck(pod: Pod) -> bool:
    return any(
        container.state.waiting is not None and container.state.waiting.reason == "CreateContainerConfigError"
        for container in pod.status.container_statuses
    )


def _last_nudge(pod: Pod) -> tuple[int, datetime | None]:
    count, _, at = pod.metadata.annotations.get(ANNOTATION_NUDGE, "").partition(" ")
    try:
        return int(count), datetime.fromisoformat(at)
    except ValueError:
        return 0, None
