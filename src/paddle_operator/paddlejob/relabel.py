"""Put back the labels that somebody took off: without them our watches do not show the object."""

from paddle_operator.api.names import LABEL_ATTEMPT, LABEL_RES_NAME, LABEL_RES_TYPE
from paddle_operator.api.resources import PODS, Target
from paddle_operator.plan import Patch, Step

from .observed import Observed


def relabel(seen: Observed) -> Step:
    """Of which try a pod is, only later ones need to say: the Go operator's do not."""
    attempt = seen.job.status.attempt
    number = {LABEL_ATTEMPT: str(attempt)} if attempt else {}
    return tuple(
        Patch(
            Target.of(PODS, pod),
            {
                "metadata": {
                    "labels": {LABEL_RES_NAME: name, LABEL_RES_TYPE: str(seen.slots[name].role), **number}
                }
            },
            purpose="label",
        )
        for name, pod in seen.own.items()
        if not {LABEL_RES_TYPE, *number} <= pod.metadata.labels.keys()
    )
