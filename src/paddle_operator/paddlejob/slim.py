"""What the cache keeps of a pod: the fields that decisions ask for, and what many pods share only once.

A cluster may have 10,000 pods of ours. As decoded each takes 4 KB, like this less than one: the rest is of no
interest, or is said by a hundred others as well.
"""

from collections.abc import Hashable
from functools import lru_cache
from typing import TypeVar

import msgspec

from paddle_operator.api.core import ContainerStatus, Pod, PodStatus
from paddle_operator.api.meta import ObjectMeta
from paddle_operator.api.names import ANNOTATION_NUDGE, ANNOTATION_PORT, LABEL_ATTEMPT, LABEL_RES_TYPE
from paddle_operator.api.report import read_report, written

from .verdicts import DISRUPTED

V = TypeVar("V", bound=Hashable)
# Values of which one for each job and node is usual, or one for each second.
MOST_SHARED = 4096
LABELS = frozenset({LABEL_ATTEMPT, LABEL_RES_TYPE})
ANNOTATIONS = frozenset({ANNOTATION_NUDGE, ANNOTATION_PORT})


def slim(pod: Pod) -> Pod:
    return Pod(metadata=_metadata(pod.metadata), spec=_shared(pod.spec), status=_status(pod.status))


def _metadata(full: ObjectMeta) -> ObjectMeta:
    return msgspec.structs.replace(
        full,
        namespace=_shared(full.namespace),
        creation_timestamp=_shared(full.creation_timestamp),
        labels=_chosen(full.labels, LABELS),
        annotations=_chosen(full.annotations, ANNOTATIONS),
        owner_references=_shared(full.owner_references),
    )


def _status(full: PodStatus) -> PodStatus:
    """Of its conditions those that hold are the rule; one says that the pod is to be ended."""
    unusual = tuple(one for one in full.conditions if one.status != "True" or one.type == DISRUPTED)
    return msgspec.structs.replace(
        full,
        phase=_shared(full.phase),
        start_time=_shared(full.start_time),
        conditions=_shared(unusual),
        pod_ips=() if [one.ip for one in full.pod_ips] == [full.pod_ip] else full.pod_ips,
        init_container_statuses=_statuses(full.init_container_statuses),
        container_statuses=_statuses(full.container_statuses),
    )


def _statuses(full: tuple[ContainerStatus, ...]) -> tuple[ContainerStatus, ...]:
    """The end of a log is no other pod's: it must not outlive its own."""
    kept = tuple(map(_without_small_talk, full))
    ends = (state.terminated for one in kept for state in (one.state, one.last_state))
    return kept if any(end is not None and end.message for end in ends) else _shared(kept)


def _without_small_talk(status: ContainerStatus) -> ContainerStatus:
    """Of one that ended well only a report is of interest, and of that what decisions ask for."""
    end = status.state.terminated
    if end is None or end.exit_code or not end.message:
        return status
    report = read_report(end.message)
    told = msgspec.structs.replace(end, message=written(report) if report else "")
    return msgspec.structs.replace(status, state=msgspec.structs.replace(status.state, terminated=told))


@lru_cache(maxsize=MOST_SHARED)
def _shared(value: V) -> V:
    """The first of all that are equal."""
    return value


def _chosen(written: dict[str, str], names: frozenset[str]) -> dict[str, str]:
    return _as_dict(tuple((name, value) for name, value in written.items() if name in names))


@lru_cache(maxsize=MOST_SHARED)
def _as_dict(items: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """The same one for the same items: nobody changes it."""
    return dict(items)
