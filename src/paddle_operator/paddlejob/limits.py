"""How much a job may fail: what counts against backoffLimit and maxDisruptions, and how often."""

from paddle_operator.api.names import ADDRESS_CHANGED
from paddle_operator.api.paddlejob import Failure, Mode, PaddleJob, read_template

from .ends import Counts
from .observed import Observed
from .verdicts import Verdict

# As a Kubernetes Job's. A job that asks for no restarts at all fails at its first failure, as it ever did.
BACKOFF_LIMIT_IN_PLACE = 6
MAX_DISRUPTIONS = 3


def backoff_limit(job: PaddleJob) -> int:
    written = job.run_policy.backoff_limit
    if written is not None:
        return written
    pods = [read_template(role.template).get("spec") or {} for role in job.roles.values()]
    return BACKOFF_LIMIT_IN_PLACE if any(pod.get("restartPolicy") == "OnFailure" for pod in pods) else 0


def max_disruptions(job: PaddleJob) -> int:
    written = job.run_policy.max_disruptions
    return MAX_DISRUPTIONS if written is None else written


def incidents_in_place(seen: Observed) -> int:
    """How often something failed and was restarted in place, in this try.

    In Collective mode everybody fails with whoever fails first: that is one failure, not one a worker.
    """
    restarts = seen.restarts_in_place.values()
    return max(restarts, default=0) if seen.job.spec.mode is Mode.COLLECTIVE else sum(restarts)


def counted(seen: Observed, failure: Failure, counts: Counts) -> tuple[int, int]:
    """Failures and disruptions of the job's whole life, once this is counted too."""
    failures, disruptions = seen.job.status.failures + incidents_in_place(seen), seen.job.status.disruptions
    match counts:
        case Counts.DISRUPTION:
            # A node that was restarted has restarted the containers too: that is one and the same.
            same = failure.reason == ADDRESS_CHANGED and incidents_in_place(seen) > 0
            return failures - same, disruptions + 1
        case Counts.FAILURE:
            # One that was restarted in place has been counted with the others of that kind.
            in_place = seen.restarts_in_place.get(failure.pod, 0)
            is_counted = in_place and seen.verdicts[failure.pod] is not Verdict.FAILED
            return failures + (0 if is_counted else 1), disruptions
    return failures, disruptions


def may_restart(seen: Observed, failure: Failure, counts: Counts) -> bool:
    """What has not become more is within its limit, also if that was lowered since."""
    if counts is Counts.NOTHING:
        return False
    before, (failures, disruptions) = seen.job.status, counted(seen, failure, counts)
    is_tolerated = failures <= max(before.failures, backoff_limit(seen.job))
    return is_tolerated and disruptions <= max(before.disruptions, max_disruptions(seen.job))
