"""What the manager asks for by name before it decides, and what it makes of the answers."""

from typing import Any

import make
from make import NOW

from paddle_operator.api.core import ConfigMap, Pod
from paddle_operator.api.meta import Key
from paddle_operator.api.names import ANNOTATION_NUDGE
from paddle_operator.api.paddlejob import PaddleJob, Role
from paddle_operator.api.resources import AnyResource
from paddle_operator.app import PaddleJobManager
from paddle_operator.cluster import NotFound
from paddle_operator.paddlejob.observed import Observed
from paddle_operator.runtime.controller import Recollection

SLOTS = ("resnet-worker-0", "resnet-worker-1")
Stored = Pod | ConfigMap | PaddleJob


class Server:
    """Has these, and nothing else."""

    def __init__(self, *stored: Stored) -> None:
        self._stored: dict[Any, Stored] = {(type(one), one.metadata.key): one for one in stored}

    async def get(self, resource: AnyResource, key: Key) -> Stored:
        if (resource.type, key) not in self._stored:
            raise NotFound(f"{resource} {key}")
        return self._stored[resource.type, key]


async def gathered(job: PaddleJob, *cached: Pod, stored: tuple[Stored, ...]) -> Observed:
    manager = PaddleJobManager(Server(*stored), "team", now=lambda: NOW + make.seconds(30))  # type: ignore[arg-type]
    for pod in cached:
        manager._pods.store.put(pod)
    return await manager._gather(job, Recollection())


def job_of_try(attempt: int, **spec: Any) -> PaddleJob:
    status = {"phase": "Running", "attempt": attempt, "startTime": NOW.isoformat()}
    return make.paddlejob(workers=1, status=status, **spec)


async def test_a_pod_of_a_later_try_is_no_answer_about_this_one() -> None:
    """Another manager has restarted the job, and we have not heard of it: its pods are not ours to end."""
    old, new = (job_of_try(attempt, ps=make.role(1)) for attempt in (0, 1))
    cached = make.pod(old, role=Role.PS, phase="Failed"), make.pod(old, phase="Running")
    seen = await gathered(old, *cached, stored=(make.pod(new, phase="Running", metadata={"uid": "new"}),))
    assert {pod.metadata.uid for pod in seen.pods} == {pod.metadata.uid for pod in cached}
    assert seen.leftovers == ()


async def test_nor_is_it_one_of_ours_that_only_hid() -> None:
    old, new = job_of_try(0), job_of_try(1)
    seen = await gathered(old, stored=(make.pod(new, phase="Running", metadata={"uid": "new"}),))
    assert seen.pods == ()


async def test_a_pod_of_no_slot_may_be_of_a_size_that_we_have_not_heard_of() -> None:
    """Another manager has resumed the job with more workers; no status would tell us that we are late."""
    status = {"phase": "Suspended", "attempt": 1, "startTime": NOW.isoformat()}
    old = make.paddlejob(workers=1, status=status, runPolicy={"suspend": True})
    new = make.paddlejob(workers=2, status={**status, "phase": "Running"})
    cached = [make.pod(new, rank, phase="Running") for rank in (0, 1)]
    seen = await gathered(old, *cached, stored=(new, make.config_map(new), *cached))
    assert seen.job == new
    assert seen.leftovers == ()


async def test_what_is_left_of_an_earlier_try_is_no_reason_to_ask_for_the_job() -> None:
    old, new = job_of_try(0), job_of_try(1)
    left = make.pod(old, phase="Running")
    seen = await gathered(new, left, stored=(left, job_of_try(2)))
    assert seen.job == new
    assert [pod.metadata.uid for pod in seen.leftovers] == [left.metadata.uid]


async def test_a_pod_without_its_labels_is_found_by_its_name() -> None:
    job = job_of_try(0)
    hidden = make.pod(job, phase="Running", metadata={"labels": {}})
    assert (await gathered(job, stored=(hidden,))).pods == (hidden,)


async def test_and_so_it_is_where_another_one_fails_before_it_is_written_that_all_were_made() -> None:
    """How it was is written down once and for all; it would not be counted."""
    job = make.paddlejob(intranet="Service")
    hidden, failed = make.pod(job, 0, "Succeeded", metadata={"labels": {}}), make.pod(job, 1, "Failed")
    assert (await gathered(job, failed, stored=(hidden, failed))).own.keys() == set(SLOTS)
    pending = make.pod(job, 1)
    seen = await gathered(job, pending, stored=(hidden, pending))
    assert seen.missing.keys() == {SLOTS[0]}, "it may not have been made yet, and nobody has to know"


async def test_a_map_without_its_label_is_looked_for_once_the_last_old_pod_turns_out_to_be_gone() -> None:
    """No watch shows it, and the first new pod would begin with the addresses of the dead."""
    old, new = job_of_try(0), job_of_try(1)
    going = (NOW - make.seconds(60)).isoformat()
    gone = make.pod(old, phase="Running", metadata={"deletionTimestamp": going})
    map_of_old = make.config_map(old, labels={})
    seen = await gathered(new, gone, stored=(map_of_old,))
    assert seen.config_map == map_of_old
    assert seen.leftovers == (map_of_old,)


async def test_a_map_of_a_later_try_is_no_leftover_but_says_that_we_are_late() -> None:
    """Another manager has begun that try, and no watch has shown us: its map is not ours to delete."""
    old, new = (make.paddlejob(status={"attempt": attempt}) for attempt in (0, 1))
    seen = await gathered(old, stored=(new, make.config_map(new)))
    assert seen.job == new
    assert seen.leftovers == ()


async def test_nor_is_a_map_gone_for_which_pods_were_woken() -> None:
    """It may have lost its label. A job that was taken for misled would be restarted."""
    job = job_of_try(0)
    woken = make.pod(job, metadata={"annotations": {ANNOTATION_NUDGE: f"1 {NOW.isoformat()}"}})
    map_of_job = make.config_map(job, labels={})
    assert (await gathered(job, woken, stored=(map_of_job, woken))).config_map == map_of_job


def on_host(name: str, uid: str, **fields: Any) -> PaddleJob:
    job = {"intranet": "Host", "status": {"hostPort": 35000}, **fields}
    return make.paddlejob(name, uid=uid, **job)


async def test_ports_that_an_older_job_seems_to_have_too_are_asked_for() -> None:
    """It may have ended, and we have not heard."""
    mine, other = on_host("resnet", "b"), on_host("bert", "a")
    ended = on_host("bert", "a", status={"hostPort": 35000, "phase": "Completed"})
    placed = [make.pod(mine, rank) for rank in (0, 1)]
    for stored, holder in (
        ((other,), "team/bert"),
        ((other, placed[0]), "team/bert"),
        ((ended,), ""),
        ((), ""),
        # Nor does it matter once all pods have found a place.
        ((other, *placed), ""),
    ):
        manager = PaddleJobManager(Server(*stored), "team", now=lambda: NOW)  # type: ignore[arg-type]
        for one in (mine, other):
            manager._jobs.store.put(one)
        assert (await manager._gather(mine, Recollection())).ports_are_of == holder
        assert (await manager._gather(other, Recollection())).ports_are_of == ""
