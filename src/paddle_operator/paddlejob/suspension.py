"""runPolicy.suspend: the pods go, the job stays; once it is resumed a new try begins that uses no limit."""

import msgspec

from paddle_operator.api.paddlejob import PaddleJobStatus, Phase

from .attempts import next_attempt
from .limits import incidents_in_place
from .observed import Observed


def is_suspended(seen: Observed) -> bool:
    """As it shall be; one whose workers have ended well has nothing left to suspend."""
    return seen.job.run_policy.suspend and not seen.is_trained


def suspend(seen: Observed) -> PaddleJobStatus:
    """Every pod that there is belongs to an earlier try from now on. Ports of the host are given back.

    A job that has been suspended since it was made has never had a pod: its first try is yet to come.
    """
    born_so = seen.job.metadata.generation == 1 and not seen.own
    status = seen.job.status if born_so else next_attempt(seen)
    return msgspec.structs.replace(
        status,
        phase=Phase.SUSPENDED,
        failures=status.failures + incidents_in_place(seen),
        mode=seen.job.spec.mode,
        host_port=0,
        observed_generation=seen.job.metadata.generation,
    )


def resize(seen: Observed) -> PaddleJobStatus:
    """It was suspended and resumed while nobody looked: what we would have done then is done now."""
    return msgspec.structs.replace(
        next_attempt(seen),
        phase=Phase.PENDING,
        failures=seen.job.status.failures + incidents_in_place(seen),
        host_port=0,
        resume_time=seen.stamp,
    )


def resume(seen: Observed) -> PaddleJobStatus:
    return msgspec.structs.replace(
        seen.job.status, phase=Phase.PENDING, attempt_time=seen.stamp, resume_time=seen.stamp
    )
