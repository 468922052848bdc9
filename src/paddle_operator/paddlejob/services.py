"""Service mode: a headless service for each pod, under the pod's name, so that peers find it by that."""

from paddle_operator.api.meta import Manifest
from paddle_operator.api.names import LABEL_JOB_UID, LABEL_RES_NAME
from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.api.resources import SERVICES
from paddle_operator.plan import Create, Step

from .labels import owner_reference
from .observed import Observed


def build_service(job: PaddleJob, pod: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": pod,
            "namespace": job.metadata.namespace,
            "labels": {LABEL_JOB_UID: job.uid},
            "ownerReferences": [owner_reference(job)],
        },
        "spec": {
            "type": "ClusterIP",
            "clusterIP": "None",
            "selector": {LABEL_RES_NAME: pod},
            "ports": [{"port": job.port, "protocol": "TCP", "targetPort": job.port}],
            "sessionAffinity": "None",
            # Processes look for each other before they are ready: that is how they become so.
            "publishNotReadyAddresses": True,
        },
    }


def missing_services(seen: Observed) -> Step:
    if not seen.job.found_by_name:
        return ()
    there = {service.metadata.name for service in seen.own_services}
    return tuple(Create(SERVICES, build_service(seen.job, pod)) for pod in seen.slots if pod not in there)
