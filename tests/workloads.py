"""The lives that are simulated: what the user asks for, how the pods fare, who else is in the namespace."""

from math import inf
from typing import Any

import make
from invariants_of_requests import SECRET
from simulated import Recreation, Workload

from paddle_operator.api.meta import Manifest
from paddle_operator.api.names import LABEL_INDEX, LABEL_RES_NAME, LABEL_RES_TYPE, LABEL_ROLE
from paddle_operator.api.resources import PADDLE_JOBS, PODS

TEMPLATE = make.template(make.container(env=[{"name": "PASSWORD", "value": SECRET}]))
LABELS = {LABEL_RES_NAME: "resnet-worker-0", LABEL_RES_TYPE: "worker", LABEL_ROLE: "worker", LABEL_INDEX: "0"}
# Says by all its labels that it is worker 0, and belongs to nobody.
IMPOSTOR = {"metadata": {"name": "impostor", "labels": LABELS}, "spec": {"containers": [make.container()]}}
# Says by its owner that it belongs to the job, which has no such slot.
MISFIT = {"metadata": {"name": "resnet-misfit", "labels": LABELS}, "spec": {"containers": [make.container()]}}


def job(
    workers: int = 2, policy: str = "", servers: int = 0, intranet: str = "", name: str = "resnet"
) -> Manifest:
    wanted: dict[str, Any] = {"cleanPodPolicy": policy} if policy else {}
    if servers:
        wanted["ps"] = make.role(servers, TEMPLATE)
    if intranet:
        wanted["intranet"] = intranet
    return make.manifest(name, workers, pod=TEMPLATE, **wanted)


def failing(rank: int, policy: str = "", code: int = 1, **asked: Any) -> Workload:
    """One rank ends badly; the others wait for it for ever, as ranks of a collective job do."""
    waiting = {f"resnet-worker-{other}": inf for other in range(2) if other != rank}
    failure = {f"resnet-worker-{rank}": code}
    return Workload(job(policy=policy, **asked), failure, waiting, others=((PODS, IMPOSTOR),))


def server_ends(code: int, workers_run_seconds: float = inf, policy: str = "") -> Workload:
    """The first server ends long before anybody stops it."""
    run_seconds = {"resnet-ps-0": 3.0, "resnet-worker-0": workers_run_seconds}
    return Workload(job(workers=1, servers=1, policy=policy), {"resnet-ps-0": code}, run_seconds)


ANOTHER_HOST_JOB = job(workers=1, servers=1, intranet="Host", name="bert")

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
}
