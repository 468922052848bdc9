"""Bugs to be put into the operator by monkeypatch; operators have had them (reliability-performance.md 2).

tests/simulation/test_seeded_bugs.py shows that each of them is caught.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import structlog
from invariants_of_requests import SECRET
from pytest import MonkeyPatch  # noqa: PT013 (it is in every line here)

from paddle_operator import app
from paddle_operator.api.meta import Condition, Manifest, ObjectMeta, set_condition
from paddle_operator.api.names import ANNOTATION_NUDGE, LABEL_RES_NAME
from paddle_operator.api.paddlejob import Mode, PaddleJob, PaddleJobStatus, Phase, Role
from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS, Target
from paddle_operator.paddlejob import (
    cleanup,
    conditions,
    config_map,
    deadlines,
    environment,
    failures,
    limits,
    news,
    nudge,
    pods,
    ports,
    ranks,
    reconcile,
    restarts,
    status,
)
from paddle_operator.paddlejob.endpoints import Endpoint, Slot
from paddle_operator.paddlejob.observed import Observed
from paddle_operator.paddlejob.verdicts import Question
from paddle_operator.plan import Delete, Patch, Plan, SetStatus, Step
from paddle_operator.runtime import events
from paddle_operator.runtime.clock import SteadyClock
from paddle_operator.runtime.executor import Executor
from paddle_operator.runtime.gate import CacheGate


def gate_is_always_open(patch: MonkeyPatch) -> None:
    patch.setattr(CacheGate, "behind", lambda *_: set())


def gate_forgets_deletes(patch: MonkeyPatch) -> None:
    patch.setattr(CacheGate, "deleted", lambda *_: None)


def pods_are_cleaned_up_before_the_status_is_written(patch: MonkeyPatch) -> None:
    def cleanup_first(seen: Observed) -> Plan:
        plan = reconcile.reconcile(seen)
        return replace(
            plan, steps=tuple(sorted(plan.steps, key=lambda step: not isinstance(step[0], Delete)))
        )

    patch.setattr(app, "reconcile", cleanup_first)


def owners_are_known_by_name(patch: MonkeyPatch) -> None:
    patch.setattr(ObjectMeta, "controlled_by", lambda meta, _: meta.controller is not None)


def labels_are_trusted(patch: MonkeyPatch) -> None:
    def own(seen: Observed) -> dict[str, Any]:
        labelled = {pod.metadata.labels.get(LABEL_RES_NAME, ""): pod for pod in seen.pods}
        return {name: pod for name, pod in labelled.items() if name in seen.slots}

    patch.setattr(Observed, "own", property(own))


def status_is_written_without_a_version(patch: MonkeyPatch) -> None:
    async def blind(self: Executor, action: SetStatus, owner_uid: str) -> None:
        body = {"metadata": {"uid": action.target.uid}, "status": action.changes}
        result = await self._cluster.patch(action.target, body, subresource="status")
        self._gate.wrote(owner_uid, action.target.resource, result)

    patch.setattr(Executor, "_set_status", blind)


def map_is_made_before_all_addresses_are_known(patch: MonkeyPatch) -> None:
    due = property(lambda seen: seen.own_config_map is None and len(seen.own) == len(seen.slots))
    patch.setattr(Observed, "config_map_is_due", due)


def peers_are_told_in_the_wrong_order(patch: MonkeyPatch) -> None:
    sound = config_map.build_config_map

    def reversed_map(job: PaddleJob, endpoints: Mapping[str, Endpoint]) -> Manifest:
        return sound(job, dict(zip(endpoints, [*endpoints.values()][::-1], strict=True)))

    patch.setattr(config_map, "build_config_map", reversed_map)


def a_finished_job_gets_its_pods_back(patch: MonkeyPatch) -> None:
    def restless(seen: Observed) -> Plan:
        return Plan(reconcile.children(seen)) if seen.job.status.finished else reconcile.reconcile(seen)

    patch.setattr(app, "reconcile", restless)


def a_finished_job_misses_its_pods(patch: MonkeyPatch) -> None:
    def forgetful(seen: Observed) -> Plan:
        if seen.job.status.phase == Phase.COMPLETED and not seen.own:
            status = msgspec.structs.replace(seen.job.status, phase="Running", worker=None)
            seen = replace(seen, job=msgspec.structs.replace(seen.job, status=status))
        return reconcile.reconcile(seen)

    patch.setattr(app, "reconcile", forgetful)
    patch.setattr(limits, "MAX_DISRUPTIONS", 0)  # else it would begin again and again


def deletes_name_no_uid(patch: MonkeyPatch) -> None:
    sound = Executor._delete

    async def careless(self: Executor, action: Delete, owner_uid: str) -> None:
        await sound(self, Delete(replace(action.target, uid="")), owner_uid)

    patch.setattr(Executor, "_delete", careless)


def all_that_names_the_job_is_cleaned_up(patch: MonkeyPatch) -> None:
    sound = cleanup.clean_up

    def thorough(seen: Observed, end: Phase) -> Step:
        return tuple(Delete(Target.of(PODS, pod)) for pod in seen.pods) if sound(seen, end) else ()

    patch.setattr(reconcile, "clean_up", thorough)


def pods_have_names_of_the_moment(patch: MonkeyPatch) -> None:
    sound = pods.build_pod

    def named_anew(job: PaddleJob, slot: Slot, init_image: str) -> Manifest:
        pod = sound(job, slot, init_image)
        pod["metadata"]["name"] += f"-{job.metadata.resource_version}"
        return pod

    patch.setattr(reconcile, "build_pod", named_anew)


def a_condition_is_always_new(patch: MonkeyPatch) -> None:
    def restless(conditions: tuple[Condition, ...], wanted: Condition) -> tuple[Condition, ...]:
        return set_condition(tuple(one for one in conditions if one.type != wanted.type), wanted)

    patch.setattr(conditions, "set_condition", restless)


def conditions_of_others_are_dropped(patch: MonkeyPatch) -> None:
    def alone(conditions: tuple[Condition, ...], wanted: Condition) -> tuple[Condition, ...]:
        return set_condition(tuple(one for one in conditions if one.type != "Billed"), wanted)

    patch.setattr(conditions, "set_condition", alone)


def a_nudge_is_always_the_same(patch: MonkeyPatch) -> None:
    def nudges(seen: Observed) -> tuple[Patch, ...]:
        body = {"metadata": {"annotations": {ANNOTATION_NUDGE: "1"}}}
        return tuple(Patch(Target.of(PODS, pod), body, "nudge") for pod, _, _ in nudge._waiting(seen))

    patch.setattr(reconcile, "nudges", nudges)


def somebody_polls(patch: MonkeyPatch) -> None:
    sound = app.PaddleJobManager._gather

    async def look_up_always(self: Any, job: Any, memory: Any) -> Observed:
        await self._look_up(CONFIG_MAPS, job.metadata.key)
        return await sound(self, job, memory)

    def again(seen: Observed) -> Plan:
        return replace(reconcile.reconcile(seen), wake_at=seen.now + timedelta(seconds=30))

    patch.setattr(app.PaddleJobManager, "_gather", look_up_always)
    patch.setattr(app, "reconcile", again)


def a_namesake_is_swept_away(patch: MonkeyPatch) -> None:
    def impatient(seen: Observed) -> Plan:
        swept = tuple(Delete(Target.of(PODS, pod)) for pod in seen.namesakes)
        return Plan((swept,)) if swept else reconcile.reconcile(seen)

    patch.setattr(app, "reconcile", impatient)


def all_namespaces_are_followed(patch: MonkeyPatch) -> None:
    sound = app.PaddleJobManager.__init__
    patch.setattr(
        app.PaddleJobManager, "__init__", lambda self, cluster, _, now: sound(self, cluster, "", now)
    )


def _tell_failures(patch: MonkeyPatch, message: str) -> None:
    sound = failures._describe
    patch.setattr(
        failures,
        "_describe",
        lambda *facts: msgspec.structs.replace(sound(*facts), message=message),
    )


def a_failure_is_told_with_the_whole_pod(patch: MonkeyPatch) -> None:
    _tell_failures(patch, f"worker 1 failed, PASSWORD={SECRET}")


def a_failure_is_told_at_length(patch: MonkeyPatch) -> None:
    _tell_failures(patch, "worker 1 failed. " * 100)
    patch.setattr(conditions, "LONGEST_MESSAGE", 4096)
    patch.setattr(events, "LONGEST_MESSAGE", 4096)


def everything_is_news(patch: MonkeyPatch) -> None:
    patch.setattr(news, "_is_news", lambda *_: True)


def a_secret_is_logged(patch: MonkeyPatch) -> None:
    def chatty(seen: Observed) -> Plan:
        structlog.get_logger().debug("looking", template=bytes(seen.job.spec.worker.template).decode())
        return reconcile.reconcile(seen)

    patch.setattr(app, "reconcile", chatty)


def a_decision_raises(patch: MonkeyPatch) -> None:
    def fragile(seen: Observed) -> Plan:
        if len(seen.own) == 1:
            raise KeyError("the other one")
        return reconcile.reconcile(seen)

    patch.setattr(app, "reconcile", fragile)


def only_the_last_success_is_recorded(patch: MonkeyPatch) -> None:
    patch.setattr(ranks, "to_text", lambda found: str(max(found)) if found else "")


def _with_status(patch: MonkeyPatch, change: Callable[[Observed], dict[str, Any]]) -> None:
    sound = status.next_status

    def changed(seen: Observed, *facts: Any) -> PaddleJobStatus:
        return msgspec.structs.replace(sound(seen, *facts), **change(seen))

    patch.setattr(reconcile, "next_status", changed)


def the_start_is_always_now(patch: MonkeyPatch) -> None:
    _with_status(patch, lambda seen: {"start_time": seen.stamp})


def a_generation_is_observed_before_it_comes(patch: MonkeyPatch) -> None:
    _with_status(patch, lambda seen: {"observed_generation": seen.job.metadata.generation + 1})


def a_finalizer_is_left_on_jobs(patch: MonkeyPatch) -> None:
    def clinging(seen: Observed) -> Step:
        meta = seen.job.metadata
        if meta.finalizers:
            return ()
        body = {"metadata": {"finalizers": ["example.org/hold"], "resourceVersion": meta.resource_version}}
        return (Patch(Target.of(PADDLE_JOBS, seen.job), body, "hold"),)

    patch.setattr(reconcile, "release", clinging)


def an_old_map_stays_and_is_not_minded(patch: MonkeyPatch) -> None:
    sound = config_map.build_config_map

    def held(job: PaddleJob, endpoints: Mapping[str, Endpoint]) -> Manifest:
        made = sound(job, endpoints)
        return {**made, "metadata": {**made["metadata"], "finalizers": ["example.org/hold"]}}

    patch.setattr(config_map, "build_config_map", held)
    patch.setattr(reconcile, "find_obstacle", lambda _: None)


def workers_are_made_before_servers(patch: MonkeyPatch) -> None:
    sound, other = reconcile._pod_creates, {Role.PS: Role.WORKER, Role.WORKER: Role.PS}

    def swapped(seen: Observed, role: Role) -> Step:
        return sound(seen, other[role] if seen.job.spec.mode is Mode.PS else role)

    patch.setattr(reconcile, "_pod_creates", swapped)


def pods_are_made_before_what_they_need(patch: MonkeyPatch) -> None:
    sound = reconcile.children

    def pods_first(seen: Observed) -> tuple[Step, ...]:
        steps = [step for step in sound(seen) if step]
        return tuple(sorted(steps, key=lambda step: getattr(step[0], "resource", None) != PODS))

    patch.setattr(reconcile, "children", pods_first)


def ports_are_used_and_not_written_down(patch: MonkeyPatch) -> None:
    def hasty(seen: Observed) -> Plan:
        if ports.are_due(seen):
            job = msgspec.structs.replace(seen.job, status=ports.with_ports(seen))
            seen = replace(seen, job=job)
        return reconcile.reconcile(seen)

    patch.setattr(app, "reconcile", hasty)


def ports_are_written_and_taken_back(patch: MonkeyPatch) -> None:
    _with_status(patch, lambda _: {"host_port": 0})


def ports_are_promised_twice(patch: MonkeyPatch) -> None:
    sound = ports.Promises.to
    patch.setattr(ports.Promises, "to", lambda *words: sound(ports.Promises(), *words[1:]))


def servers_and_workers_share_ports(patch: MonkeyPatch) -> None:
    for module in (pods, environment, config_map):
        patch.setattr(module, "port_of", lambda job, slot: (job.status.host_port or 2379) + 20 * slot.rank)


def nobody_asks_how_the_workers_ended(patch: MonkeyPatch) -> None:
    patch.setattr(app, "unconfirmed_workers", lambda _: Question())


def servers_are_left_to_serve(patch: MonkeyPatch) -> None:
    sound = cleanup.clean_up

    def workers_only(seen: Observed, end: Phase) -> Step:
        return tuple(
            one for one in sound(seen, end) if not isinstance(one, Patch) or "-ps-" not in one.target.key.name
        )

    patch.setattr(reconcile, "clean_up", workers_only)


def services_are_forgotten(patch: MonkeyPatch) -> None:
    patch.setattr(Observed, "own_services", ())


def a_map_is_changed_while_pods_start(patch: MonkeyPatch) -> None:
    def restless(seen: Observed) -> Plan:
        if seen.own_config_map is not None and 0 < len(seen.started) < len(seen.slots):
            body = {"data": {"PADDLE_JOB_ID": "another"}}
            patched = Patch(Target.of(CONFIG_MAPS, seen.own_config_map), body, "change")
            plan = reconcile.reconcile(seen)
            return replace(plan, steps=((patched,), *plan.steps))
        return reconcile.reconcile(seen)

    patch.setattr(app, "reconcile", restless)


def failed_pods_are_not_counted(patch: MonkeyPatch) -> None:
    sound = status._role_status

    def kind(seen: Observed, role: Role) -> Any:
        found = sound(seen, role)
        return found and msgspec.structs.replace(found, failed=0)

    patch.setattr(status, "_role_status", kind)


def a_failure_counts_twice(patch: MonkeyPatch) -> None:
    def doubled(*facts: Any) -> tuple[int, int]:
        failures, disruptions = limits.counted(*facts)
        return failures + 1, disruptions

    patch.setattr(restarts, "counted", doubled)


def a_restart_counts_nothing(patch: MonkeyPatch) -> None:
    patch.setattr(restarts, "counted", lambda *_: (0, 0))


def limits_are_not_asked(patch: MonkeyPatch) -> None:
    patch.setattr(reconcile, "may_restart", lambda *_: True)


def nobody_waits_for_the_old_try_to_be_gone(patch: MonkeyPatch) -> None:
    sound = Observed.leftovers.func  # type: ignore[attr-defined]

    def impatient(seen: Observed) -> tuple[Any, ...]:
        return tuple(one for one in sound(seen) if not one.metadata.terminating)

    patch.setattr(Observed, "leftovers", property(impatient))
    patch.setattr(restarts, "FIRST_BACKOFF_SECONDS", 0)  # which would hide it mostly
    patch.setattr(restarts, "RESOLUTION", timedelta())


def pods_of_older_tries_are_counted(patch: MonkeyPatch) -> None:
    patch.setattr(Observed, "attempt_of", lambda seen, _: seen.job.status.attempt)


def a_suspended_job_gets_pods(patch: MonkeyPatch) -> None:
    patch.setattr(reconcile, "is_suspended", lambda _: False)


def the_machines_own_clock_is_trusted(patch: MonkeyPatch) -> None:
    patch.setattr(SteadyClock, "heed", lambda *_: None)
    patch.setattr(SteadyClock, "__call__", lambda clock: clock._wall())
    sound = SteadyClock.__init__

    def with_wall(clock: Any, wall: Any, monotonic: Any) -> None:
        sound(clock, wall, monotonic)
        clock._wall = wall

    patch.setattr(SteadyClock, "__init__", with_wall)


def deadlines_wake_nobody(patch: MonkeyPatch) -> None:
    patch.setattr(reconcile, "_deadlines", lambda _: ())
    patch.setattr(reconcile, "expires_at", lambda _: None)


def deadlines_pass_late(patch: MonkeyPatch) -> None:
    sound = deadlines.active_until

    def late(seen: Observed) -> Any:
        due = sound(seen)
        return due + timedelta(seconds=100) if due is not None else None

    patch.setattr(deadlines, "active_until", late)
    patch.setattr(reconcile, "active_until", late)


def deadlines_count_from_birth(patch: MonkeyPatch) -> None:
    def since_birth(seen: Observed) -> Any:
        seconds, born = seen.job.run_policy.active_deadline_seconds, seen.job.metadata.creation_timestamp
        return born + timedelta(seconds=seconds - 10) if seconds is not None and born is not None else None

    patch.setattr(deadlines, "active_until", since_birth)
    patch.setattr(reconcile, "active_until", since_birth)
