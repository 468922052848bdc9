"""A new attempt, for whatever reason: written before anything of the old one is deleted."""

import msgspec

from paddle_operator.api.paddlejob import PaddleJobStatus

from .observed import Observed


def next_attempt(seen: Observed) -> PaddleJobStatus:
    """From here on every pod that there is belongs to an earlier try."""
    return msgspec.structs.replace(
        seen.job.status,
        attempt=seen.job.status.attempt + 1,
        attempt_time=seen.stamp,
        mode=seen.job.spec.mode,
        ps=None,
        worker=None,
        heter=None,
        observed_generation=seen.job.metadata.generation,
    )
