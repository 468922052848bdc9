"""The cache: what it shows, by which key, and what it says has changed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import config_map, its_owner, itself, key, pod, unreadable

from paddle_operator.api.core import ConfigMap, Pod
from paddle_operator.api.meta import KubeObject, Unreadable
from paddle_operator.runtime.store import Store


@pytest.fixture
def pods() -> Store[Pod]:
    return Store(its_owner)


def test_an_object_is_found_by_its_own_key_and_by_the_key_it_concerns(pods: Store[Pod]) -> None:
    mine, other = pod("a-0", owner="a"), pod("b-0", owner="b")
    assert pods.put(mine) == {key("a")}
    assert pods.put(other) == {key("b")}
    assert pods.get(key("a-0")) == mine
    assert pods.concerning(key("a")) == (mine,)
    assert pods.concerning(key("nobody")) == ()
    assert len(pods) == 2


def test_an_object_that_concerns_nobody_is_kept_but_touches_no_key(pods: Store[Pod]) -> None:
    stray = pod("stray")
    assert pods.put(stray) == set()
    assert pods.get(key("stray")) == stray
    assert pods.drop(key("stray")) == set()
    assert pods.get(key("stray")) is None


def test_what_is_not_to_be_kept_is_not() -> None:
    pods = Store[Pod](its_owner, keep=lambda one: one if its_owner(one) else None)
    assert pods.put(pod("a-0", 1)) == set()
    assert len(pods) == 0
    assert pods.put(pod("a-0", 2, owner="a")) == {key("a")}
    assert pods.put(pod("a-0", 3)) == {key("a")}, "it was ours"
    assert len(pods) == 0


def test_a_change_of_owner_touches_the_old_and_the_new_one(pods: Store[Pod]) -> None:
    pods.put(pod("a-0", 1, owner="a"))
    assert pods.put(pod("a-0", 2, owner="b")) == {key("a"), key("b")}
    assert pods.concerning(key("a")) == ()
    assert len(pods.concerning(key("b"))) == 1


def test_the_same_name_in_two_namespaces_is_two_objects() -> None:
    store = Store[ConfigMap](itself)
    here, there = config_map("a"), ConfigMap(metadata=config_map("a").metadata.__class__("a", "other"))
    store.put(here)
    store.put(there)
    assert len(store) == 2
    assert store.get(key("a")) == here


def test_dropping_what_is_not_there_touches_nothing(pods: Store[Pod]) -> None:
    assert pods.drop(key("a-0")) == set()


def test_an_unreadable_version_hides_the_readable_one_before_it(pods: Store[Pod]) -> None:
    pods.put(pod("a-0", 1, owner="a"))
    assert pods.put(unreadable("a-0", 2)) == {key("a"), key("a-0")}
    assert pods.get(key("a-0")) is None
    assert pods.concerning(key("a")) == ()
    assert pods.unreadable(key("a-0")) == unreadable("a-0", 2)


def test_a_readable_version_ends_an_unreadable_one(pods: Store[Pod]) -> None:
    pods.put(unreadable("a-0", 1))
    assert key("a") in pods.put(pod("a-0", 2, owner="a"))
    assert pods.unreadable(key("a-0")) is None
    assert len(pods.concerning(key("a"))) == 1


def test_the_end_of_an_unreadable_object_touches_its_own_key(pods: Store[Pod]) -> None:
    pods.put(unreadable("a-0"))
    assert pods.drop(key("a-0")) == {key("a-0")}
    assert pods.unreadable(key("a-0")) is None


def test_a_fresh_list_touches_exactly_what_differs() -> None:
    store = Store[ConfigMap](itself)
    for name in ("same", "changed", "gone"):
        store.put(config_map(name, 1))
    for name in ("still unreadable", "gone unreadable", "worse unreadable"):
        store.put(unreadable(name, 1))
    store.put(config_map("became unreadable", 1))
    listed: list[ConfigMap | Unreadable] = [
        config_map("same", 1),
        config_map("changed", 2),
        config_map("new", 3),
        unreadable("still unreadable", 1),
        unreadable("worse unreadable", 4),
        unreadable("became unreadable", 5),
    ]
    expected = {"changed", "gone", "new", "gone unreadable", "worse unreadable", "became unreadable"}
    assert store.replace(listed, 7) == {key(name) for name in expected}
    assert store.progress == 7
    assert store.replace(listed, 8) == set()
    assert store.get(key("gone")) is None
    assert store.unreadable(key("gone unreadable")) is None


def test_progress_never_goes_back_by_a_change_that_comes_late(pods: Store[Pod]) -> None:
    pods.advance("9")
    pods.advance("10")
    pods.advance("9")
    assert pods.progress == 10


things = st.builds(
    lambda name, version, owner, readable: (
        pod(name, version, owner=owner) if readable else unreadable(name, version)
    ),
    st.sampled_from("wxyz"),
    st.integers(1, 5),
    st.sampled_from(["", "a", "b"]),
    st.booleans(),
)
moves = st.lists(st.one_of(things, st.sampled_from("wxyz"), st.lists(things, max_size=4)), max_size=12)


@given(moves)
def test_whatever_happens_the_index_agrees_with_the_objects(
    history: list[Pod | Unreadable | str | list[Pod | Unreadable]],
) -> None:
    store = Store[Pod](its_owner)
    expected: dict[str, KubeObject] = {}
    for move in history:
        if isinstance(move, str):
            store.drop(key(move))
            expected.pop(move, None)
        elif isinstance(move, list):
            store.replace(move, 1)
            shown = {name: thing.metadata.resource_version for name, thing in expected.items()}
            # The server never gives one version of one name two contents; our little generator does.
            fresh = {one.metadata.name: one for one in move}
            expected = {
                name: expected[name] if shown.get(name) == one.metadata.resource_version else one
                for name, one in fresh.items()
            }
            if len(fresh) < len(move):
                return
        else:
            store.put(move)
            expected[move.metadata.name] = move
        readable = {name: thing for name, thing in expected.items() if isinstance(thing, Pod)}
        assert len(store) == len(readable)
        for owner in ("a", "b"):
            found = {one.metadata.name for one in store.concerning(key(owner))}
            assert found == {name for name, one in readable.items() if its_owner(one) == key(owner)}
    for name in "wxyz":
        store.drop(key(name))
    assert not store._objects
    assert not store._unreadable
    assert not store._by_concern
