"""Bugs of what pods know of each other: the list of peers, services, ports, and the order of things."""

from collections.abc import Mapping
from dataclasses import replace

import msgspec
from pytest import MonkeyPatch  # noqa: PT013 (it is in every line here)

from paddle_operator import app
from paddle_operator.api.meta import Manifest
from paddle_operator.api.names import ANNOTATION_PORT
from paddle_operator.api.paddlejob import Mode, PaddleJob, Role
from paddle_operator.api.resources import CONFIG_MAPS, PODS, Target
from paddle_operator.paddlejob import config_map, environment, failures, pods, ports, reconcile, slim
from paddle_operator.paddlejob.endpoints import Endpoint
from paddle_operator.paddlejob.observed import Observed
from paddle_operator.plan import Patch, Plan, Step
from seeded_bugs.bug import simulated, tabled
from seeded_bugs.statuses import with_status

PEERS_ARE_TOLD = "peers_are_told_every_endpoint_in_the_order_of_ranks"
OWN_PORTS = "a_pod_on_the_host_network_keeps_to_its_own_ports"


@simulated(breaks={PEERS_ARE_TOLD}, hunts=[("calm", "completes")])
def map_is_made_before_all_addresses_are_known(patch: MonkeyPatch) -> None:
    due = property(lambda seen: seen.own_config_map is None and len(seen.own) == len(seen.slots))
    patch.setattr(Observed, "config_map_is_due", due)


@tabled(
    fails=["tests/paddlejob/test_restarts.py::test_who_has_begun_with_the_list_of_an_earlier_try_begins_anew"]
)
def nobody_minds_who_has_read_an_old_list(patch: MonkeyPatch) -> None:
    patch.setattr(Observed, "reads_an_old_list", False)


@simulated(breaks={PEERS_ARE_TOLD}, hunts=[("calm", "host-completes")])
def the_port_of_a_pod_is_not_kept(patch: MonkeyPatch) -> None:
    """We had it: what the cache leaves out, no decision must ask for."""
    patch.setattr(slim, "ANNOTATIONS", slim.ANNOTATIONS - {ANNOTATION_PORT})


@simulated(breaks={PEERS_ARE_TOLD}, hunts=[("calm", "completes")])
def recipes_are_not_told_where_to_meet(patch: MonkeyPatch) -> None:
    """As it was: a script that deletes Paddle's own variables trained alone in each pod."""
    patch.setattr(environment, "_about_the_meeting", lambda _: {})


@tabled(fails=["tests/paddlejob/test_trained_alone.py::test_workers_that_trained_alone_fail_the_job"])
def nobody_minds_who_trained_alone(patch: MonkeyPatch) -> None:
    patch.setattr(failures, "find_lonely", lambda _: None)


@simulated(breaks={PEERS_ARE_TOLD}, hunts=[("calm", "completes")])
def peers_are_told_in_the_wrong_order(patch: MonkeyPatch) -> None:
    sound = config_map.build_config_map

    def reversed_map(job: PaddleJob, endpoints: Mapping[str, Endpoint]) -> Manifest:
        return sound(job, dict(zip(endpoints, [*endpoints.values()][::-1], strict=True)))

    patch.setattr(config_map, "build_config_map", reversed_map)


@simulated(
    5,
    breaks={"no_container_starts_with_the_map_of_another_job", "no_child_outlives_its_job"},
    hunts=[("calm", "is-recreated")],
)
def an_old_map_stays_and_is_not_minded(patch: MonkeyPatch) -> None:
    sound = config_map.build_config_map

    def held(job: PaddleJob, endpoints: Mapping[str, Endpoint]) -> Manifest:
        made = sound(job, endpoints)
        return {**made, "metadata": {**made["metadata"], "finalizers": ["example.org/hold"]}}

    patch.setattr(config_map, "build_config_map", held)
    patch.setattr(reconcile, "find_obstacle", lambda _: None)


@simulated(breaks={"all_pods_of_a_job_were_told_the_same"}, hunts=[("crashes", "completes-and-is-cleaned")])
def a_map_is_changed_while_pods_start(patch: MonkeyPatch) -> None:
    def restless(seen: Observed) -> Plan:
        if seen.own_config_map is not None and 0 < len(seen.started) < len(seen.slots):
            body = {"data": {"PADDLE_JOB_ID": "another"}}
            patched = Patch(Target.of(CONFIG_MAPS, seen.own_config_map), body, "change")
            plan = reconcile.reconcile(seen)
            return replace(plan, steps=((patched,), *plan.steps))
        return reconcile.reconcile(seen)

    patch.setattr(app, "reconcile", restless)


@tabled(
    21,
    fails=[
        (
            "tests/paddlejob/test_resizing.py::"
            "test_services_beyond_a_smaller_number_go_and_so_does_the_list_of_peers"
        ),
    ],
)
def services_of_a_smaller_job_stay(patch: MonkeyPatch) -> None:
    sound = Observed.leftovers.func  # type: ignore[attr-defined]

    def without_services(seen: Observed) -> tuple[object, ...]:
        return tuple(one for one in sound(seen) if type(one).__name__ != "Service")

    patch.setattr(Observed, "leftovers", property(without_services))


@simulated(breaks={"servers_are_made_before_workers"}, hunts=[("calm", "ps-completes")])
def workers_are_made_before_servers(patch: MonkeyPatch) -> None:
    sound, other = reconcile._pod_creates, {Role.PS: Role.WORKER, Role.WORKER: Role.PS}

    def swapped(seen: Observed, role: Role) -> Step:
        return sound(seen, other[role] if seen.job.spec.mode is Mode.PS else role)

    patch.setattr(reconcile, "_pod_creates", swapped)


@simulated(breaks={"what_names_lead_to_stands_before_the_pod"}, hunts=[("calm", "service-completes")])
def pods_are_made_before_what_they_need(patch: MonkeyPatch) -> None:
    sound = reconcile.children

    def pods_first(seen: Observed) -> tuple[Step, ...]:
        steps = [step for step in sound(seen) if step]
        return tuple(sorted(steps, key=lambda step: getattr(step[0], "resource", None) != PODS))

    patch.setattr(reconcile, "children", pods_first)


@simulated(
    1,
    breaks={"children_are_cleaned_up_as_asked", "nothing_known_to_exist_is_made_again"},
    hunts=[("calm", "service-completes"), ("calm", "service-ps-is-cleaned")],
)
def services_are_forgotten(patch: MonkeyPatch) -> None:
    patch.setattr(Observed, "own_services", ())


@simulated(7, 31, breaks={OWN_PORTS}, hunts=[("calm", "host-completes")])
def ports_are_used_and_not_written_down(patch: MonkeyPatch) -> None:
    def hasty(seen: Observed) -> Plan:
        if ports.are_due(seen):
            job = msgspec.structs.replace(seen.job, status=ports.with_ports(seen))
            seen = replace(seen, job=job)
        return reconcile.reconcile(seen)

    patch.setattr(app, "reconcile", hasty)


@simulated(31, breaks={"host_ports_are_written_once"}, hunts=[("calm", "host-completes")])
def ports_are_written_and_taken_back(patch: MonkeyPatch) -> None:
    with_status(patch, lambda _: {"host_port": 0})


@simulated(1, breaks={"live_jobs_share_no_host_ports"}, hunts=[("calm", "host-jobs-side-by-side")])
def ports_are_promised_twice(patch: MonkeyPatch) -> None:
    sound = ports.Promises.to
    patch.setattr(ports.Promises, "to", lambda *words: sound(ports.Promises(), *words[1:]))


@tabled(
    25,
    fails=["tests/test_gather.py::test_ports_that_an_older_job_seems_to_have_too_are_asked_for"],
)
def jobs_with_the_same_ports_wait_for_each_other(patch: MonkeyPatch) -> None:
    """We had it, with two leaders."""
    patch.setattr(ports, "may_give_way", lambda _: False)


@simulated(
    breaks={OWN_PORTS, PEERS_ARE_TOLD}, hunts=[("calm", "completes"), ("calm", "host-jobs-side-by-side")]
)
def servers_and_workers_share_ports(patch: MonkeyPatch) -> None:
    for module in (pods, environment, config_map):
        patch.setattr(module, "port_of", lambda job, slot: (job.status.host_port or 2379) + 20 * slot.rank)
