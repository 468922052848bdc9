"""Conditions and ownership, as tables."""

from typing import Any

import make
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddle_operator.api.meta import Condition, Key, ObjectMeta, OwnerReference, set_condition

EARLIER = make.NOW - make.seconds(60)


def condition(kind: str, status: str = "True", **fields: Any) -> Condition:
    return Condition(type=kind, status=status, last_transition_time=make.NOW, **fields)


CREATED = Condition(type="Created", status="True", reason="PodsCreated", last_transition_time=EARLIER)
RUNNING = Condition(type="Running", status="False", last_transition_time=EARLIER)


def test_a_new_condition_comes_last() -> None:
    wanted = condition("Failed")
    assert set_condition((CREATED, RUNNING), wanted) == (CREATED, RUNNING, wanted)


def test_a_known_condition_keeps_its_place_and_leaves_the_others_alone() -> None:
    wanted = condition("Created", "False")
    assert set_condition((CREATED, RUNNING), wanted) == (wanted, RUNNING)


def test_the_time_of_a_condition_moves_with_its_status() -> None:
    (moved,) = set_condition((RUNNING,), condition("Running", "True"))
    assert moved.last_transition_time == make.NOW


def test_a_new_reason_alone_does_not_move_the_time() -> None:
    (same,) = set_condition((CREATED,), condition("Created", "True", reason="Other", message="words"))
    assert (same.last_transition_time, same.reason, same.message) == (EARLIER, "Other", "words")


conditions = st.builds(
    condition, st.sampled_from("ABC"), st.sampled_from(["True", "False"]), reason=st.sampled_from("xy")
)


@given(st.lists(conditions, max_size=8))
def test_there_is_one_condition_a_type_and_setting_it_again_changes_nothing(wanted: list[Condition]) -> None:
    held: tuple[Condition, ...] = ()
    for one in wanted:
        held = set_condition(held, one)
        assert set_condition(held, one) == held
    assert [one.type for one in held] == list(dict.fromkeys(one.type for one in wanted))


OWNER = OwnerReference(api_version="v1", kind="PaddleJob", name="a", uid="1", controller=True)
BYSTANDER = OwnerReference(api_version="v1", kind="PaddleJob", name="b", uid="2", controller=False)


@pytest.mark.parametrize(
    ("owners", "uid", "controlled"),
    [
        ((), "1", False),
        ((), "", False),
        ((OWNER,), "1", True),
        ((OWNER,), "2", False),
        ((BYSTANDER,), "2", False),
        ((BYSTANDER, OWNER), "1", True),
        ((BYSTANDER, OWNER), "2", False),
    ],
)
def test_only_the_controller_by_uid_owns(
    owners: tuple[OwnerReference, ...], uid: str, controlled: bool
) -> None:
    assert ObjectMeta(owner_references=owners).controlled_by(uid) is controlled


def test_an_object_is_terminating_once_it_has_a_time_of_deletion() -> None:
    assert not ObjectMeta().terminating
    assert ObjectMeta(deletion_timestamp=make.NOW).terminating


def test_a_key_reads_as_people_type_it() -> None:
    assert str(ObjectMeta(namespace="team", name="resnet").key) == "team/resnet"
    assert ObjectMeta(namespace="team", name="resnet").key == Key("team", "resnet")


def test_metadata_reads_the_names_of_the_wire_and_passes_over_the_rest() -> None:
    text = b"""{"name": "a", "resourceVersion": "7", "deletionTimestamp": "2026-11-18T12:00:00Z",
               "ownerReferences": [{"apiVersion": "v1", "uid": "1", "blockOwnerDeletion": true}],
               "managedFields": [{"manager": "kubectl"}]}"""
    read = msgspec.json.decode(text, type=ObjectMeta)
    assert (read.resource_version, read.deletion_timestamp) == ("7", make.NOW)
    assert read.owner_references == (OwnerReference(api_version="v1", uid="1"),)
