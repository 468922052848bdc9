"""Bugs of what is known: caches, the gate before a decision, and the watches that fill them."""

import asyncio
from collections.abc import Iterable
from typing import Any

import msgspec
from pytest import MonkeyPatch  # noqa: PT013 (it is in every line here)

from paddle_operator import app
from paddle_operator.api.meta import Key, ObjectMeta, Unreadable
from paddle_operator.api.resources import Resource, Target
from paddle_operator.cluster import ApiError, Scope
from paddle_operator.kube import client, errors
from paddle_operator.runtime import informer
from paddle_operator.runtime.controller import GATE_PATIENCE_SECONDS, Controller, Recollection
from paddle_operator.runtime.gate import CacheGate
from paddle_operator.runtime.informer import Informer, Rest
from paddle_operator.runtime.queue import KeyQueue
from paddle_operator.runtime.store import Store
from seeded_bugs.bug import ANOTHER_END, simulated, tabled

LATE = ("late watches", "completes-and-is-cleaned")


@simulated(
    1,
    2,
    breaks={"no_decision_forgets_our_own_writes", "nothing_known_to_exist_is_made_again"},
    hunts=[LATE],
)
def gate_is_always_open(patch: MonkeyPatch) -> None:
    patch.setattr(CacheGate, "behind", lambda *_: set())


@simulated(29, breaks={"nothing_is_deleted_twice"}, hunts=[LATE])
def gate_forgets_deletes(patch: MonkeyPatch) -> None:
    patch.setattr(CacheGate, "deleted", lambda *_: None)


@tabled(fails=["tests/runtime/test_gate.py::test_that_something_was_not_found_is_disproved_by_a_fresh_list"])
def what_was_not_found_once_is_waited_for_for_ever(patch: MonkeyPatch) -> None:
    sound = CacheGate._is_shown_alive

    def stubborn(gate: Any, target: Target, lists: int | None) -> bool:
        shown = gate._stores[target.resource].get(target.key)
        return sound(gate, target, lists) or (shown is not None and not shown.metadata.terminating)

    patch.setattr(CacheGate, "_is_shown_alive", stubborn)


@tabled(
    2,
    fails=[
        (
            "tests/runtime/test_controller.py::TestTheGate::"
            "test_that_stays_shut_makes_the_kind_list_again_and_only_that_kind"
        ),
    ],
)
def the_gate_opens_when_its_patience_ends(patch: MonkeyPatch) -> None:
    sound = Controller._is_gate_shut

    def impatient(office: Any, key: Key, uid: str, memory: Recollection) -> bool:
        now = asyncio.get_running_loop().time()
        since = memory.gate_shut_since
        if since is not None and now - since > GATE_PATIENCE_SECONDS:
            office._gate.forget(uid)
        return sound(office, key, uid, memory)

    patch.setattr(Controller, "_is_gate_shut", impatient)


@tabled(
    3,
    fails=[
        "tests/runtime/test_controller.py::test_an_object_made_again_under_the_same_name_starts_afresh",
        "tests/runtime/test_controller.py::test_failures_are_not_counted_against_a_namesake_made_later",
    ],
)
def nothing_is_forgotten_when_a_namesake_comes(patch: MonkeyPatch) -> None:
    patch.setattr(Controller, "_forget_others", lambda *_: None)


@tabled(3, fails=["tests/runtime/test_gate.py::test_one_owner_does_not_wait_for_the_writes_of_another"])
def all_jobs_share_one_gate(patch: MonkeyPatch) -> None:
    wrote, behind = CacheGate.wrote, CacheGate.behind
    patch.setattr(CacheGate, "wrote", lambda gate, _, *what: wrote(gate, "", *what))
    patch.setattr(CacheGate, "behind", lambda gate, _: behind(gate, ""))


@tabled(
    9,
    fails=[
        "tests/runtime/test_store.py::test_a_fresh_list_touches_exactly_what_differs",
        "tests/runtime/test_informer.py::test_a_relist_reports_exactly_the_differences",
    ],
)
def a_list_tells_nothing_of_what_is_gone(patch: MonkeyPatch) -> None:
    sound = Store.replace

    def forgetful(store: Any, found: Iterable[Any], progress: int) -> set[Key]:
        listed = tuple(found)
        return sound(store, listed, progress) & {one.metadata.key for one in listed}

    patch.setattr(Store, "replace", forgetful)


@tabled(9, fails=["tests/runtime/test_queue.py::test_a_key_that_changed_while_taken_comes_again"])
def what_changes_during_a_turn_waits_for_an_hour(patch: MonkeyPatch) -> None:
    sound = KeyQueue.add

    def hard_of_hearing(queue: Any, key: Key, delay_seconds: float = 0.0) -> None:
        sound(queue, key, 3600.0 if key in queue._taken else delay_seconds)

    patch.setattr(KeyQueue, "add", hard_of_hearing)


@simulated(breaks={"the_end_is_told_soon"}, hunts=[("calm", "completes")])
def whoever_changes_waits_for_half_a_minute(patch: MonkeyPatch) -> None:
    """Its own turn comes at once, and what its pods do is looked at when it is convenient."""
    sound = KeyQueue.add

    def lazy(queue: Any, key: Key, delay_seconds: float = 0.0) -> None:
        sound(queue, key, max(delay_seconds, 30.0 if key in queue._not_before else 0.0))

    patch.setattr(KeyQueue, "add", lazy)


@simulated(9, breaks={ANOTHER_END}, hunts=[("calm", "completes")])
def only_the_job_itself_wakes_us(patch: MonkeyPatch) -> None:
    def follow(self: Any, resource: Resource[Any], store: Store[Any], selector: str = "") -> Informer[Any]:
        scope = Scope(self._namespace, selector)
        return Informer(self._cluster, resource, scope, store, on_change=lambda _: None)

    patch.setattr(app.PaddleJobManager, "_follow", follow)


@tabled(15, fails=["tests/runtime/test_informer.py::test_gone_means_listing_again"])
def gone_is_taken_for_a_cut(patch: MonkeyPatch) -> None:
    patch.setattr(informer, "Gone", type("NeverRaised", (ApiError,), {}))


@tabled(
    15,
    fails=[
        "tests/kube/test_errors.py::test_each_answer_has_its_error",
        "tests/kube/test_client.py::TestWatch::test_may_be_refused_as_too_old_before_it_begins",
    ],
    error="Unreachable",
)
def gone_is_not_understood(patch: MonkeyPatch) -> None:
    patch.delitem(errors._BY_CODE, 410)


@tabled(
    15,
    fails=[
        "tests/runtime/test_informer.py::test_a_watch_that_ends_at_once_every_time_does_not_become_a_hot_loop"
    ],
)
def a_watch_that_fails_is_asked_for_again_and_again(patch: MonkeyPatch) -> None:
    patch.setattr(Informer, "_rest", lambda _self, _error, then: Rest(1.0, then))


@tabled(27, fails=["tests/test_cache_size.py::test_of_what_belongs_to_others_nothing_is_kept"])
def every_pod_is_listed(patch: MonkeyPatch) -> None:
    patch.setattr(app, "LABEL_RES_TYPE", "")
    patch.setattr(app, "LABEL_JOB_UID", "")


@tabled(27, fails=["tests/test_cache_size.py::test_of_a_pod_little_is_kept"])
def whole_pods_are_kept(patch: MonkeyPatch) -> None:
    patch.setattr(app, "slim", lambda pod: pod)


@tabled(19, fails=["tests/runtime/test_store.py::test_the_same_name_in_two_namespaces_is_two_objects"])
def a_key_is_a_name_alone(patch: MonkeyPatch) -> None:
    patch.setattr(ObjectMeta, "key", property(lambda meta: Key("team", meta.name)))


@simulated(19, 27, breaks={"every_request_stays_in_its_namespace"}, hunts=[("calm", "completes")])
def all_namespaces_are_followed(patch: MonkeyPatch) -> None:
    sound = app.PaddleJobManager.__init__
    patch.setattr(
        app.PaddleJobManager, "__init__", lambda self, cluster, _, now: sound(self, cluster, "", now)
    )


@tabled(
    20,
    fails=[
        "tests/kube/test_client.py::TestList::test_passes_over_what_cannot_be_read",
        "tests/kube/test_client.py::TestWatch::test_passes_over_what_cannot_be_read",
    ],
    error="ValidationError",
)
def one_object_that_cannot_be_read_stops_a_list(patch: MonkeyPatch) -> None:
    def strict(resource: Resource[Any], body: bytes) -> Any:
        return msgspec.json.decode(body, type=resource.type)

    patch.setattr(client, "decode_or_report", strict)


@tabled(
    20,
    fails=[
        "tests/runtime/test_store.py::test_an_unreadable_version_hides_the_readable_one_before_it",
        (
            "tests/runtime/test_informer.py::TestAnObjectThatCannotBeRead::"
            "test_in_a_watch_is_passed_over_and_its_old_version_is_not_acted_upon"
        ),
    ],
)
def what_cannot_be_read_is_taken_for_what_it_was(patch: MonkeyPatch) -> None:
    sound = Store.put
    patch.setattr(
        Store, "put", lambda store, found: set() if isinstance(found, Unreadable) else sound(store, found)
    )
