"""One shape for all controllers: whose turn, gate, gather, decide, execute; and what a failure costs."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sized
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest
from scripted import (
    FOR_EVER,
    ScriptedCluster,
    WatchStep,
    added,
    bookmark,
    config_map,
    deleted,
    its_owner,
    itself,
    key,
    listing,
    loop_time,
    modified,
    pod,
    running,
    unreadable,
    wall_clock,
)
from structlog.testing import capture_logs

from paddle_operator.api.core import ConfigMap, Pod
from paddle_operator.api.meta import KubeObject
from paddle_operator.api.resources import CONFIG_MAPS, PODS, AnyResource, Target
from paddle_operator.cluster import Conflict, Forbidden, Scope, Unreachable
from paddle_operator.plan import Create, Emit, Plan, SetStatus
from paddle_operator.runtime.controller import GATE_PATIENCE_SECONDS, Controller, Loop, Recollection
from paddle_operator.runtime.events import EventRecorder
from paddle_operator.runtime.executor import Executor
from paddle_operator.runtime.gate import CacheGate
from paddle_operator.runtime.informer import Informer
from paddle_operator.runtime.queue import KeyQueue
from paddle_operator.runtime.store import Store

pytestmark = pytest.mark.looptime

Decide = Callable[[ConfigMap], Plan]


def do_nothing(thing: ConfigMap) -> Plan:
    return Plan()


class Office:
    """A controller of config maps that own pods, on a scripted cluster."""

    def __init__(self) -> None:
        self.cluster = ScriptedCluster()
        self.queue = KeyQueue()
        self.maps = self._follow(CONFIG_MAPS, Store[ConfigMap](itself))
        self.pods = self._follow(PODS, Store[Pod](its_owner))
        stores = cast(
            "dict[AnyResource, Store[KubeObject]]", {CONFIG_MAPS: self.maps.store, PODS: self.pods.store}
        )
        self.gate = CacheGate(stores)
        self.recorder = EventRecorder(self.cluster, "operator", wall_clock)
        self.decide: Decide = do_nothing
        self.turns: list[tuple[str, float]] = []
        self.memories: list[Recollection] = []
        self.controller = Controller(
            Loop(self.maps, (cast("Informer[KubeObject]", self.pods),), self._gather, self._decide),
            queue=self.queue,
            gate=self.gate,
            executor=Executor(self.cluster, self.gate, self.recorder),
            recorder=self.recorder,
            now=wall_clock,
        )

    def _follow(self, resource: Any, store: Any) -> Any:
        return Informer(self.cluster, resource, Scope(), store, on_change=self.queue.add)

    async def _gather(self, thing: ConfigMap, memory: Recollection) -> ConfigMap:
        self.turns.append((thing.metadata.name, loop_time()))
        self.memories.append(memory)
        return thing

    def _decide(self, thing: ConfigMap) -> Plan:
        return self.decide(thing)

    def show(self, name: str, version: int = 1, uid: str = "") -> None:
        self.maps.store.put(config_map(name, version, uid))

    def script(self, listed: list[KubeObject], *steps: WatchStep) -> None:
        """The cluster shows these config maps; then the watch goes so, and stays open."""
        self.cluster.scripts["configmaps"].lists = [listing(1, *listed)]
        self.cluster.scripts["configmaps"].watches = [[*steps, FOR_EVER]]

    async def run_for(self, seconds: float) -> None:
        async with running(self.controller.run()):
            await asyncio.sleep(seconds)

    def times(self, name: str) -> list[float]:
        return [at for who, at in self.turns if who == name]

    @asynccontextmanager
    async def patience_of(self, informer: Informer[Any]) -> AsyncIterator[list[float]]:
        """The times at which this informer is asked to list again."""
        asked: list[float] = []
        informer.list_again = lambda: asked.append(loop_time())  # type: ignore[method-assign]
        yield asked


@pytest.fixture
async def office() -> Office:
    return Office()


def make_pod(thing: ConfigMap) -> Plan:
    name = f"{thing.metadata.name}-0"
    return Plan(((Create(PODS, {"metadata": {"name": name, "namespace": "team"}}),),))


def write_status(thing: ConfigMap) -> Plan:
    return Plan(((SetStatus(Target.of(CONFIG_MAPS, thing), {"phase": "x"}),),))


async def test_a_turn_gathers_decides_and_acts_in_this_order(office: Office) -> None:
    office.show("a")
    order: list[str] = []

    def decide(thing: ConfigMap) -> Plan:
        order.extend(["gathered"] * len(office.turns))
        order.extend(call.verb for call in office.cluster.calls)
        return make_pod(thing)

    office.decide = decide
    await office.controller.turn(key("a"))
    assert order == ["gathered"]
    assert office.cluster.names("create") == ["a-0"]


async def test_no_key_is_worked_on_before_every_cache_is_filled(office: Office) -> None:
    office.script([config_map("a")])
    office.cluster.scripts["pods"].lists = [Unreachable("down"), Unreachable("down"), listing(1)]
    await office.run_for(5)
    assert office.times("a") == pytest.approx([0.75])


class TestTheGate:
    async def test_stays_shut_until_the_cache_shows_our_own_write(self, office: Office) -> None:
        office.decide = make_pod
        office.show("a")
        await office.controller.turn(key("a"))
        assert len(office.turns) == 1
        await office.controller.turn(key("a"))
        assert len(office.turns) == 1
        office.pods.store.advance("1000")
        await office.controller.turn(key("a"))
        assert len(office.turns) == 1
        office.pods.store.advance("1001")
        await office.controller.turn(key("a"))
        assert len(office.turns) == 2

    async def test_is_looked_at_again_until_it_opens_and_no_write_is_repeated(self, office: Office) -> None:
        office.decide = lambda thing: Plan() if len(office.turns) > 1 else make_pod(thing)
        office.script([config_map("a")])
        # The pod itself is never shown: a bookmark, which wakes nobody, says that we are past it.
        office.cluster.scripts["pods"].watches = [[4.5, bookmark(2000), FOR_EVER]]
        await office.run_for(9)
        assert office.cluster.names("create") == ["a-0"]
        first, second = office.times("a")
        assert first == 0
        assert 4.5 < second < 6

    async def test_that_stays_shut_makes_the_kind_list_again_and_only_that_kind(self, office: Office) -> None:
        office.decide = make_pod
        office.script([config_map("a")])
        async with office.patience_of(office.pods) as pods, office.patience_of(office.maps) as maps:
            await office.run_for(35)
        assert len(pods) == 3
        assert pods[0] > GATE_PATIENCE_SECONDS
        assert not maps
        assert len(office.turns) == 1

    async def test_opens_by_the_list_that_it_caused(self, office: Office) -> None:
        office.decide = lambda thing: Plan() if office.pods.store.concerning(key("a")) else make_pod(thing)
        office.script([config_map("a")])
        shown = listing(1001, pod("a-0", 1001, owner="a"))
        office.cluster.scripts["pods"].lists = [listing(1), shown]
        await office.run_for(30)
        assert office.cluster.names("create") == ["a-0"]
        assert len(office.times("a")) == 2
        assert [call.kind for call in office.cluster.asked("list")].count("pods") == 2

    async def test_of_one_job_keeps_no_other_waiting(self, office: Office) -> None:
        office.decide = lambda thing: make_pod(thing) if thing.metadata.name == "a" else Plan()
        office.script([config_map("a")], 2.0, added(config_map("b", 5)))
        await office.run_for(5)
        assert office.times("b") == [2]

    async def test_keeps_what_the_turn_before_has_learnt(self, office: Office) -> None:
        office.cluster.fail("create", "a-0", Forbidden("quota"))
        office.decide = lambda thing: Plan((*write_status(thing).steps, *make_pod(thing).steps))
        office.show("a")
        await office.controller.turn(key("a"))
        await office.controller.turn(key("a"))  # shut
        office.maps.store.advance("1001")
        await office.controller.turn(key("a"))
        assert [refusal.message for refusal in office.memories[1].refusals] == ["quota"]
        assert office.memories[1].status_written_at == wall_clock()


class TestAFailure:
    async def test_of_one_key_harms_no_other_and_is_tried_again_less_and_less(self, office: Office) -> None:
        def decide(thing: ConfigMap) -> Plan:
            if thing.metadata.name == "bad":
                raise ZeroDivisionError
            return Plan()

        office.decide = decide
        office.script([config_map("bad"), config_map("good")], 30.0, modified(config_map("good", 9)))
        with capture_logs() as logs:
            await office.run_for(150)
        assert office.times("good") == [0, 30]
        assert office.times("bad")[:5] == pytest.approx([0, 0.2, 0.6, 1.4, 3.0])
        assert 9 <= len(office.times("bad")) <= 12
        assert {line["event"] for line in logs if line["log_level"] == "error"} == {"turn failed"}

    async def test_that_ends_is_forgotten(self, office: Office) -> None:
        def decide(_: ConfigMap) -> Plan:
            if len(office.turns) in {1, 2, 4}:
                raise ZeroDivisionError
            return Plan()

        office.decide = decide
        office.script([config_map("a")], 10.0, modified(config_map("a", 9)))
        await office.run_for(20)
        assert office.times("a") == pytest.approx([0, 0.2, 0.6, 10, 10.2])

    async def test_of_a_kind_of_writes_is_not_forgotten_after_a_turn_without_one(
        self, office: Office
    ) -> None:
        """Else a job that is suspended and resumed meanwhile would ask for the same in haste once more."""
        office.cluster.fail("create", "a-0", *(Unreachable("down") for _ in range(4)))
        office.decide = lambda thing: Plan() if len(office.turns) == 4 else make_pod(thing)
        office.script([config_map("a")], 5.0, modified(config_map("a", 9)))
        await office.run_for(10)
        assert office.times("a")[:6] == pytest.approx([0, 0.2, 0.6, 1.4, 5, 5 + 1.6])

    async def test_of_a_kind_of_writes_is_forgotten_once_one_is_done(self, office: Office) -> None:
        office.cluster.fail("create", "a-0", *(Unreachable("down") for _ in range(3)))
        office.decide = make_pod
        office.script([config_map("a")])
        await office.run_for(2)
        assert not office.queue._failures

    async def test_of_a_look_at_the_cluster_is_tried_again(self, office: Office) -> None:
        async def gather(thing: ConfigMap, memory: Recollection) -> ConfigMap:
            await office._gather(thing, memory)
            raise Unreachable("down")

        object.__setattr__(office.controller._loop, "gather", gather)
        office.script([config_map("a")])
        with capture_logs() as logs:
            await office.run_for(1)
        assert office.times("a") == pytest.approx([0, 0.2, 0.6])
        assert not [line for line in logs if line["log_level"] == "error"]

    async def test_of_a_plan_is_tried_again(self, office: Office) -> None:
        office.decide = lambda thing: make_pod(thing) if len(office.turns) <= 2 else Plan()
        office.cluster.fail("create", "a-0", Unreachable("cut"), Unreachable("cut"))
        office.script([config_map("a")])
        await office.run_for(20)
        assert office.times("a") == pytest.approx([0, 0.2, 0.6])

    async def test_of_a_plan_does_not_hide_a_deadline(self, office: Office) -> None:
        deadline = wall_clock() + timedelta(seconds=5)
        office.decide = lambda thing: replace(
            make_pod(thing), deadline_at=deadline if wall_clock() < deadline else None
        )
        office.cluster.fail("create", "a-0", *(Unreachable("cut") for _ in range(20)))
        office.script([config_map("a")])
        await office.run_for(8)
        assert office.times("a") == pytest.approx([0, 0.2, 0.6, 1.4, 3.0, 5.0], abs=0.01)

    async def test_is_not_what_an_outdated_plan_is(self, office: Office) -> None:
        office.decide = lambda thing: write_status(thing) if len(office.turns) <= 3 else Plan()
        office.cluster.fail("patch status", "a", *(Conflict("moved on") for _ in range(3)))
        office.script([config_map("a")])
        with capture_logs() as logs:
            await office.run_for(20)
        # There is no sense in a second try before the watch has told how the object has moved on. If it does
        # not, a list has the last word.
        first, second = office.times("a")
        assert (first, second > 10) == (0, True)
        assert not office.queue._failures
        assert [line["event"] for line in logs if line["log_level"] == "warning"] == [
            "watch does not show all that was written, listing again"
        ]

    async def test_in_an_informer_ends_the_controller_instead_of_leaving_it_blind(
        self, office: Office
    ) -> None:
        office.cluster.scripts["pods"].lists = [ZeroDivisionError()]
        with pytest.raises(ExceptionGroup):
            await office.controller.run()


async def test_a_refusal_is_handed_to_the_next_turn_and_to_no_later_one(office: Office) -> None:
    office.decide = lambda thing: make_pod(thing) if len(office.turns) == 1 else Plan()
    office.cluster.fail("create", "a-0", Forbidden("quota"))
    office.show("a")
    for _ in range(3):
        await office.controller.turn(key("a"))
    heard = [[refusal.message for refusal in memory.refusals] for memory in office.memories]
    assert heard == [[], ["quota"], []]


async def test_an_error_that_does_not_pass_is_as_good_as_a_refusal(office: Office) -> None:
    office.decide = make_pod
    office.cluster.fail("create", "a-0", *(Unreachable("webhook down") for _ in range(4)))
    office.show("a")
    for _ in range(6):
        await office.controller.turn(key("a"))
        office.pods.store.advance("9999")
    heard = [[refusal.message for refusal in memory.refusals] for memory in office.memories]
    assert heard == [[], [], [], ["webhook down"], ["webhook down"], []]


async def test_the_time_of_the_last_status_is_remembered(office: Office) -> None:
    office.decide = lambda thing: write_status(thing) if len(office.turns) == 1 else Plan()
    office.show("a")
    await asyncio.sleep(7)
    written_at = wall_clock()
    for _ in range(3):
        await office.controller.turn(key("a"))
        office.maps.store.advance("1001")
        await asyncio.sleep(5)
    assert [memory.status_written_at for memory in office.memories] == [None, written_at, written_at]


@pytest.mark.parametrize(("seconds", "second_turn"), [(5, 5), (0, 0.05), (-3600, 0.05)])
async def test_a_turn_comes_when_the_plan_asks_for_it(
    office: Office, seconds: float, second_turn: float
) -> None:
    def decide(thing: ConfigMap) -> Plan:
        return Plan((), wall_clock() + timedelta(seconds=seconds)) if len(office.turns) == 1 else Plan()

    office.decide = decide
    office.script([config_map("a")])
    await office.run_for(60)
    assert office.times("a") == pytest.approx([0, second_turn])


async def test_a_change_comes_before_the_time_that_the_plan_asked_for(office: Office) -> None:
    office.decide = lambda _: Plan((), wall_clock() + timedelta(hours=1))
    office.script([config_map("a")], 3.0, modified(config_map("a", 9)))
    await office.run_for(60)
    assert office.times("a") == pytest.approx([0, 3])


def kept(office: Office) -> dict[str, int]:
    controller, queue = office.controller, office.queue
    places: dict[str, Sized] = {
        "known": controller._known,
        "memory": controller._memory,
        "told": controller._told,
        "gate": office.gate._unseen,
        "budgets": office.recorder._budgets,
        "due": queue._due,
        "failures": queue._failures,
        "not before": queue._not_before,
        "gone": queue._gone,
        "taken": queue._taken,
    }
    return {name: len(place) for name, place in places.items() if len(place)}


def speak_and_make(thing: ConfigMap) -> Plan:
    about = Emit(Target.of(CONFIG_MAPS, thing), warning=False, reason="Made", message="a pod")
    return Plan(((about,), *make_pod(thing).steps), wall_clock() + timedelta(days=7))


async def test_many_jobs_that_came_and_went_leave_nothing_behind(office: Office) -> None:
    office.decide = speak_and_make
    steps: list[WatchStep] = []
    for number in range(40):
        name, version = f"job-{number}", 10 + 10 * number
        bad = number % 4 == 0
        first = unreadable(name, version) if bad else config_map(name, version)
        steps += [added(first), 0.3, modified(config_map(name, version + 1)), 0.3]
        if number % 3 == 0:
            steps += [modified(unreadable(name, version + 2)), 0.3]
        steps += [deleted(first if bad else config_map(name, version + 3)), 0.3]
        office.cluster.fail("create", f"{name}-0", *([Forbidden("quota")] * (number % 2)))
    office.script([], *steps)
    await office.run_for(100)
    assert len(office.times("job-1")) >= 1
    assert office.cluster.asked("create")
    assert kept(office) == {}


async def test_an_object_made_again_under_the_same_name_starts_afresh(office: Office) -> None:
    office.decide = make_pod
    office.cluster.fail("create", "a-0", Forbidden("quota"))
    office.show("a", 1, uid="first")
    await office.controller.turn(key("a"))
    await office.controller.turn(key("a"))
    await office.controller.turn(key("a"))  # the gate of the first is shut now
    office.show("a", 5, uid="second")
    await office.controller.turn(key("a"))
    assert office.memories[-1] == Recollection()
    assert len(office.memories) == 3
    assert set(office.controller._memory) == {"second"}
    assert set(office.gate._unseen) == {"second"}


async def test_failures_are_not_counted_against_a_namesake_made_later(office: Office) -> None:
    def decide(_: ConfigMap) -> Plan:
        raise ZeroDivisionError

    office.show("a", 1, uid="first")
    await office.controller.turn(key("a"))
    for _ in range(9):
        office.queue.retry(key("a"))
    office.show("a", 5, uid="second")
    office.decide = decide
    with pytest.raises(ZeroDivisionError):
        await office.controller.turn(key("a"))
    assert office.queue.retry(key("a")) == 0.2


class TestAnObjectThatCannotBeRead:
    async def test_gets_one_event_for_each_version(self, office: Office) -> None:
        office.maps.store.put(unreadable("a", 5))
        await office.controller.turn(key("a"))
        await office.controller.turn(key("a"))
        office.maps.store.put(unreadable("a", 6))
        await office.controller.turn(key("a"))
        events = [call.body for call in office.cluster.asked("create")]
        assert [event["involvedObject"]["resourceVersion"] for event in events] == ["5", "6"]
        assert "Expected `int`, got `str`" in events[0]["message"]
        assert not office.turns

    async def test_is_remembered_so_that_the_gate_holds_when_it_can_be_read_again(
        self, office: Office
    ) -> None:
        office.decide = make_pod
        office.show("a", 1)
        await office.controller.turn(key("a"))
        office.maps.store.put(unreadable("a", 5))
        await office.controller.turn(key("a"))
        office.show("a", 6)
        await office.controller.turn(key("a"))
        assert len(office.turns) == 1
        assert office.gate.behind("uid-a") == {PODS}

    async def test_does_not_fail_its_turn_when_the_event_is_refused(self, office: Office) -> None:
        class NoEvents(ScriptedCluster):
            async def create(self, resource: Any, manifest: Any) -> Any:  # noqa: ARG002
                raise Forbidden("no")

        office.recorder._cluster = NoEvents()
        office.maps.store.put(unreadable("a", 5))
        await office.controller.turn(key("a"))
        assert len(office.queue) == 0


async def test_cancelling_ends_everything(office: Office) -> None:
    office.cluster.latency_seconds = 1e6
    office.decide = make_pod
    office.script([config_map(f"job-{number}") for number in range(30)])
    before = asyncio.all_tasks()
    await office.run_for(5)
    assert asyncio.all_tasks() == before
    assert not office.queue._taken
