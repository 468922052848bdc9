"""A restart is whole: in PS and Collective mode a process that comes back alone finds nobody.

    failed ──▶ write attempt + 1, reason, counts ──▶ delete the old try ──▶ all gone ──▶ pause ──▶ make anew

What must be counted is written first, in one write that the server refuses if anybody was quicker; pods carry
the number of their try, and those of an older one are never counted. So a crash between any two writes counts
nothing twice.
"""

from datetime import datetime, timedelta

import msgspec

from paddle_operator.api.meta import find_condition
from paddle_operator.api.names import RESTARTING
from paddle_operator.api.paddlejob import Failure, PaddleJob, PaddleJobStatus, Phase

from .attempts import next_attempt
from .ends import Counts
from .limits import backoff_limit, counted, max_disruptions
from .observed import RESOLUTION, Observed

FIRST_BACKOFF_SECONDS = 1
LONGEST_BACKOFF_SECONDS = 300


def begin_again(seen: Observed, failure: Failure, counts: Counts) -> PaddleJobStatus:
    """The status that starts the next try; its conditions are for status.py to say."""
    failures, disruptions = counted(seen, failure, counts)
    status = seen.job.status
    return msgspec.structs.replace(
        next_attempt(seen),
        phase=Phase.RESTARTING,
        restarts=status.restarts + 1,
        failures=failures,
        disruptions=disruptions,
        failure=failure,
    )


def backoff(job: PaddleJob) -> timedelta:
    """How long to wait before this try: the longer, the more there were."""
    restarting = find_condition(job.status.conditions, RESTARTING)
    if restarting is None or restarting.status != "True" or job.status.restarts < 1:
        return timedelta()
    seconds = FIRST_BACKOFF_SECONDS * 2 ** min(job.status.restarts - 1, 16)
    return timedelta(seconds=min(seconds, LONGEST_BACKOFF_SECONDS))


def backed_off_until(seen: Observed) -> datetime | None:
    """None: it may begin, or has."""
    began = seen.job.status.attempt_time
    pause = backoff(seen.job)
    if began is None or seen.own or not pause or (until := began + RESOLUTION + pause) <= seen.now:
        return None
    return until


def used_in_words(job: PaddleJob, status: PaddleJobStatus) -> str:
    """How much of its limits a job has used up."""
    return (
        f"failures {status.failures} (backoffLimit {backoff_limit(job)}), "
        f"disruptions {status.disruptions} (maxDisruptions {max_disruptions(job)})"
    )
