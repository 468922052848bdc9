"""Events: well formed, bounded, and never a reason to fail."""

import re
from datetime import datetime, timedelta

import pytest
from scripted import DAY_ZERO, ScriptedCluster, config_map

from paddle_operator.api.meta import Manifest
from paddle_operator.api.resources import CONFIG_MAPS, Target
from paddle_operator.cluster import ApiError, Forbidden, NotFound, Throttled, Unreachable
from paddle_operator.plan import Emit
from paddle_operator.runtime.events import EventRecorder

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class Calendar:
    def __init__(self) -> None:
        self.now = DAY_ZERO

    def __call__(self) -> datetime:
        return self.now


class Desk:
    def __init__(self) -> None:
        self.cluster = ScriptedCluster()
        self.calendar = Calendar()
        self.recorder = EventRecorder(self.cluster, "operator", self.calendar)

    async def post(self, name: str = "a", *, times: int = 1, uid: str = "", message: str = "why") -> int:
        """How many of these events were sent."""
        before = len(self.sent)
        about = Target.of(CONFIG_MAPS, config_map(name, 7, uid))
        for _ in range(times):
            await self.recorder.post(Emit(about, warning=True, reason="Because", message=message))
        return len(self.sent) - before

    @property
    def sent(self) -> list[Manifest]:
        return [call.body for call in self.cluster.asked("create")]


@pytest.fixture
def desk() -> Desk:
    return Desk()


async def test_an_event_says_of_what_and_when_it_speaks(desk: Desk) -> None:
    await desk.post()
    (event,) = desk.sent
    assert event["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "namespace": "team",
        "name": "a",
        "uid": "uid-a",
        "resourceVersion": "7",
    }
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "Because", "why")
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2026-11-18T00:00:00Z"
    assert event["metadata"]["namespace"] == "team"


async def test_one_object_gets_25_events_at_once_and_then_one_in_five_minutes(desk: Desk) -> None:
    assert await desk.post(times=40) == 25
    desk.calendar.now += timedelta(seconds=299)
    assert await desk.post(times=3) == 0
    desk.calendar.now += timedelta(seconds=1)
    assert await desk.post(times=3) == 1
    desk.calendar.now += timedelta(seconds=3000)
    assert await desk.post(times=40) == 10
    desk.calendar.now += timedelta(days=9)
    assert await desk.post(times=40) == 25


async def test_a_clock_that_goes_back_takes_nothing_away(desk: Desk) -> None:
    await desk.post(times=20)
    desk.calendar.now -= timedelta(hours=1)
    assert await desk.post(times=9) == 5


async def test_each_object_has_its_own_budget_and_a_namesake_made_later_too(desk: Desk) -> None:
    await desk.post(times=40)
    assert await desk.post("b", times=3) == 3
    assert await desk.post("a", times=3, uid="made later") == 3


async def test_nothing_is_kept_of_an_object_that_is_forgotten(desk: Desk) -> None:
    await desk.post(times=40)
    desk.recorder.forget("uid-a")
    desk.recorder.forget("never heard of")
    assert not desk.recorder._budgets


async def test_names_are_unique_within_one_instant(desk: Desk) -> None:
    await desk.post(times=25)
    assert len({event["metadata"]["name"] for event in desk.sent}) == 25


@pytest.mark.parametrize("name", ["a", "a" * 253, "a" * 199 + "-.b" + "c" * 50])
async def test_the_name_is_one_that_the_server_takes_however_long_the_object_s_own(
    desk: Desk, name: str
) -> None:
    await desk.post(name)
    (event,) = desk.sent
    assert len(event["metadata"]["name"]) <= 253
    assert SUBDOMAIN.fullmatch(event["metadata"]["name"])
    assert event["involvedObject"]["name"] == name


async def test_a_message_is_cut_at_a_kibibyte(desk: Desk) -> None:
    await desk.post(message="x" * 5000)
    assert desk.sent[0]["message"] == "x" * 1024


@pytest.mark.parametrize(
    "error", [Forbidden("no"), NotFound("no namespace"), Throttled("slow"), Unreachable("cut")]
)
async def test_an_event_that_is_refused_is_dropped(desk: Desk, error: ApiError) -> None:
    class Refusing(ScriptedCluster):
        async def _serve(self, call: object) -> None:  # noqa: ARG002
            raise error

    desk.recorder._cluster = Refusing()
    assert await desk.post() == 0
