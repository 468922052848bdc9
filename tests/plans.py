"""Short words for what a plan does, and for the worlds that plans are made in."""

from collections import Counter
from typing import Any

import make
import msgspec
from make import NOW

from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.paddlejob.observed import Observed
from paddle_operator.paddlejob.status import next_status
from paddle_operator.plan import Action, Create, Plan, SetStatus


def actions(plan: Plan, kind: type[Action]) -> list[Any]:
    return [action for step in plan.steps for action in step if isinstance(action, kind)]


def shape(plan: Plan) -> list[str]:
    """The steps in short: what each does, and to how many."""
    words = []
    for step in plan.steps:
        names = Counter(
            f"create {one.resource.plural}" if isinstance(one, Create) else type(one).__name__.lower()
            for one in step
        )
        words.append(" and ".join(f"{count} {name}" for name, count in names.items()))
    return words


def changes(plan: Plan) -> dict[str, Any]:
    found: list[SetStatus] = actions(plan, SetStatus)
    assert len(found) <= 1
    return found[0].changes if found else {}


def settled(seen: Observed) -> Observed:
    """The same, after the status has been written: what is left is not about the status."""
    job = msgspec.structs.replace(seen.job, status=next_status(seen, None))
    return make.observed(job, *seen.pods, now=seen.now, config_map=seen.config_map)


def running_job(**spec: Any) -> PaddleJob:
    return make.paddlejob(status={"phase": "Running", "startTime": NOW.isoformat()}, **spec)


def finished(phase: str, **spec: Any) -> PaddleJob:
    return make.paddlejob(status={"phase": phase, "startTime": NOW.isoformat()}, **spec)
