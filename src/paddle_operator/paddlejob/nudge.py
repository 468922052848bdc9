"""Wake the kubelets once the config map is there.

A kubelet that found no config map tries again after 10 to 15 seconds and does not notice that the map has
come; but any change of the pod makes it look at once. So each pod gets a small annotation: 16 s become 3. The
first look after that can still fail (the node may not yet be allowed to read the new map): a pod that is
still stuck 3 s later is nudged again, three times at most and less and less often; then the kubelet's own
retry must do. Of a large job the last pods may only be slow to say that they are not stuck any more: to nudge
them again would make a busy server busier, so they have up to 8 s.

In Service mode the map is there before the pods, and only one that is stuck all the same is nudged.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from paddle_operator.api.core import Pod
from paddle_operator.api.names import ANNOTATION_NUDGE
from paddle_operator.api.resources import PODS, Target
from paddle_operator.plan import Patch

from .observed import Observed

AGAIN_AFTER = timedelta(seconds=3)
FOR_EACH_POD = timedelta(milliseconds=20)
LONGEST_PATIENCE = timedelta(seconds=8)
MOST_NUDGES = 4


def nudges(seen: Observed) -> tuple[Patch, ...]:
    now = seen.now.isoformat()
    return tuple(
        Patch(
            Target.of(PODS, pod),
            {"metadata": {"annotations": {ANNOTATION_NUDGE: f"{count + 1} {now}"}}},
            purpose="nudge",
        )
        for pod, count, due in _waiting(seen)
        if due <= seen.now
    )


def next_nudge(seen: Observed) -> datetime | None:
    """When to look again, because a pod that was nudged may be stuck then."""
    return min((due for _, _, due in _waiting(seen) if due > seen.now), default=None)


def were_woken(seen: Observed) -> bool:
    """Some of this try: there was a list of peers then."""
    return any(ANNOTATION_NUDGE in pod.metadata.annotations for pod in seen.own.values())


def _waiting(seen: Observed) -> Iterator[tuple[Pod, int, datetime]]:
    """Pods that wait for training to start: how often each was nudged, and when the next nudge is due."""
    if seen.own_config_map is None and not seen.config_map_is_due:
        return
    patience = min(AGAIN_AFTER + FOR_EACH_POD * len(seen.slots), LONGEST_PATIENCE)
    for name, pod in seen.own.items():
        if pod.metadata.terminating or name in seen.started:
            continue
        count, at = _last_nudge(pod, seen.now)
        if at is None and (_is_stuck(pod) or not seen.job.found_by_name):
            yield pod, 0, seen.now
        elif at is not None and count < MOST_NUDGES and _is_stuck(pod):
            yield pod, count, at + patience * 2 ** max(0, count - 1)


def _is_stuck(pod: Pod) -> bool:
    return any(
        container.state.waiting is not None and container.state.waiting.reason == "CreateContainerConfigError"
        for container in pod.status.container_statuses
    )


def _last_nudge(pod: Pod, now: datetime) -> tuple[int, datetime | None]:
    """What we wrote, if it is that: anybody may write an annotation, and clocks are set back."""
    count, _, text = pod.metadata.annotations.get(ANNOTATION_NUDGE, "").partition(" ")
    try:
        at = datetime.fromisoformat(text)
        return (int(count), at) if at.tzinfo is not None and at <= now else (0, None)
    except ValueError:
        return 0, None
