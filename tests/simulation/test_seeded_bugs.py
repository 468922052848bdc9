"""Does the simulator see? Each bug of this table is put into the operator, and has to be caught.

A hunt goes through undisturbed lives, late watches and crashes until the invariants that know this bug are
broken, or an end is not that of a healthy operator.
"""

from collections.abc import Callable, Iterator
from itertools import product
from math import inf

import invariants
import pytest
import seeded_bugs
from oracle import end_of, undisturbed
from simulated import live
from simulated_connection import ClockJump, CrashAt, Faults, LateChange, Moment
from workloads import LIVES

from paddle_operator.api.resources import PADDLE_JOBS, PODS

ANOTHER_END = "another end"
Seed = Callable[[pytest.MonkeyPatch], None]

CAUGHT_BY: list[tuple[Seed, set[str]]] = [
    (
        seeded_bugs.gate_is_always_open,
        {"no_decision_forgets_our_own_writes", "nothing_known_to_exist_is_made_again"},
    ),
    (seeded_bugs.gate_forgets_deletes, {"nothing_is_deleted_twice"}),
    (
        seeded_bugs.pods_are_cleaned_up_before_the_status_is_written,
        {ANOTHER_END, "nothing_of_a_try_is_deleted_before_the_next_is_written"},
    ),
    (seeded_bugs.failed_pods_are_not_counted, {"everybody_is_counted"}),
    (seeded_bugs.owners_are_known_by_name, {"a_status_names_only_pods_of_its_job"}),
    (seeded_bugs.labels_are_trusted, {"it_comes_to_rest"}),
    (seeded_bugs.all_that_names_the_job_is_cleaned_up, {"a_child_without_a_slot_is_left_alone"}),
    (seeded_bugs.status_is_written_without_a_version, {"a_job_is_only_written_to_as_it_was_read"}),
    (
        seeded_bugs.map_is_made_before_all_addresses_are_known,
        {"peers_are_told_every_endpoint_in_the_order_of_ranks"},
    ),
    (seeded_bugs.peers_are_told_in_the_wrong_order, {"peers_are_told_every_endpoint_in_the_order_of_ranks"}),
    (
        seeded_bugs.a_finished_job_gets_its_pods_back,
        {"no_child_is_made_for_a_job_that_is_over", "children_are_cleaned_up_as_asked"},
    ),
    (seeded_bugs.a_finished_job_misses_its_pods, {"completed_and_failed_are_final"}),
    (seeded_bugs.deletes_name_no_uid, {"every_change_of_a_child_names_its_uid"}),
    (seeded_bugs.pods_have_names_of_the_moment, {"a_pod_is_named_after_its_slot", "a_slot_has_one_live_pod"}),
    (seeded_bugs.a_condition_is_always_new, {"a_condition_moves_its_time_with_its_status"}),
    (seeded_bugs.conditions_of_others_are_dropped, {"conditions_of_others_are_kept"}),
    (seeded_bugs.a_nudge_is_always_the_same, {"no_patch_says_what_is_known"}),
    (
        seeded_bugs.somebody_polls,
        {"it_comes_to_rest", "a_goal_is_reached_in_few_turns", "a_job_costs_few_requests"},
    ),
    (seeded_bugs.a_namesake_is_swept_away, {"only_children_of_the_job_are_changed"}),
    (seeded_bugs.all_namespaces_are_followed, {"every_request_stays_in_its_namespace"}),
    (seeded_bugs.a_failure_is_told_with_the_whole_pod, {"no_secret_is_told"}),
    (seeded_bugs.a_failure_is_told_at_length, {"an_event_is_short"}),
    (seeded_bugs.everything_is_news, {"events_are_few"}),
    (seeded_bugs.a_secret_is_logged, {"no_secret_is_logged"}),
    (seeded_bugs.a_decision_raises, {"nothing_fails_unforeseen"}),
    (seeded_bugs.only_the_last_success_is_recorded, {"what_has_finished_stays_counted"}),
    (seeded_bugs.the_start_is_always_now, {"times_are_written_once"}),
    (seeded_bugs.a_generation_is_observed_before_it_comes, {"the_observed_generation_never_goes_down"}),
    (seeded_bugs.a_finalizer_is_left_on_jobs, {"we_hold_nobody_back"}),
    (
        seeded_bugs.an_old_map_stays_and_is_not_minded,
        {"no_container_starts_with_the_map_of_another_job", "no_child_outlives_its_job"},
    ),
    (seeded_bugs.a_map_is_changed_while_pods_start, {"all_pods_of_a_job_were_told_the_same"}),
    (seeded_bugs.workers_are_made_before_servers, {"servers_are_made_before_workers"}),
    (seeded_bugs.pods_are_made_before_what_they_need, {"what_names_lead_to_stands_before_the_pod"}),
    (
        seeded_bugs.ports_are_used_and_not_written_down,
        {"a_pod_on_the_host_network_keeps_to_its_own_ports"},
    ),
    (seeded_bugs.ports_are_written_and_taken_back, {"host_ports_are_written_once"}),
    (seeded_bugs.ports_are_promised_twice, {"live_jobs_share_no_host_ports"}),
    (
        seeded_bugs.servers_and_workers_share_ports,
        {
            "a_pod_on_the_host_network_keeps_to_its_own_ports",
            "peers_are_told_every_endpoint_in_the_order_of_ranks",
        },
    ),
    (seeded_bugs.nobody_asks_how_the_workers_ended, {ANOTHER_END}),
    (seeded_bugs.servers_are_left_to_serve, {"children_are_cleaned_up_as_asked"}),
    (seeded_bugs.a_failure_counts_twice, {"a_try_is_counted_once"}),
    (seeded_bugs.a_restart_counts_nothing, {"a_try_is_counted_once", ANOTHER_END}),
    (seeded_bugs.limits_are_not_asked, {"no_limit_is_exceeded", ANOTHER_END}),
    (seeded_bugs.nobody_waits_for_the_old_try_to_be_gone, {"tries_do_not_overlap"}),
    (seeded_bugs.pods_of_older_tries_are_counted, {ANOTHER_END}),
    (seeded_bugs.a_suspended_job_gets_pods, {"no_child_is_made_for_a_job_that_is_over"}),
    (seeded_bugs.the_machines_own_clock_is_trusted, {"nothing_happens_before_its_time"}),
    (seeded_bugs.deadlines_wake_nobody, {ANOTHER_END}),
    (seeded_bugs.deadlines_pass_late, {"deadlines_are_kept"}),
    (seeded_bugs.deadlines_count_from_birth, {"nothing_happens_before_its_time"}),
    (
        seeded_bugs.services_are_forgotten,
        {"children_are_cleaned_up_as_asked", "nothing_known_to_exist_is_made_again"},
    ),
]


@pytest.mark.parametrize(("seed", "expected"), CAUGHT_BY, ids=lambda one: getattr(one, "__name__", ""))
def test_a_seeded_bug_is_caught(seed: Seed, expected: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in LIVES:
        undisturbed(name)  # as a healthy operator lives it
    seed(monkeypatch)
    caught: set[str] = set()
    for broken in hunt():
        caught |= broken
        if expected <= caught:
            break
    print(f"{seed.__name__}: caught by {', '.join(sorted(caught))}")
    assert expected <= caught


def hunt() -> Iterator[set[str]]:
    for name, faults in scenarios():
        life = live(LIVES[name], faults)
        broken = {one.invariant.__name__ for one in life.witness.violations}
        yield broken if end_of(life) == undisturbed(name)[1] else {*broken, ANOTHER_END}


def scenarios() -> Iterator[tuple[str, Faults]]:
    yield from ((name, Faults()) for name in LIVES)
    yield "runs-too-long-after-a-restart", Faults(clock=ClockJump(4.0, 3600.0))
    for kind, number, lag in product((PODS, PADDLE_JOBS), range(1, 25), (1, inf)):
        yield "completes-and-is-cleaned", Faults(late=LateChange(kind, number, lag))
    for number in range(1, 15):
        yield "ps-server-ends-shortly-before-its-worker", Faults(late=LateChange(PODS, number, 1))
    for write, moment in product(range(1, 25), Moment):
        yield "completes-and-is-cleaned", Faults(crash=CrashAt(write, moment))


def test_every_invariant_is_broken_by_some_bug() -> None:
    """An invariant that nothing breaks might say nothing."""
    known = [*invariants.ALL.of_a_request, *invariants.ALL.of_an_answer]
    known += [*invariants.ALL.of_a_change, *invariants.ALL.at_rest]
    broken = set[str]().union(*(names for _, names in CAUGHT_BY))
    assert {one.__name__ for one in known} <= broken
