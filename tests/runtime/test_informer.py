"""List once, then follow: what the cache holds, and how often the server is asked, in virtual time."""

import asyncio
import gc
import weakref
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from scripted import (
    FOR_EVER,
    Script,
    ScriptedCluster,
    WatchStep,
    added,
    bookmark,
    config_map,
    deleted,
    itself,
    key,
    listing,
    loop_time,
    modified,
    running,
    unreadable,
)
from structlog.testing import capture_logs

from paddle_operator.api.core import ConfigMap
from paddle_operator.api.meta import Key
from paddle_operator.api.resources import CONFIG_MAPS
from paddle_operator.cluster import ApiError, Change, Forbidden, Gone, NotFound, Scope, Unreachable
from paddle_operator.runtime.informer import (
    LONGEST_REST_SECONDS,
    SILENCE_SECONDS,
    Follow,
    Informer,
    Rest,
    Sync,
)
from paddle_operator.runtime.store import Store

pytestmark = pytest.mark.looptime


class Watcher:
    """An informer of config maps on a scripted cluster, and the keys that it reported."""

    def __init__(self, cluster: ScriptedCluster | None = None) -> None:
        self.cluster = cluster or ScriptedCluster()
        self.script: Script = self.cluster.scripts["configmaps"]
        self.store = Store[ConfigMap](itself)
        self.reported: list[Key] = []
        self.informer = Informer(
            self.cluster, CONFIG_MAPS, Scope(), self.store, on_change=self.reported.append
        )

    async def run_for(self, seconds: float) -> None:
        async with running(self.informer.run()):
            await asyncio.sleep(seconds)

    @property
    def asked(self) -> list[str]:
        """Such as ["list", "watch 7"]."""
        return [f"{call.verb} {call.name}".strip() for call in self.cluster.calls]

    @property
    def held(self) -> dict[str, str]:
        found = self.store._objects.values()
        return {one.metadata.name: one.metadata.resource_version for one in found}

    def times(self, verb: str) -> list[float]:
        return [call.at for call in self.cluster.asked(verb)]


@pytest.fixture
async def watcher() -> Watcher:
    return Watcher()


async def test_it_lists_and_then_follows_from_the_version_of_the_list(watcher: Watcher) -> None:
    watcher.script.lists = [listing(7, config_map("a", 3), config_map("b", 5))]
    watcher.script.watches = [
        [added(config_map("c", 8)), modified(config_map("a", 9)), deleted(config_map("b", 10)), FOR_EVER]
    ]
    assert not watcher.informer.synced.is_set()
    await watcher.run_for(1)
    assert watcher.informer.synced.is_set()
    assert watcher.asked == ["list", "watch 7"]
    assert watcher.held == {"a": "9", "c": "8"}
    assert set(watcher.reported[:2]) == {key("a"), key("b")}
    assert watcher.reported[2:] == [key("c"), key("a"), key("b")]
    assert watcher.store.progress == 10


async def test_what_a_list_shows_is_told_in_the_same_order_in_every_process(watcher: Watcher) -> None:
    names = [f"map-{number:02}" for number in range(20)]
    watcher.script.lists = [listing(7, *(config_map(name) for name in reversed(names)))]
    await watcher.run_for(1)
    assert watcher.reported == [key(name) for name in names]


async def test_bookmarks_advance_progress_and_touch_no_key(watcher: Watcher) -> None:
    watcher.script.watches = [[bookmark(50)]]
    await watcher.run_for(0.1)
    assert watcher.store.progress == 50
    assert not watcher.reported


async def test_who_is_told_of_a_change_finds_it_in_the_store_and_the_progress_too(watcher: Watcher) -> None:
    watcher.script.watches = [[added(config_map("a", 8)), FOR_EVER]]
    seen: list[tuple[str | None, int]] = []

    def look(one: Key) -> None:
        found = watcher.store.get(one)
        seen.append((found.metadata.resource_version if found else None, watcher.store.progress))

    watcher.informer._on_change = look
    await watcher.run_for(1)
    assert seen == [("8", 8)]


async def test_a_watch_that_is_cut_goes_on_from_the_last_version_without_a_list(watcher: Watcher) -> None:
    watcher.script.lists = [listing(7)]
    watcher.script.watches = [
        [100.0, bookmark(7), 100.0],
        [added(config_map("a", 8)), 120.0, bookmark(20), 60.0],
        [5.0, Unreachable("reset by peer")],
        [FOR_EVER],
    ]
    await watcher.run_for(500)
    assert watcher.asked == ["list", "watch 7", "watch 7", "watch 20", "watch 20"]
    assert watcher.held == {"a": "8"}


async def test_a_watch_that_is_cut_in_the_middle_repeats_nothing_that_it_told(watcher: Watcher) -> None:
    watcher.script.watches = [[added(config_map("a", 8)), Unreachable("cut")], [FOR_EVER]]
    await watcher.run_for(10)
    assert watcher.asked == ["list", "watch 1", "watch 8"]


async def test_gone_means_listing_again(watcher: Watcher) -> None:
    watcher.script.lists = [listing(7, config_map("a", 3)), listing(90, config_map("b", 80))]
    watcher.script.watches = [[60.0, Gone("too old")], [FOR_EVER]]
    await watcher.run_for(100)
    assert watcher.asked == ["list", "watch 7", "list", "watch 90"]
    assert watcher.held == {"b": "80"}
    assert watcher.times("list") == [0, 60]


async def test_a_relist_reports_exactly_the_differences(watcher: Watcher) -> None:
    same, gone, bad = config_map("same", 2), config_map("gone", 3), unreadable("bad", 4)
    watcher.script.lists = [
        listing(7, same, gone, config_map("changed", 5), bad),
        listing(90, same, config_map("changed", 80), config_map("new", 81), bad),
    ]
    watcher.script.watches = [[60.0, Gone("too old")], [FOR_EVER]]
    with capture_logs() as logs:
        await watcher.run_for(100)
    assert set(watcher.reported[4:]) == {key("gone"), key("changed"), key("new")}
    assert len(watcher.reported) == 7
    assert [line["key"] for line in logs if line["log_level"] == "error"] == ["team/bad"]


@pytest.mark.parametrize("end", [None, Gone("too old"), Unreachable("refused")])
async def test_a_watch_that_ends_at_once_every_time_does_not_become_a_hot_loop(
    watcher: Watcher, end: ApiError | None
) -> None:
    watcher.script.watches = [[] if end is None else [end] for _ in range(10_000)]
    await watcher.run_for(600)
    # 0.25 + 0.5 + ... + 16 s take 32 s; then one in 30 s.
    assert 20 <= len(watcher.times("watch")) <= 30
    assert len(watcher.times("list")) <= (30 if isinstance(end, Gone) else 1)
    gaps = [
        late - early for early, late in zip(watcher.times("watch"), watcher.times("watch")[1:], strict=False)
    ]
    assert gaps[:4] == pytest.approx([0.25, 0.5, 1, 2])
    assert max(gaps) == pytest.approx(LONGEST_REST_SECONDS)


async def test_a_watch_that_tells_one_thing_and_hangs_up_does_not_become_a_hot_loop(watcher: Watcher) -> None:
    watcher.script.watches = [[bookmark(version)] for version in range(10, 1000)]
    await watcher.run_for(60)
    assert len(watcher.times("watch")) <= 60 / 0.25 + 1


async def test_a_server_that_refuses_lists_is_asked_less_and_less(watcher: Watcher) -> None:
    watcher.script.lists = [Forbidden("no")]
    await watcher.run_for(600)
    assert not watcher.informer.synced.is_set()
    times = watcher.times("list")
    assert times[:5] == pytest.approx([0, 0.25, 0.75, 1.75, 3.75])
    assert times[-1] - times[-2] == pytest.approx(LONGEST_REST_SECONDS)


async def test_a_list_that_was_read_in_part_is_not_kept_with_its_error(watcher: Watcher) -> None:
    watcher.script.lists = [Unreachable("cut"), Unreachable("cut")]
    error = weakref.ref(watcher.script.lists[0])
    await watcher.run_for(0.1)
    assert (watcher.informer.trouble, len(watcher.times("list"))) == ("cut", 1)
    gc.collect()
    assert error() is None


async def test_a_watch_that_works_again_ends_the_back_off(watcher: Watcher) -> None:
    nine: list[list[WatchStep]] = [[Unreachable("down")] for _ in range(9)]
    watcher.script.watches = [
        *nine,
        [bookmark(9), Unreachable("down")],
        [100.0, Unreachable("down")],  # quiet, but it lasted
        [FOR_EVER],
    ]
    await watcher.run_for(600)
    tenth, eleventh, last = watcher.times("watch")[9:12]
    assert eleventh - tenth == pytest.approx(0.25)
    assert last - eleventh == pytest.approx(100.25)


async def test_two_thousand_failures_do_not_overflow(watcher: Watcher) -> None:
    rests = [watcher.informer._rest(None, Sync()).seconds for _ in range(2000)]
    assert rests[-1] == LONGEST_REST_SECONDS


async def test_a_missing_definition_is_named_in_the_log(watcher: Watcher) -> None:
    watcher.script.lists = [NotFound("page not found")]
    with capture_logs() as logs:
        assert await watcher.informer.step(Sync()) == Rest(0.25, Sync())
    assert logs[0]["hint"] == "is the CustomResourceDefinition of configmaps installed?"


async def test_a_watch_that_stays_silent_is_taken_for_dead_and_everything_listed_again(
    watcher: Watcher,
) -> None:
    watcher.script.lists = [listing(7), listing(9, config_map("missed", 8))]
    await watcher.run_for(SILENCE_SECONDS + 1)
    assert watcher.asked == ["list", "watch 7", "list", "watch 9"]
    assert watcher.held == {"missed": "8"}


async def test_bookmarks_keep_a_quiet_watch_alive(watcher: Watcher) -> None:
    watcher.script.watches = [[step for minute in range(60) for step in (60.0, bookmark(10 + minute))]]
    await watcher.run_for(3599)
    assert watcher.asked == ["list", "watch 1"]


async def test_a_time_out_inside_the_cluster_is_not_taken_for_silence(watcher: Watcher) -> None:
    watcher.script.watches = [[bookmark(8), 5.0, TimeoutError("read timed out")], [FOR_EVER]]
    with capture_logs() as logs:
        await watcher.run_for(60)
    assert watcher.asked == ["list", "watch 1", "watch 8"]
    assert "read timed out" in str(logs)


async def test_cancelling_ends_it_even_while_it_gives_up_a_silent_watch(watcher: Watcher) -> None:
    task = asyncio.create_task(watcher.informer.run())
    await asyncio.sleep(1)
    watcher.informer.list_again()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


class TestListAgain:
    async def test_gives_up_the_watch_at_hand(self, watcher: Watcher) -> None:
        watcher.script.lists = [listing(7), listing(9, config_map("missed", 8))]
        async with running(watcher.informer.run()):
            await asyncio.sleep(20)
            watcher.informer.list_again()
            await asyncio.sleep(1)
        assert watcher.asked == ["list", "watch 7", "list", "watch 9"]
        assert watcher.held == {"missed": "8"}

    async def test_does_nothing_when_no_watch_is_open(self, watcher: Watcher) -> None:
        watcher.informer.list_again()
        watcher.script.lists = [Forbidden("no"), listing(7)]
        async with running(watcher.informer.run()):
            await asyncio.sleep(0.1)
            watcher.informer.list_again()
            await asyncio.sleep(1)
        assert watcher.asked == ["list", "list", "watch 7"]

    async def test_may_be_asked_again_while_a_watch_is_slow_to_close(self) -> None:
        class SlowToClose(ScriptedCluster):
            async def watch(self, *args: Any) -> AsyncGenerator[Change[Any], None]:
                try:
                    async for change in super().watch(*args):
                        yield change
                finally:
                    await asyncio.sleep(3)

        watcher = Watcher(SlowToClose())
        async with running(watcher.informer.run()):
            await asyncio.sleep(20)
            for _ in range(10):
                watcher.informer.list_again()
                await asyncio.sleep(0.2)
            await asyncio.sleep(2)
        assert watcher.asked == ["list", "watch 1", "list", "watch 1"]

    async def test_asked_over_and_over_does_not_become_a_hot_loop(self, watcher: Watcher) -> None:
        async with running(watcher.informer.run()):
            for _ in range(600):
                watcher.informer.list_again()
                await asyncio.sleep(0.1)
        assert loop_time() == pytest.approx(60)
        assert len(watcher.times("list")) <= 12


class TestAnObjectThatCannotBeRead:
    async def test_in_a_list_harms_no_other(self, watcher: Watcher) -> None:
        watcher.script.lists = [listing(7, config_map("a", 3), unreadable("bad", 4), config_map("b", 5))]
        with capture_logs() as logs:
            await watcher.run_for(1)
        assert watcher.held == {"a": "3", "b": "5"}
        assert watcher.store.unreadable(key("bad")) is not None
        assert key("bad") in watcher.reported
        assert [line["key"] for line in logs if line["log_level"] == "error"] == ["team/bad"]

    async def test_in_a_watch_is_passed_over_and_its_old_version_is_not_acted_upon(
        self, watcher: Watcher
    ) -> None:
        watcher.script.lists = [listing(7, config_map("a", 3), config_map("bad", 4))]
        watcher.script.watches = [[modified(unreadable("bad", 8)), modified(config_map("a", 9)), FOR_EVER]]
        with capture_logs() as logs:
            await watcher.run_for(1)
        assert watcher.held == {"a": "9"}
        assert watcher.store.progress == 9
        assert watcher.reported[2:] == [key("bad"), key("a")]
        assert [line["key"] for line in logs if line["log_level"] == "error"] == ["team/bad"]

    async def test_may_be_mended_or_deleted(self, watcher: Watcher) -> None:
        watcher.script.lists = [listing(7, unreadable("x", 3), unreadable("y", 4))]
        watcher.script.watches = [[modified(config_map("x", 8)), deleted(unreadable("y", 9)), FOR_EVER]]
        await watcher.run_for(1)
        assert watcher.held == {"x": "8"}
        assert watcher.store.unreadable(key("x")) is watcher.store.unreadable(key("y")) is None
        assert watcher.reported[2:] == [key("x"), key("y")]


@pytest.mark.parametrize("state", [Sync(), Follow("1")])
async def test_a_rest_leads_to_what_it_was_for(watcher: Watcher, state: Sync | Follow) -> None:
    assert await watcher.informer.step(Rest(9, state)) == state
    assert loop_time() == 9


async def test_trouble_is_told_once_and_then_once_a_minute_and_its_end_too(watcher: Watcher) -> None:
    watcher.script.lists = [*[Unreachable("nobody answers")] * 12, listing(7)]
    watcher.script.watches = [[FOR_EVER]]
    with capture_logs() as logs:
        await watcher.run_for(100)
        assert watcher.informer.trouble == "nobody answers"
        await watcher.run_for(250)
    assert watcher.informer.trouble == ""
    told = [line["event"] for line in logs if line["log_level"] in {"warning", "info"}]
    assert told[0] == "cannot follow"
    assert told.count("follows again") == 1
    assert 2 <= told.count("cannot follow") <= 7
