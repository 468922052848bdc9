"""The job's config map: the list of peers. Pods cannot start before it exists, so it is made last."""

from collections.abc import Sequence

from paddle_operator.api.meta import Manifest
from paddle_operator.api.paddlejob import PaddleJob, Role, port_in

from .environment import shared_variables
from .observed import Observed
from .pods import job_labels, owner_reference


def build_config_map(job: PaddleJob, worker_addresses: Sequence[str], port: int) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": job.metadata.name,
            "namespace": job.metadata.namespace,
            "labels": job_labels(job),
            "ownerReferences": [owner_reference(job)],
        },
        "data": shared_variables(job, worker_addresses, port),
    }


def missing_config_map(seen: Observed) -> Manifest | None:
    if not seen.config_map_is_due:
        return None
    workers = [seen.addresses[name] for name, slot in seen.slots.items() if slot.role is Role.WORKER]
    # The annotation may have been edited since; the pods go by what it said when they were made.
    port = port_in(next(iter(seen.own.values())).metadata)
    return build_config_map(seen.job, workers, port)
