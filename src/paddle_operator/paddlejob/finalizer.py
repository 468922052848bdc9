"""The Go operator's finalizer guards nothing, and would hold a job for ever once no operator is there."""

from paddle_operator.api.names import OLD_FINALIZER
from paddle_operator.api.resources import PADDLE_JOBS, Target
from paddle_operator.plan import Patch, Step

from .observed import Observed


def release(seen: Observed) -> Step:
    """Take it off, and leave others; with the version, because the list is replaced whole."""
    meta = seen.job.metadata
    kept = [name for name in meta.finalizers if name != OLD_FINALIZER]
    if len(kept) == len(meta.finalizers):
        return ()
    body = {"metadata": {"finalizers": kept, "resourceVersion": meta.resource_version}}
    return (Patch(Target.of(PADDLE_JOBS, seen.job), body, purpose="take the old finalizer off"),)
