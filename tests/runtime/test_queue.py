"""Whose turn it is, and when. Time is virtual: it jumps to the next thing that is due."""

import asyncio
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import key, loop_time, running

from paddle_operator.api.meta import Key
from paddle_operator.runtime.queue import LONGEST_RETRY_SECONDS, SPARE_ENTRIES, KeyQueue

pytestmark = pytest.mark.looptime

A, B, C = key("a"), key("b"), key("c")
PAUSE = 0.05


async def taken_at(queue: KeyQueue, wanted: Key) -> float:
    assert await queue.take() == wanted
    return loop_time()


async def is_silent(queue: KeyQueue, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await queue.take()
    except TimeoutError:
        return True
    return False


async def test_keys_come_in_the_order_in_which_they_were_added() -> None:
    queue = KeyQueue()
    for one in (C, A, B):
        queue.add(one)
    assert [await queue.take() for _ in range(3)] == [C, A, B]


async def test_a_key_that_was_added_often_comes_once() -> None:
    queue = KeyQueue()
    for _ in range(5):
        queue.add(A)
    assert len(queue) == 1
    queue.done(await queue.take())
    assert await is_silent(queue, 100)


@pytest.mark.parametrize("delays", [(5, 2, 9), (2, 5, 9), (9, 5, 2)])
async def test_of_several_wishes_the_earliest_counts(delays: tuple[float, ...]) -> None:
    queue = KeyQueue()
    for delay in delays:
        queue.add(A, delay)
    assert await taken_at(queue, A) == pytest.approx(2)
    queue.done(A)
    assert await is_silent(queue, 100)


async def test_an_earlier_wish_wakes_who_already_waits_for_a_later_one() -> None:
    queue = KeyQueue()
    queue.add(A, 50)
    asyncio.get_running_loop().call_later(1, queue.add, B)
    assert await taken_at(queue, B) == pytest.approx(1)
    assert await taken_at(queue, A) == pytest.approx(50)


async def test_no_key_is_taken_twice_at_a_time() -> None:
    queue = KeyQueue()
    queue.add(A)
    await queue.take()
    queue.add(A)
    assert await is_silent(queue, 100)


async def test_a_key_that_changed_while_taken_comes_again() -> None:
    queue = KeyQueue()
    queue.add(A)
    await queue.take()
    queue.add(A)
    await asyncio.sleep(3)
    queue.done(A)
    assert await taken_at(queue, A) == pytest.approx(3 + PAUSE)


async def test_between_two_turns_of_a_key_there_is_a_pause_and_others_do_not_wait_for_it() -> None:
    queue = KeyQueue()
    queue.add(A)
    queue.done(await queue.take())
    queue.add(A)
    queue.add(B)
    assert await taken_at(queue, B) == 0
    assert await taken_at(queue, A) == pytest.approx(PAUSE)


async def test_failures_double_the_delay_up_to_a_minute_and_a_success_starts_afresh() -> None:
    queue = KeyQueue()
    delays = [queue.retry(A) for _ in range(11)]
    assert delays == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 60, 60]
    queue.succeeded(A)
    assert queue.retry(A) == 0.2


async def test_failures_of_long_ago_are_forgotten_also_without_a_success() -> None:
    queue = KeyQueue()
    for _ in range(9):
        queue.retry(A)
    await asyncio.sleep(LONGEST_RETRY_SECONDS)
    assert queue.retry(A) == 60
    await asyncio.sleep(2 * LONGEST_RETRY_SECONDS + 1)
    assert queue.retry(A) == 0.2


async def test_one_key_fails_and_another_is_not_delayed() -> None:
    queue = KeyQueue()
    for _ in range(10):
        queue.retry(A)
    assert queue.retry(B) == 0.2


async def test_two_thousand_failures_do_not_overflow() -> None:
    queue = KeyQueue()
    assert [queue.retry(A) for _ in range(2000)][-1] == LONGEST_RETRY_SECONDS
    assert len(queue) == 1


async def test_a_failing_key_is_not_hurried_by_changes() -> None:
    queue = KeyQueue()
    queue.add(A)
    await queue.take()
    queue.add(A)  # a change while it is worked on
    queue.retry(A)
    queue.retry(A)
    queue.done(A)
    queue.add(A)  # and one after
    assert await taken_at(queue, A) == pytest.approx(0.4)


async def test_a_wish_for_later_does_not_delay_a_retry() -> None:
    queue = KeyQueue()
    queue.add(A, 600)
    queue.retry(A)
    assert await taken_at(queue, A) == pytest.approx(0.2)


async def test_forgetting_keeps_a_wish_that_came_since_and_drops_the_back_off() -> None:
    queue = KeyQueue()
    queue.add(A)
    await queue.take()
    for _ in range(9):
        queue.retry(A)
    queue.forget(A)
    queue.add(A)
    queue.done(A)
    await queue.take()
    queue.done(A)
    assert queue.retry(A) == 0.2


def memory_of(queue: KeyQueue) -> int:
    kept = (queue._heap, queue._due, queue._taken, queue._not_before, queue._failures, queue._gone)
    return sum(map(len, kept))


async def test_keys_that_came_and_went_leave_nothing_behind() -> None:
    queue = KeyQueue()
    for number in range(400):
        one = key(f"job-{number}")
        queue.add(one, 3600)  # a deadline that its end makes pointless
        queue.add(one)
        assert await queue.take() == one
        queue.retry(one)
        queue.done(one)
        assert await queue.take() == one
        queue.forget(one)
        queue.done(one)
    assert len(queue) == 0
    assert memory_of(queue) <= SPARE_ENTRIES + 1


async def test_overtaken_wishes_for_a_far_day_do_not_pile_up() -> None:
    queue = KeyQueue()
    for _ in range(600):
        queue.add(A, 7 * 86400.0)
        queue.add(A)
        queue.done(await queue.take())
    queue.add(A, 50)
    assert memory_of(queue) <= SPARE_ENTRIES + 10
    assert await queue.take() == A


async def test_many_workers_share_the_keys_and_never_the_same_one() -> None:
    queue = KeyQueue()
    turns: Counter[Key] = Counter()
    at_work: set[Key] = set()

    async def work() -> None:
        while True:
            one = await queue.take()
            assert one not in at_work
            at_work.add(one)
            await asyncio.sleep(0.3)
            at_work.remove(one)
            turns[one] += 1
            queue.done(one)

    async with running(*(work() for _ in range(8))):
        for _ in range(10):
            for number in range(20):
                queue.add(key(f"job-{number}"))
            await asyncio.sleep(0.1)
        await asyncio.sleep(20)
    assert len(turns) == 20
    assert min(turns.values()) >= 2  # first look, and the changes since
    assert max(turns.values()) <= 4  # not one for each of the ten changes
    assert len(queue) == 0


async def test_a_worker_that_is_cancelled_while_waiting_loses_no_key() -> None:
    queue = KeyQueue()
    waiting = [asyncio.create_task(queue.take()) for _ in range(3)]
    await asyncio.sleep(1)
    queue.add(A)
    waiting[0].cancel()
    waiting[1].cancel()
    assert await waiting[2] == A
    assert [task.cancelled() for task in waiting] == [True, True, False]


operations = st.lists(
    st.tuples(
        st.sampled_from(["add", "retry", "forget", "succeeded", "begin", "end"]),
        st.sampled_from([A, B]),
        st.sampled_from([0.0, 0.01, 0.3, 2.0, 500.0]),
    ),
    max_size=30,
)


@settings(deadline=None, max_examples=60)
@given(operations)
def test_no_wish_is_ever_lost(history: list[tuple[str, Key, float]]) -> None:
    asyncio.run(follow(history))


async def follow(history: list[tuple[str, Key, float]]) -> None:
    """In real time, so only what is due at once is taken; then every key with a wish must be in the heap."""
    queue = KeyQueue(pause_seconds=0.0)
    at_work: set[Key] = set()
    for verb, one, delay in history:
        if verb == "add":
            queue.add(one, delay)
        elif verb == "begin" and queue._heap:
            queue.add(one)
            at_work.update(await take_now(queue))
        elif one in at_work:
            step(queue, verb, one)
            at_work -= {one} if verb == "end" else set()
        assert queue._taken == at_work
        wished = set(queue._due) - at_work
        in_heap = {name for due, _, name in queue._heap if queue._due.get(name) == due}
        assert wished <= in_heap
    for one in at_work:
        queue.done(one)
    assert set(queue._due) <= {name for _, _, name in queue._heap}


async def take_now(queue: KeyQueue) -> list[Key]:
    try:
        async with asyncio.timeout(0):
            return [await queue.take()]
    except TimeoutError:
        return []


def step(queue: KeyQueue, verb: str, one: Key) -> None:
    match verb:
        case "retry":
            queue.retry(one)
        case "forget":
            queue.forget(one)
        case "succeeded":
            queue.succeeded(one)
        case "end":
            queue.done(one)


async def test_news_about_a_failing_key_is_held_back_for_a_second_at_most() -> None:
    queue = KeyQueue()
    for _ in range(12):
        queue.add(A)
        await queue.take()
        queue.retry(A)
        queue.done(A)
    began = loop_time()
    queue.add(A)
    assert await queue.take() == A
    assert loop_time() - began <= 1


async def test_a_closed_queue_hands_out_nothing_and_waits_for_what_it_handed_out() -> None:
    queue = KeyQueue()
    queue.add(A)
    queue.add(B)
    await queue.take()
    closing = asyncio.create_task(queue.close())
    await asyncio.sleep(1)
    assert not closing.done()
    assert await is_silent(queue, 100)
    queue.done(A)
    await closing
    assert await is_silent(queue, 100)


async def test_it_tells_how_late_a_turn_begins() -> None:
    told: list[float] = []
    queue = KeyQueue(on_take=told.append)
    queue.add(A)
    await asyncio.sleep(3)
    await queue.take()
    assert told == [pytest.approx(3)]
