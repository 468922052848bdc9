"""What is told from an audit log about operators in pods: each check is shown to catch something."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from audit import Request
from operator_acts import ACCOUNT, longest_gap, one_at_a_time, pods_made

from paddle_operator.api.rights import LEASE_NAME

BEGIN = datetime(2026, 11, 18, tzinfo=UTC)


def act(
    pod: str, at: float, what: str = "patch paddlejobs", name: str = "resnet", code: int = 200
) -> Request:
    """A request that takes a second."""
    verb, resource = what.split()
    begun = BEGIN + timedelta(seconds=at)
    return Request(
        user=ACCOUNT,
        verb=verb,
        resource=resource,
        namespace="team",
        name=name,
        code=code,
        group="",
        at=begun,
        ended=begun + timedelta(seconds=1),
        agent="paddle-operator",
        pod=pod,
    )


def on_lease(pod: str, at: float, code: int = 200) -> Request:
    return act(pod, at, "patch leases", LEASE_NAME, code)


def test_one_operator_after_the_other() -> None:
    standby = [on_lease("new", 0, 409), act("new", 0.1, "get pods"), act("new", 0.2, "create events")]
    acts = [*standby, act("old", 0.3), act("old", 0.4), act("new", 2)]
    assert one_at_a_time(acts) == ["old", "new"]


@pytest.mark.parametrize(
    "acts",
    [[act("old", 0), act("new", 0.5)], [act("old", 0), act("new", 2), act("old", 4)]],
    ids=["the last request of one is under way", "one begins again"],
)
def test_two_at_once_are_caught(acts: Sequence[Request]) -> None:
    with pytest.raises(AssertionError):
        one_at_a_time(acts)


def test_a_pod_that_is_made_twice_is_caught() -> None:
    once = [act("old", 0, "create pods", "a", 201), act("old", 1, "create pods", "b", 201)]
    assert pods_made([*once, act("new", 2, "create pods", "a", 409)]) == 2
    with pytest.raises(AssertionError):
        pods_made([*once, act("new", 2, "create pods", "a", 201)])


def test_how_long_nobody_leads() -> None:
    assert longest_gap([on_lease("old", 0), on_lease("new", 1, 409), on_lease("new", 3)]) == 3
