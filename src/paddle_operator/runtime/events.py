"""Events for `kubectl describe`: told once each, bounded per object, and never worth failing for."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import structlog

from paddle_operator.api.meta import Manifest
from paddle_operator.api.resources import EVENTS
from paddle_operator.cluster import ApiError, Cluster
from paddle_operator.plan import LONGEST_MESSAGE, Emit

log = structlog.get_logger()

BURST = 25
REFILL_SECONDS = 300.0
# The server takes 253 characters for a name, of which our unique ending needs its part.
LONGEST_STEM = 200


@dataclass
class _Budget:
    tokens: float
    counted_at: datetime


class EventRecorder:
    """Posts events; 25 at once for one object, then one in five minutes (as Kubernetes' own recorders)."""

    def __init__(self, cluster: Cluster, component: str, now: Callable[[], datetime]) -> None:
        self._cluster = cluster
        self._component = component
        self._now = now
        self._budgets: dict[str, _Budget] = {}
        self._numbers = itertools.count(1)

    async def post(self, event: Emit) -> None:
        now = self._now()
        if not self._may_speak_of(event.about.uid, now):
            return
        try:
            await self._cluster.create(EVENTS, self._manifest(event, now))
        except ApiError as error:
            log.warning("event not recorded", about=str(event.about), reason=event.reason, error=str(error))

    def forget(self, uid: str) -> None:
        self._budgets.pop(uid, None)

    def _may_speak_of(self, uid: str, now: datetime) -> bool:
        budget = self._budgets.setdefault(uid, _Budget(BURST, now))
        elapsed_seconds = max(0.0, (now - budget.counted_at).total_seconds())
        budget.tokens = min(BURST, budget.tokens + elapsed_seconds / REFILL_SECONDS)
        budget.counted_at = now
        if budget.tokens < 1:
            return False
        budget.tokens -= 1
        return True

    def _manifest(self, event: Emit, now: datetime) -> Manifest:
        about = event.about
        stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
        # Unique without asking for randomness: the time of this process's life and a running number.
        unique = f"{int(now.timestamp() * 1_000_000):x}-{next(self._numbers)}"
        stem = about.key.name[:LONGEST_STEM].rstrip("-.")
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"namespace": about.key.namespace, "name": f"{stem}.{unique}"},
            "involvedObject": {
                "apiVersion": about.resource.api_version,
                "kind": about.resource.kind,
                "namespace": about.key.namespace,
                "name": about.key.name,
                "uid": about.uid,
                "resourceVersion": about.resource_version,
            },
            "type": "Warning" if event.warning else "Normal",
            "reason": event.reason,
            "message": event.message[:LONGEST_MESSAGE],
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
        }
