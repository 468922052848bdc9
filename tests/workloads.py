"""The lives that are simulated: what the user asks for, how the pods fare, who else is in the namespace."""

from math import inf

import make
from invariants_of_requests import SECRET
from simulated import Recreation, Workload

from paddle_operator.api.meta import Manifest
from paddle_operator.api.names import LABEL_INDEX, LABEL_RES_NAME, LABEL_RES_TYPE, LABEL_ROLE
from paddle_operator.api.resources import PODS

TEMPLATE = make.template(make.container(env=[{"name": "PASSWORD", "value": SECRET}]))
LABELS = {LABEL_RES_NAME: "resnet-worker-0", LABEL_RES_TYPE: "worker", LABEL_ROLE: "worker", LABEL_INDEX: "0"}
# Says by all its labels that it is worker 0, and belongs to nobody.
IMPOSTOR = {"metadata": {"name": "impostor", "labels": LABELS}, "spec": {"containers": [make.container()]}}
# Says by its owner that it belongs to the job, which has no such slot.
MISFIT = {"metadata": {"name": "resnet-misfit", "labels": LABELS}, "spec": {"containers": [make.container()]}}


def job(workers: int = 2, policy: str = "") -> Manifest:
    wanted = {"cleanPodPolicy": policy} if policy else {}
    return make.manifest(workers=workers, pod=TEMPLATE, **wanted)


def failing(rank: int, policy: str = "", code: int = 1) -> Workload:
    """One rank ends badly; the others wait for it for ever, as ranks of a collective job do."""
    waiting = {f"resnet-worker-{other}": inf for other in range(2) if other != rank}
    return Workload(job(policy=policy), {f"resnet-worker-{rank}": code}, waiting, others=((PODS, IMPOSTOR),))


LIVES = {
    "completes": Workload(job(policy="Never"), others=((PODS, IMPOSTOR),)),
    "completes-and-is-cleaned": Workload(job(policy="Always")),
    "completes-by-default": Workload(job(), misfits=(MISFIT,)),
    "fails": failing(rank=1),
    "fails-and-is-cleaned": failing(rank=1, policy="Always"),
    "single": Workload(job(workers=1)),
    "is-recreated": Workload(job(), recreation=Recreation(after_seconds=4.2, pause_seconds=0.3)),
    "is-replaced-at-once": Workload(job(policy="Never"), recreation=Recreation(1.2, pause_seconds=0.0)),
}
