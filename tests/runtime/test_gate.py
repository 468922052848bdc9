"""No decision before the cache has shown our own last write."""

from typing import cast

import pytest
from scripted import config_map, its_owner, itself, key, pod

from paddle_operator.api.core import ConfigMap, Pod
from paddle_operator.api.meta import KubeObject
from paddle_operator.api.resources import CONFIG_MAPS, PODS, AnyResource, Target
from paddle_operator.runtime.gate import CacheGate
from paddle_operator.runtime.store import Store

ME, OTHER = "uid-a", "uid-b"


class Caches:
    def __init__(self) -> None:
        self.pods = Store[Pod](its_owner)
        self.maps = Store[ConfigMap](itself)
        stores = cast("dict[AnyResource, Store[KubeObject]]", {PODS: self.pods, CONFIG_MAPS: self.maps})
        self.gate = CacheGate(stores)


@pytest.fixture
def caches() -> Caches:
    return Caches()


def test_the_gate_is_open_to_who_has_written_nothing(caches: Caches) -> None:
    assert caches.gate.behind(ME) == set()


def test_a_write_shuts_the_gate_until_the_cache_has_come_as_far(caches: Caches) -> None:
    caches.gate.wrote(ME, PODS, pod("a-0", 12))
    assert caches.gate.behind(ME) == {PODS}
    caches.pods.advance("11")
    assert caches.gate.behind(ME) == {PODS}
    caches.pods.advance("12")
    assert caches.gate.behind(ME) == set()


def test_the_newest_of_many_writes_counts_in_whatever_order_the_answers_came(caches: Caches) -> None:
    for version in (12, 15, 9):
        caches.gate.wrote(ME, PODS, pod("a-0", version))
    caches.pods.advance("14")
    assert caches.gate.behind(ME) == {PODS}
    caches.pods.advance("15")
    assert caches.gate.behind(ME) == set()


def test_versions_are_compared_as_numbers(caches: Caches) -> None:
    caches.pods.advance("9")
    caches.gate.wrote(ME, PODS, pod("a-0", 10))
    assert caches.gate.behind(ME) == {PODS}


def test_each_kind_has_to_come_as_far_by_itself(caches: Caches) -> None:
    caches.gate.wrote(ME, PODS, pod("a-0", 12))
    caches.gate.wrote(ME, CONFIG_MAPS, config_map("a", 13))
    caches.pods.advance("99")
    assert caches.gate.behind(ME) == {CONFIG_MAPS}


def test_one_owner_does_not_wait_for_the_writes_of_another(caches: Caches) -> None:
    caches.gate.wrote(OTHER, PODS, pod("b-0", 12))
    assert caches.gate.behind(ME) == set()


def test_a_write_that_was_made_and_undone_at_once_opens_the_gate_too(caches: Caches) -> None:
    """The pod came and went before we looked: the cache never holds it, but has come past it."""
    caches.gate.wrote(ME, PODS, pod("a-0", 12))
    caches.pods.drop(key("a-0"))
    caches.pods.advance("13")
    assert caches.gate.behind(ME) == set()


@pytest.mark.parametrize(
    ("shown", "is_open"),
    [
        (pod("a-0", 5), False),
        (pod("a-0", 6, deletion_timestamp="2026-11-18T00:00:00Z"), True),
        (pod("a-0", 7, uid="a namesake made later"), True),
        (None, True),
    ],
    ids=["still alive", "being deleted", "another of that name", "gone"],
)
def test_a_delete_is_seen_when_the_pod_is_no_longer_shown_alive(
    caches: Caches, shown: Pod | None, is_open: bool
) -> None:
    caches.pods.advance("5")
    caches.gate.deleted(ME, Target.of(PODS, pod("a-0", 5)))
    if shown is not None:
        caches.pods.put(shown)
    assert caches.gate.behind(ME) == (set() if is_open else {PODS})


@pytest.mark.parametrize(
    ("shown", "is_open"),
    [
        (pod("a-0", 5), False),
        (pod("a-0", 6, deletion_timestamp="2026-11-18T00:00:00Z"), False),
        (pod("a-0", 7, uid="a namesake made later"), True),
        (None, True),
    ],
    ids=["still alive", "being deleted, as it was before", "another of that name", "gone"],
)
def test_a_delete_by_force_is_seen_only_when_the_pod_is_gone(
    caches: Caches, shown: Pod | None, is_open: bool
) -> None:
    """It was on its way out all the time: that it still is would not tell that we have done anything."""
    caches.pods.advance("5")
    caches.gate.deleted(ME, Target.of(PODS, pod("a-0", 5)), at_once=True)
    if shown is not None:
        caches.pods.put(shown)
    assert caches.gate.behind(ME) == (set() if is_open else {PODS})


def test_of_two_deletes_of_one_pod_the_one_by_force_is_waited_for_longest(caches: Caches) -> None:
    going = pod("a-0", 6, deletion_timestamp="2026-11-18T00:00:00Z")
    caches.pods.put(going)
    caches.pods.advance("6")
    for at_once in (False, True):
        caches.gate.deleted(ME, Target.of(PODS, going), at_once=at_once)
    assert caches.gate.behind(ME) == {PODS}
    caches.pods.drop(key("a-0"))
    assert caches.gate.behind(ME) == set()


@pytest.mark.parametrize("at_once", [False, True])
def test_a_delete_of_what_was_asked_for_by_name_waits_until_the_cache_has_come_to_it(
    caches: Caches, at_once: bool
) -> None:
    """A cache that does not show it yet will, and only then will it show it go."""
    caches.pods.advance("4")
    caches.gate.deleted(ME, Target.of(PODS, pod("a-0", 5)), at_once=at_once)
    assert caches.gate.behind(ME) == {PODS}
    caches.pods.put(pod("a-0", 5))
    caches.pods.advance("5")
    assert caches.gate.behind(ME) == {PODS}
    caches.pods.drop(key("a-0"))
    caches.pods.advance("6")
    assert caches.gate.behind(ME) == set()


def test_a_delete_of_what_the_cache_never_shows_is_seen_when_it_has_come_past_it(caches: Caches) -> None:
    """Without our labels it is not in the watch."""
    caches.gate.deleted(ME, Target.of(PODS, pod("a-0", 5)))
    caches.pods.advance("5")
    assert caches.gate.behind(ME) == set()


@pytest.mark.parametrize("deletion_timestamp", [None, "2026-11-18T00:00:00Z"], ids=["alive", "going"])
def test_that_something_was_not_found_is_disproved_by_a_fresh_list(
    caches: Caches, deletion_timestamp: str | None
) -> None:
    """A server that does not know a kind for a moment says so of what is there."""
    shown = pod("a-0", 5, deletion_timestamp=deletion_timestamp)
    caches.pods.replace([shown], 5)
    caches.gate.deleted(ME, Target.of(PODS, shown), at_once=True)
    assert caches.gate.behind(ME) == {PODS}
    caches.pods.replace([shown], 6)
    assert caches.gate.behind(ME) == set()


def test_what_was_seen_once_is_not_asked_again(caches: Caches) -> None:
    caches.pods.advance("5")
    caches.gate.deleted(ME, Target.of(PODS, pod("a-0", 5)))
    assert caches.gate.behind(ME) == set()
    caches.pods.put(pod("a-0", 5))
    assert caches.gate.behind(ME) == set()


def test_nothing_is_kept_of_who_is_forgotten_or_has_seen_all(caches: Caches) -> None:
    caches.gate.wrote(ME, PODS, pod("a-0", 12))
    caches.gate.wrote(OTHER, PODS, pod("b-0", 12))
    caches.gate.forget(ME)
    caches.gate.forget("never heard of")
    caches.pods.advance("12")
    assert caches.gate.behind(OTHER) == set()
    assert not caches.gate._unseen


def test_a_refusal_as_outdated_shuts_the_gate_until_the_change_is_shown(caches: Caches) -> None:
    caches.pods.put(pod("a-0", 12))
    caches.gate.outdated(ME, Target.of(PODS, pod("a-0", 12)))
    assert caches.gate.behind(ME) == {PODS}
    caches.pods.put(pod("a-1", 14))
    assert caches.gate.behind(ME) == {PODS}
    caches.pods.put(pod("a-0", 13))
    assert caches.gate.behind(ME) == set()


def test_a_fresh_list_opens_the_gate_also_if_nothing_had_moved_on(caches: Caches) -> None:
    """A webhook, say, may answer 409 to a write that it does not like."""
    caches.pods.put(pod("a-0", 12))
    caches.gate.outdated(ME, Target.of(PODS, pod("a-0", 12)))
    caches.pods.replace([pod("a-0", 12)], 20)
    assert caches.gate.behind(ME) == set()


def test_what_was_shown_while_the_refusal_was_on_its_way_does_not_shut_the_gate(caches: Caches) -> None:
    """Or it would stay shut for ever: nothing newer is to come."""
    caches.pods.put(pod("a-0", 13))
    caches.gate.outdated(ME, Target.of(PODS, pod("a-0", 12)))
    assert caches.gate.behind(ME) == set()
