"""Merge patches: what is sent is what changed, and applying it gives what was wanted."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddle_operator.plan import Plan, merge_patch

Json = dict[str, Any]


def applied(target: Any, patch: Any) -> Any:
    """MergePatch of RFC 7386, section 2."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = applied(result.get(name), value)
    return result


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        ({}, {}, {}),
        ({"a": 1}, {"a": 1}, {}),
        ({}, {"a": 1}, {"a": 1}),
        ({"a": 1}, {}, {"a": None}),
        ({"a": 1}, {"a": 2}, {"a": 2}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, {"a": {"c": 3}}),
        ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": None}}),
        ({"a": {"b": 1}}, {"a": 1}, {"a": 1}),
        ({"a": 1}, {"a": {}}, {"a": {}}),
        ({"a": 1}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": [1, 2]}, {"a": [1]}, {"a": [1]}),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, {"a": [{"b": 2}]}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, {}),
    ],
)
def test_a_patch_holds_what_changed_and_nothing_else(old: Json, new: Json, patch: Json) -> None:
    assert merge_patch(old, new) == patch


SCALARS = st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3)
NAMES = st.sampled_from("abc")
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=3)


@given(OBJECTS, OBJECTS)
def test_applying_the_patch_to_the_old_gives_the_new(old: Json, new: Json) -> None:
    assert applied(old, merge_patch(old, new)) == new


@given(OBJECTS, OBJECTS)
def test_a_patch_is_empty_exactly_if_nothing_changed(old: Json, new: Json) -> None:
    assert (merge_patch(old, new) == {}) == (old == new)
    assert merge_patch(old, old) == {}


@given(OBJECTS, OBJECTS)
def test_a_second_application_changes_nothing(old: Json, new: Json) -> None:
    patch = merge_patch(old, new)
    assert applied(applied(old, patch), patch) == new


def test_an_empty_plan_says_do_nothing_and_sleep() -> None:
    assert (Plan().steps, Plan().wake_at) == ((), None)
