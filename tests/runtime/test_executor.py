"""From a plan to requests: order, limits, identity, and what each answer of the server means."""

import asyncio
from dataclasses import replace
from typing import Any, cast

import pytest
from scripted import ScriptedCluster, config_map, its_owner, itself, key, loop_time, pod, running, wall_clock

from paddle_operator.api.core import ConfigMap, Pod
from paddle_operator.api.meta import KubeObject
from paddle_operator.api.resources import CONFIG_MAPS, PODS, AnyResource, Target
from paddle_operator.cluster import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    Throttled,
    Unreachable,
)
from paddle_operator.plan import Action, Create, Delete, Emit, Patch, Plan, Refusal, SetStatus, Step
from paddle_operator.runtime.events import EventRecorder
from paddle_operator.runtime.executor import IN_FLIGHT, Executor, Outcome
from paddle_operator.runtime.gate import CacheGate
from paddle_operator.runtime.store import Store

pytestmark = pytest.mark.looptime

OWNER = "uid-a"
JOB = Target.of(CONFIG_MAPS, config_map("a", 7))
LABELS = {"job": "a"}


class Bench:
    """An executor between a scripted cluster and two empty caches, which have come as far as version 7."""

    def __init__(self) -> None:
        self.cluster = ScriptedCluster()
        self.pods, self.maps = Store[Pod](its_owner), Store[ConfigMap](itself)
        self.pods.advance("7")
        self.maps.advance("7")
        stores = cast("dict[AnyResource, Store[KubeObject]]", {PODS: self.pods, CONFIG_MAPS: self.maps})
        self.gate = CacheGate(stores)
        recorder = EventRecorder(self.cluster, "operator", wall_clock)
        self.executor = Executor(self.cluster, self.gate, recorder)

    async def execute(self, *steps: Step) -> Outcome:
        return await self.executor.execute(Plan(steps), OWNER)


@pytest.fixture
async def bench() -> Bench:
    return Bench()


def create(name: str, **metadata: Any) -> Create:
    return Create(PODS, {"metadata": {"name": name, "namespace": "team", "labels": LABELS, **metadata}})


def create_of_try(number: str, name: str = "p") -> Create:
    """One of several that have the name in turn: the label tells which it is."""
    made = create(name, labels={**LABELS, "try": number})
    return replace(made, identity=("try",))


def delete(name: str) -> Delete:
    return Delete(Target.of(PODS, pod(name, 3)))


def patch(name: str) -> Patch:
    return Patch(Target.of(PODS, pod(name, 3)), {"metadata": {"annotations": {"x": "1"}}}, "mark")


def set_status() -> SetStatus:
    return SetStatus(JOB, {"phase": "Running"})


def emit() -> Emit:
    return Emit(JOB, warning=False, reason="Because", message="why")


async def test_an_empty_plan_asks_nothing(bench: Bench) -> None:
    assert await bench.execute() == Outcome()
    assert not bench.cluster.calls


async def test_steps_run_one_after_the_other_and_the_actions_of_one_at_once(bench: Bench) -> None:
    bench.cluster.latency_seconds = 1
    outcome = await bench.execute((create("p"), create("q")), (set_status(),), (emit(), delete("r")))
    assert outcome == Outcome(wrote_status=True)
    assert outcome.complete
    assert [(call.verb, call.at) for call in bench.cluster.calls] == [
        ("create", 0),
        ("create", 0),
        ("patch status", 1),
        ("create", 2),
        ("delete", 2),
    ]


async def test_a_large_step_leaves_room_in_the_line_for_other_jobs(bench: Bench) -> None:
    bench.cluster.latency_seconds = 1
    large = asyncio.create_task(bench.execute(tuple(create(f"large-{rank}") for rank in range(480))))
    await asyncio.sleep(0.5)
    await bench.execute((create("small"),))
    assert loop_time() <= 3
    await large


async def test_at_most_32_requests_are_in_flight_over_all_plans(bench: Bench) -> None:
    bench.cluster.latency_seconds = 1
    plans = [tuple(create(f"{job}-{rank}") for rank in range(30)) for job in range(4)]
    await asyncio.gather(*map(bench.execute, plans))
    assert bench.cluster.most_in_flight == IN_FLIGHT == 32
    assert len(bench.cluster.calls) == 120
    assert loop_time() == 4


async def test_a_step_that_fails_stops_the_rest(bench: Bench) -> None:
    bench.cluster.fail("create", "p", Unreachable("cut"))
    outcome = await bench.execute((create("p"), create("q")), (set_status(),), (emit(),))
    assert str(outcome.error) == "cut"
    assert not outcome.complete
    assert not outcome.wrote_status
    assert set(bench.cluster.names("create", "patch status")) == {"p", "q"}


async def test_actions_that_had_not_begun_when_another_failed_are_not_begun(bench: Bench) -> None:
    bench.cluster.latency_seconds = 1
    bench.cluster.fail("create", "p-0", Forbidden("quota"))
    outcome = await bench.execute(tuple(create(f"p-{rank}") for rank in range(1000)))
    assert len(bench.cluster.calls) == IN_FLIGHT
    assert outcome.refusals == (Refusal(PODS, "p-0", taken=False, message="quota"),)


async def test_what_was_sent_before_a_failure_is_waited_for_and_told_to_the_gate(bench: Bench) -> None:
    bench.cluster.fail("create", "p", Unreachable("cut"))
    await bench.execute((create("p"), create("q")))
    assert bench.gate.behind(OWNER) == {PODS}


async def test_no_action_outlives_a_turn_that_ends_in_an_unforeseen_error(bench: Bench) -> None:
    bench.cluster.fail("create", "p", KeyError("a mistake of ours"))
    with pytest.raises(ExceptionGroup):
        await bench.execute(tuple(create(name) for name in ("p", *map(str, range(100)))))
    sent = len(bench.cluster.calls)
    await asyncio.sleep(60)
    assert len(bench.cluster.calls) == sent
    bench.cluster.latency_seconds = 1
    await bench.execute(tuple(create(f"again-{number}") for number in range(100)))
    assert bench.cluster.most_in_flight == IN_FLIGHT  # no place was lost either


async def test_cancelling_a_turn_cancels_its_requests_and_gives_their_places_back(bench: Bench) -> None:
    bench.cluster.latency_seconds = 100
    async with running(bench.execute(tuple(create(str(number)) for number in range(50)))):
        await asyncio.sleep(1)
    bench.cluster.latency_seconds = 1
    await bench.execute((delete("p"),))
    assert loop_time() == 2


@pytest.mark.parametrize("action", [patch("p"), delete("p")])
async def test_each_change_names_the_uid_that_it_is_for(bench: Bench, action: Action) -> None:
    await bench.execute((action,))
    (call,) = bench.cluster.calls
    assert call.target is not None
    assert call.target.uid == "uid-p"
    if call.verb == "patch":
        assert call.body == {"metadata": {"annotations": {"x": "1"}, "uid": "uid-p"}}


async def test_a_patch_leaves_the_plan_as_it_was(bench: Bench) -> None:
    action = patch("p")
    await bench.execute((action,))
    assert action == patch("p")


async def test_status_is_written_for_the_version_that_was_read(bench: Bench) -> None:
    await bench.execute((set_status(),))
    (call,) = bench.cluster.calls
    assert call.body == {
        "metadata": {"uid": OWNER, "resourceVersion": "7"},
        "status": {"phase": "Running"},
    }


async def test_a_conflict_on_the_status_means_outdated_and_is_no_error(bench: Bench) -> None:
    bench.cluster.fail("patch status", "a", Conflict("moved on"))
    outcome = await bench.execute((set_status(),), (delete("p"),))
    assert outcome == Outcome(outdated=True)
    assert bench.cluster.names("delete") == []


async def test_a_status_that_was_not_written_does_not_count_as_written(bench: Bench) -> None:
    bench.cluster.fail("patch status", "a", Unreachable("cut"))
    outcome = await bench.execute((delete("p"), set_status()))
    assert not outcome.wrote_status


@pytest.mark.parametrize("action", [delete("p"), patch("p")], ids=["delete", "patch"])
async def test_who_is_gone_already_is_not_asked_for_again_before_the_cache_shows_it(
    bench: Bench, action: Action
) -> None:
    bench.cluster.fail("delete", "p", NotFound("gone"))
    bench.cluster.fail("patch", "p", NotFound("gone"))
    bench.pods.put(pod("p", 3))
    assert (await bench.execute((action,))).complete
    assert bench.gate.behind(OWNER) == {PODS}
    bench.pods.drop(key("p"))
    bench.pods.advance("4")
    assert bench.gate.behind(OWNER) == set()


async def test_who_is_gone_and_has_a_namesake_is_waited_for_until_that_one_is_shown(bench: Bench) -> None:
    """The cache shows one that is no more: nothing is decided about it."""
    bench.cluster.fail("delete", "p", Conflict("another UID"))
    bench.pods.put(pod("p", 3))
    assert (await bench.execute((delete("p"),))).complete
    assert bench.gate.behind(OWNER) == {PODS}
    bench.pods.put(pod("p", 9, uid="a namesake made later"))
    assert bench.gate.behind(OWNER) == set()


async def test_nothing_is_deleted_behind_a_status_that_found_no_object(bench: Bench) -> None:
    """It is gone, or its kind is not served for a moment, and then the end would never be written."""
    bench.cluster.fail("patch status", "a", NotFound("gone"))
    outcome = await bench.execute((set_status(),), (delete("p"),))
    assert outcome == Outcome(outdated=True)
    assert bench.cluster.asked("delete") == []


@pytest.mark.parametrize("error", [Forbidden("exceeded quota"), Invalid("no such field")])
async def test_a_create_that_is_turned_down_is_a_refusal(bench: Bench, error: ApiError) -> None:
    bench.cluster.fail("create", "p", error)
    outcome = await bench.execute((create("p"),))
    assert outcome == Outcome(refusals=(Refusal(PODS, "p", taken=False, message=str(error)),))


@pytest.mark.parametrize("error", [Forbidden("no"), Invalid("another UID"), Conflict("no"), Unreachable("")])
async def test_a_patch_that_is_turned_down_is_an_error_or_outdated(bench: Bench, error: ApiError) -> None:
    bench.cluster.fail("patch", "p", error)
    outcome = await bench.execute((patch("p"),))
    assert not outcome.complete
    assert not outcome.refusals
    assert outcome.error is (None if isinstance(error, Conflict) else error)


class TestAnameThatIsTaken:
    async def test_by_ourselves_is_as_good_as_made(self, bench: Bench) -> None:
        bench.cluster.fail("create", "p", AlreadyExists("p"))
        bench.cluster.existing[key("p")] = pod("p", 50, owner="a", labels={**LABELS, "more": "x"})
        assert (await bench.execute((create("p"),))).complete
        assert [call.verb for call in bench.cluster.calls] == ["create", "get"]
        assert bench.gate.behind(OWNER) == {PODS}
        bench.pods.advance("50")
        assert bench.gate.behind(OWNER) == set()

    async def test_by_ourselves_without_our_labels_is_labelled_once(self, bench: Bench) -> None:
        bench.cluster.fail("create", "p", AlreadyExists("p"))
        bench.cluster.existing[key("p")] = pod("p", 50, owner="a", labels={"job": "relabelled"})
        assert (await bench.execute((create("p"),))).complete
        (call,) = bench.cluster.asked("patch")
        assert call.body == {"metadata": {"labels": LABELS, "uid": "uid-p", "resourceVersion": "50"}}
        assert bench.gate.behind(OWNER) == {PODS}

    async def test_by_ourselves_when_we_ask_for_no_labels_at_all(self, bench: Bench) -> None:
        bench.cluster.fail("create", "p", AlreadyExists("p"))
        bench.cluster.existing[key("p")] = pod("p", 50, owner="a")
        bare = Create(PODS, {"metadata": {"name": "p", "namespace": "team"}})
        assert (await bench.execute((bare,))).complete

    @pytest.mark.parametrize("owner", ["", "b"])
    async def test_by_somebody_else_is_a_refusal_and_is_left_alone(self, bench: Bench, owner: str) -> None:
        bench.cluster.fail("create", "p", AlreadyExists("p"))
        bench.cluster.existing[key("p")] = pod("p", 50, owner=owner)
        outcome = await bench.execute((create("p"),))
        assert [(refusal.name, refusal.taken) for refusal in outcome.refusals] == [("p", True)]
        assert not bench.cluster.asked("patch", "delete")
        assert bench.gate.behind(OWNER) == set()

    @pytest.mark.parametrize("older", [{"try": "1"}, {}], ids=["of an earlier try", "of none"])
    async def test_by_an_older_one_of_ours_is_no_refusal_but_has_to_go_first(
        self, bench: Bench, older: dict[str, str]
    ) -> None:
        bench.cluster.fail("create", "p", AlreadyExists("p"))
        bench.cluster.existing[key("p")] = pod("p", 50, owner="a", labels={**LABELS, **older})
        outcome = await bench.execute((create_of_try("2"),), (set_status(),))
        assert outcome == Outcome(outdated=True)
        assert not bench.cluster.asked("patch", "patch status", "delete")
        # It is shown to us, and so is then deleted; until it is, nothing is decided.
        assert bench.gate.behind(OWNER) == {PODS}
        bench.pods.advance("50")
        assert bench.gate.behind(OWNER) == set()

    async def test_by_an_older_one_without_our_labels_is_labelled_but_never_as_the_newer(
        self, bench: Bench
    ) -> None:
        """Without them our watch would not show it; with the new number it would be taken for the new one."""
        bench.cluster.fail("create", "p", AlreadyExists("p"))
        bench.cluster.existing[key("p")] = pod("p", 50, owner="a", labels={"try": "1"})
        assert await bench.execute((create_of_try("2"),)) == Outcome(outdated=True)
        (call,) = bench.cluster.asked("patch")
        assert call.body == {"metadata": {"labels": LABELS, "uid": "uid-p", "resourceVersion": "50"}}
        assert bench.gate.behind(OWNER) == {PODS}

    async def test_by_one_that_is_not_marked_is_this_one_in_the_first_try(self, bench: Bench) -> None:
        bench.cluster.fail("create", "p", AlreadyExists("p"))
        bench.cluster.existing[key("p")] = pod("p", 50, owner="a", labels=LABELS)
        assert (await bench.execute((replace(create_of_try("0"), or_unmarked=True),))).complete
        (call,) = bench.cluster.asked("patch")
        assert call.body["metadata"]["labels"] == {"try": "0"}

    async def test_by_one_of_a_later_try_is_left_as_it_is(self, bench: Bench) -> None:
        """Another leader has gone on meanwhile: marked as ours, it would be deleted as a leftover."""
        bench.cluster.fail("create", "p", AlreadyExists("p"))
        bench.cluster.existing[key("p")] = pod("p", 50, owner="a", labels={**LABELS, "try": "1"})
        outcome = await bench.execute((replace(create_of_try("0"), or_unmarked=True),))
        assert outcome == Outcome(outdated=True)
        assert not bench.cluster.asked("patch")

    async def test_by_the_very_one_that_we_wanted_is_as_good_as_made(self, bench: Bench) -> None:
        bench.cluster.fail("create", "p", AlreadyExists("p"))
        bench.cluster.existing[key("p")] = pod("p", 50, owner="a", labels={**LABELS, "try": "2"})
        assert (await bench.execute((create_of_try("2"),))).complete
        assert not bench.cluster.asked("patch")

    async def test_by_somebody_else_is_a_refusal_whatever_try_it_says_it_is_of(self, bench: Bench) -> None:
        bench.cluster.fail("create", "p", AlreadyExists("p"))
        bench.cluster.existing[key("p")] = pod("p", 50, owner="b", labels={**LABELS, "try": "2"})
        outcome = await bench.execute((create_of_try("2"),))
        assert [(refusal.name, refusal.taken) for refusal in outcome.refusals] == [("p", True)]
        assert not bench.cluster.asked("patch", "delete")

    async def test_by_one_that_is_gone_when_we_look_is_tried_again_later(self, bench: Bench) -> None:
        bench.cluster.fail("create", "p", AlreadyExists("p"))
        outcome = await bench.execute((create("p"),))
        assert isinstance(outcome.error, NotFound)


async def test_a_throttled_request_waits_as_long_as_it_is_told_and_then_succeeds(bench: Bench) -> None:
    bench.cluster.fail("create", "p", Throttled("slow", 3), Throttled("slow", 2))
    assert (await bench.execute((create("p"),))).complete
    assert [call.at for call in bench.cluster.calls] == pytest.approx([0, 3, 5])


async def test_after_five_tries_a_throttled_request_is_an_error(bench: Bench) -> None:
    bench.cluster.fail("create", "p", *(Throttled("slow", 1) for _ in range(9)))
    outcome = await bench.execute((create("p"),))
    assert isinstance(outcome.error, Throttled)
    assert len(bench.cluster.calls) == 5


async def test_when_one_is_told_to_wait_all_wait(bench: Bench) -> None:
    """Also those that stood in line for a place when the server spoke, and for the longest of the pauses."""
    bench.cluster.latency_seconds = 0.5
    for rank in range(IN_FLIGHT):
        bench.cluster.fail("create", f"p-{rank}", Throttled("slow", 10 if rank == 0 else 2))
    assert (await bench.execute(tuple(create(f"p-{rank}") for rank in range(200)))).complete
    times = [call.at for call in bench.cluster.calls]
    assert [at for at in times if at < 10.49] == [0] * IN_FLIGHT
    assert len(times) == 200 + IN_FLIGHT


async def test_events_never_fail_a_plan(bench: Bench) -> None:
    bench.cluster.latency_seconds = 1
    refusals = (Forbidden("no"), Unreachable("cut"), Throttled("slow", 60))

    class NoEvents(ScriptedCluster):
        async def create(self, resource: Any, manifest: Any) -> Any:
            if resource.plural == "events":
                raise refusals[len(self.asked("delete")) % 3]
            return await super().create(resource, manifest)

    bench.executor._recorder._cluster = NoEvents()
    assert (await bench.execute((emit(), emit()), (delete("p"),))).complete
    assert bench.cluster.names("delete") == ["p"]


@pytest.mark.parametrize(
    ("action", "kind"), [(create("p"), PODS), (patch("p"), PODS), (set_status(), CONFIG_MAPS)]
)
async def test_the_gate_is_told_the_version_of_each_write(
    bench: Bench, action: Action, kind: AnyResource
) -> None:
    await bench.execute((action,))
    assert bench.gate.behind(OWNER) == {kind}
    (bench.pods if kind == PODS else bench.maps).advance("1001")
    assert bench.gate.behind(OWNER) == set()


async def test_the_gate_is_told_of_each_delete(bench: Bench) -> None:
    bench.pods.put(pod("p", 3))
    await bench.execute((delete("p"),))
    assert bench.gate.behind(OWNER) == {PODS}
    bench.pods.drop(key("p"))
    assert bench.gate.behind(OWNER) == set()


@pytest.mark.parametrize("force", [False, True])
async def test_only_what_is_to_be_deleted_by_force_is(bench: Bench, force: bool) -> None:
    await bench.execute((replace(delete("p"), force=force),))
    (call,) = bench.cluster.calls
    assert (call.verb, call.name, call.force) == ("delete", "p", force)


async def test_the_gate_is_told_that_a_delete_by_force_is_at_once(bench: Bench) -> None:
    going = pod("p", 3, deletion_timestamp="2026-11-18T00:00:00Z")
    bench.pods.put(going)
    await bench.execute((Delete(Target.of(PODS, going), force=True),))
    assert bench.gate.behind(OWNER) == {PODS}
    bench.pods.drop(key("p"))
    assert bench.gate.behind(OWNER) == set()


async def test_the_gate_is_told_of_what_has_moved_on(bench: Bench) -> None:
    bench.pods.put(pod("p", 3))
    bench.cluster.fail("delete", "p", Conflict("moved on"))
    assert (await bench.execute((Delete(Target.of(PODS, pod("p", 3)), as_seen=True),))).complete
    assert bench.gate.behind(OWNER) == {PODS}
    bench.pods.put(pod("p", 4))
    assert bench.gate.behind(OWNER) == set()


async def test_an_event_does_not_shut_the_gate(bench: Bench) -> None:
    await bench.execute((emit(),))
    assert bench.gate.behind(OWNER) == set()
