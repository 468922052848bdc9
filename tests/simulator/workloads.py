"""The lives that are simulated: what the user asks for, how the pods fare, who else is in the namespace."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from math import inf
from typing import Any

import make

from paddle_operator.api.meta import Manifest
from paddle_operator.api.names import LABEL_INDEX, LABEL_RES_NAME, LABEL_RES_TYPE, LABEL_ROLE, OLD_FINALIZER
from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.api.report import VERSION, Process, Report, written
from paddle_operator.api.resources import CONFIG_MAPS, PADDLE_JOBS, PODS, AnyResource
from paddle_operator.paddlejob.config_map import build_config_map
from paddle_operator.paddlejob.endpoints import Endpoint, slots_of
from paddle_operator.paddlejob.pods import build_pod
from simulator.acts import (
    Act,
    delete_job,
    delete_pod,
    evict,
    kill_for_memory,
    lose_node_of,
    never_pull,
    preempt,
    resize_at_once,
    resume,
    suspend,
)
from simulator.invariants.of_requests import SECRET
from simulator.life import Recreation, Workload

TEMPLATE = make.template(make.container(env=[{"name": "PASSWORD", "value": SECRET}]))
LABELS = {LABEL_RES_NAME: "resnet-worker-0", LABEL_RES_TYPE: "worker", LABEL_ROLE: "worker", LABEL_INDEX: "0"}
# Says by all its labels that it is worker 0, and belongs to nobody.
IMPOSTOR = {"metadata": {"name": "impostor", "labels": LABELS}, "spec": {"containers": [make.container()]}}
# Says by its owner that it belongs to the job, which has no such slot.
MISFIT = {"metadata": {"name": "resnet-misfit", "labels": LABELS}, "spec": {"containers": [make.container()]}}


def job(
    workers: int = 2,
    policy: str = "",
    servers: int = 0,
    intranet: str = "",
    name: str = "resnet",
    restart_policy: str = "Never",
    **run_policy: Any,
) -> Manifest:
    wanted: dict[str, Any] = {"cleanPodPolicy": policy} if policy else {}
    template = {"spec": {**TEMPLATE["spec"], "restartPolicy": restart_policy}}
    if servers:
        wanted["ps"] = make.role(servers, template)
    if intranet:
        wanted["intranet"] = intranet
    if run_policy:
        wanted["runPolicy"] = run_policy
    return make.manifest(name, workers, pod=template, **wanted)


def failing(rank: int, policy: str = "", code: int = 1, **asked: Any) -> Workload:
    """One rank ends badly; the others wait for it for ever, as ranks of a collective job do."""
    waiting = {f"resnet-worker-{other}": inf for other in range(2) if other != rank}
    failure = {f"resnet-worker-{rank}": code}
    return Workload(job(policy=policy, **asked), failure, waiting, others=((PODS, IMPOSTOR),))


def server_ends(code: int, workers_run_seconds: float = inf, policy: str = "") -> Workload:
    """The first server ends long before anybody stops it."""
    run_seconds = {"resnet-ps-0": 3.0, "resnet-worker-0": workers_run_seconds}
    return Workload(job(workers=1, servers=1, policy=policy), {"resnet-ps-0": code}, run_seconds)


def adopted(manifest: Manifest, pods: int, *, has_map: bool = False) -> Workload:
    """The Go operator began it: its finalizer, and children without any label of ours."""

    def left_behind(found: PaddleJob) -> Iterator[tuple[AnyResource, Manifest]]:
        slots = slots_of(found)
        for name in [*slots][:pods]:
            pod = build_pod(found, slots[name])
            kept = {label: pod["metadata"]["labels"][label] for label in (LABEL_RES_NAME, LABEL_RES_TYPE)}
            yield PODS, {**pod, "metadata": {**pod["metadata"], "labels": kept}}
        if has_map:
            # As the node will give addresses to the first pods that it sees.
            addresses = {name: Endpoint(f"198.18.0.{number}", 2379) for number, name in enumerate(slots, 1)}
            config_map = build_config_map(found, addresses)
            metadata = {**config_map["metadata"], "labels": {}, "annotations": {}}
            yield CONFIG_MAPS, {**config_map, "metadata": metadata}

    held = {**manifest, "metadata": {**manifest["metadata"], "finalizers": [OLD_FINALIZER]}}
    return Workload(held, adopted=left_behind)


# Of a try in which a peer fails or is lost, the others wait for it for ever; in the next one all is well.
FIRST_WAITS = (inf, 5.0)


def restarted(failures: int = 1, limit: int = 1, policy: str = "Never", **asked: Any) -> Workload:
    """The last worker fails in the first tries."""
    last = asked.setdefault("workers", 2) - 1
    codes = {f"resnet-worker-{last}": (*(1,) * failures, 0)}
    waits = {f"resnet-worker-{rank}": (*(inf,) * failures, 5.0) for rank in range(last)}
    return Workload(job(policy=policy, backoffLimit=limit, **asked), codes, waits)


def disturbed(*acts: Act, waits: tuple[float, ...] = FIRST_WAITS, **asked: Any) -> Workload:
    """Nobody ends by itself in the first try; somebody does something to it."""
    names = [f"resnet-worker-{rank}" for rank in range(asked.get("workers", 2))]
    return Workload(job(**asked), run_seconds=dict.fromkeys(names, waits), acts=acts)


def does_alike_in_every_try(workload: Workload) -> bool:
    """Whatever makes it begin anew, it ends as it would have; and nobody waits for one of its tries."""
    planned = (*workload.exit_codes.values(), *workload.run_seconds.values())
    is_disturbed = workload.acts or workload.in_place or workload.recreation or workload.misfits
    changes = any(isinstance(one, tuple) for one in planned)
    return not is_disturbed and not is_adopted(workload) and not changes


def is_adopted(workload: Workload) -> bool:
    return "finalizers" in workload.manifest["metadata"]


ANOTHER_HOST_JOB = job(workers=1, servers=1, intranet="Host", name="bert")


def reporting(worlds: Mapping[int, int], **asked: Any) -> Workload:
    """Those ranks end, and each tells how many it was one of; the others go on for ever."""
    told = {rank: Report(VERSION, processes=(Process(rank, world),)) for rank, world in worlds.items()}
    return Workload(
        job(**asked),
        run_seconds={f"resnet-worker-{rank}": inf for rank in range(2) if rank not in worlds},
        reports={f"resnet-worker-{rank}": written(report) for rank, report in told.items()},
    )


LIVES = {
    "completes": Workload(job(policy="Never"), others=((PODS, IMPOSTOR),)),
    "completes-and-is-cleaned": Workload(job(policy="Always")),
    "completes-by-default": Workload(job(), misfits=(MISFIT,)),
    "fails": failing(rank=1),
    "fails-and-is-cleaned": failing(rank=1, policy="Always"),
    "single": Workload(job(workers=1)),
    "is-recreated": Workload(job(), recreation=Recreation(after_seconds=4.2, pause_seconds=0.3)),
    "is-replaced-at-once": Workload(job(policy="Never"), recreation=Recreation(1.2, pause_seconds=0.0)),
    "ps-completes": Workload(job(servers=2, policy="Never")),
    "ps-completes-and-is-cleaned": Workload(job(workers=1, servers=1)),
    "ps-worker-fails": Workload(job(workers=1, servers=1), {"resnet-worker-0": 1}),
    "ps-server-fails": server_ends(code=1, policy="OnFailure"),
    "ps-server-ends-early": server_ends(code=0),
    "ps-server-ends-shortly-before-its-worker": server_ends(code=0, workers_run_seconds=6.0, policy="Never"),
    "service-completes": Workload(job(intranet="Service", policy="Never")),
    "service-ps-is-cleaned": Workload(job(workers=1, servers=1, intranet="Service")),
    "service-is-recreated": Workload(
        job(intranet="Service"), recreation=Recreation(after_seconds=4.2, pause_seconds=0.3)
    ),
    "service-is-replaced-at-once": Workload(
        job(workers=1, intranet="Service"), recreation=Recreation(1.2, pause_seconds=0.0)
    ),
    "host-completes": Workload(job(intranet="HostNetwork", policy="Never")),
    "host-jobs-side-by-side": Workload(
        job(workers=1, intranet="Host"), others=((PADDLE_JOBS, ANOTHER_HOST_JOB),)
    ),
    "restarts": restarted(),
    "restarts-until-the-limit": restarted(failures=2),
    "single-restarts-and-is-cleaned": restarted(workers=1, policy="Always"),
    "ps-restarts": Workload(
        job(workers=1, servers=1, backoffLimit=1),
        {"resnet-ps-0": (1, 0)},
        {"resnet-ps-0": (3.0, inf), "resnet-worker-0": FIRST_WAITS},
    ),
    "service-restarts": restarted(intranet="Service"),
    "host-restarts": restarted(workers=1, intranet="Host"),
    "single-restarts-in-place": Workload(
        job(workers=1, restart_policy="OnFailure"), in_place={"resnet-worker-0": 2}
    ),
    "ps-worker-restarts-in-place": Workload(
        job(workers=1, servers=1, restart_policy="OnFailure"), in_place={"resnet-worker-0": 1}
    ),
    "loses-a-pod": disturbed(delete_pod("resnet-worker-1")),
    "loses-too-many-pods": disturbed(
        delete_pod("resnet-worker-0"),
        delete_pod("resnet-worker-1", attempt=1),
        waits=(inf,),
        maxDisruptions=1,
    ),
    "loses-a-pod-to-an-eviction": disturbed(evict("resnet-worker-1")),
    "loses-a-pod-to-the-scheduler": disturbed(preempt("resnet-worker-0"), intranet="Service"),
    "runs-out-of-memory": disturbed(kill_for_memory("resnet-worker-1"), backoffLimit=1),
    "is-suspended": disturbed(suspend(), resume()),
    "is-suspended-and-grows": disturbed(suspend(), resume(workers=2), workers=1, intranet="Host"),
    "host-job-grows-beside-another": replace(
        disturbed(suspend(), resume(workers=2), workers=1, intranet="Host"),
        others=((PADDLE_JOBS, ANOTHER_HOST_JOB),),
    ),
    "service-is-suspended-and-shrinks": disturbed(suspend(), resume(workers=1), intranet="Service"),
    "is-resized-unseen": disturbed(resize_at_once(3)),
    "host-is-resized-unseen": disturbed(resize_at_once(2), workers=1, intranet="Host"),
    "is-born-suspended": Workload(job(workers=1, suspend=True), acts=(resume(),)),
    "stays-suspended": disturbed(suspend()),
    "runs-too-long": disturbed(waits=(inf,), activeDeadlineSeconds=60),
    "runs-too-long-after-a-restart": Workload(
        job(policy="Always", activeDeadlineSeconds=70, backoffLimit=3),
        {"resnet-worker-1": (1, 0)},
        {"resnet-worker-0": inf, "resnet-worker-1": (5.0, inf)},
    ),
    "does-not-start": disturbed(never_pull("resnet-worker-1"), startDeadlineSeconds=60),
    "expires": Workload(job(policy="Never", ttlSecondsAfterFinished=60)),
    "loses-a-node": disturbed(lose_node_of("resnet-worker-1"), forceDeleteAfterSeconds=60),
    "loses-a-node-for-good": disturbed(lose_node_of("resnet-worker-1")),
    "trains-together-and-says-so": reporting({0: 2, 1: 2}),
    "trains-alone": reporting({1: 1}, policy="Never", backoffLimit=3),
    "is-deleted": disturbed(delete_job(), policy="Never"),
    "service-ps-is-deleted": disturbed(delete_job(), workers=1, servers=1, intranet="Service"),
    # Their names begin alike, and the pods of one are called like the other with something behind it.
    "is-called-like-a-pod-of-another": Workload(
        job(intranet="Service", policy="Never"),
        others=((PADDLE_JOBS, job(workers=1, intranet="Service", name="resnet-worker-0")),),
    ),
    "is-adopted": adopted(job(policy="Never"), pods=2, has_map=True),
    "is-adopted-half-made": adopted(job(policy="Never"), pods=1),
    "is-adopted-without-its-map": adopted(job(workers=1, servers=1), pods=2),
    "is-adopted-and-restarts": replace(
        adopted(job(policy="Never", backoffLimit=1), pods=2, has_map=True),
        exit_codes={"resnet-worker-1": (1, 0)},
        run_seconds={"resnet-worker-0": FIRST_WAITS},
    ),
    "is-adopted-and-deleted": replace(adopted(job(), pods=2, has_map=True), acts=(delete_job(),)),
}

# Came after numbers of random lives were written down, and are not drawn: each number means what it meant.
LATER = {"trains-together-and-says-so", "trains-alone"}
# A minute is all they have: who is slow may meet the deadline in another try, or before the first pod runs.
HASTY = {"runs-too-long", "runs-too-long-after-a-restart", "does-not-start"}

MODES = {"single": (1, 0), "collective": (2, 0), "ps": (1, 1)}
NETWORKS = ("PodIP", "Service", "Host")
POLICIES = ("", "Always", "Never", "OnFailure", "OnCompletion")


def _in_the_grid(mode: str, intranet: str, policy: str, *, fails: bool) -> Workload:
    workers, servers = MODES[mode]
    wanted = job(workers, policy, servers, intranet)
    if not fails:
        return Workload(wanted)
    waiting = {"resnet-worker-0": inf} if workers > 1 else {}
    return Workload(wanted, {f"resnet-worker-{workers - 1}": 1}, waiting)


def _named(mode: str, intranet: str, policy: str, *, fails: bool) -> str:
    return f"{mode}-{intranet}-{policy or 'default'}-{'fails' if fails else 'completes'}".lower()


GRID = {
    _named(*where, fails=fails): _in_the_grid(*where, fails=fails)
    for *where, fails in product(MODES, NETWORKS, POLICIES, (False, True))
}
ALL = LIVES | GRID
# Of the grid one of each mode and network: the policy shows only in the end.
CORNERS = [_named(*where, "Always", fails=False) for where in product(MODES, NETWORKS)]
