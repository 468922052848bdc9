"""The job's config map: the list of peers. Containers cannot start before it exists."""

from collections.abc import Mapping

from paddle_operator.api.meta import Manifest
from paddle_operator.api.names import ANNOTATION_PEERS
from paddle_operator.api.paddlejob import PaddleJob, Role, port_in

from .endpoints import Endpoint, fingerprint, port_of, slots_of
from .environment import shared_variables
from .labels import job_labels, owner_reference
from .observed import Observed


def build_config_map(job: PaddleJob, endpoints: Mapping[str, Endpoint]) -> Manifest:
    """``endpoints`` by the pod's name."""
    by_role: dict[Role, list[Endpoint]] = {role: [] for role in job.roles}
    for name, slot in slots_of(job).items():
        by_role[slot.role].append(endpoints[name])
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": job.metadata.name,
            "namespace": job.metadata.namespace,
            "labels": job_labels(job),
            "annotations": {
                ANNOTATION_PEERS: fingerprint(job, (endpoints[name].host for name in slots_of(job)))
            },
            "ownerReferences": [owner_reference(job)],
        },
        "data": dict(sorted(shared_variables(job, by_role).items())),
    }


def missing_config_map(seen: Observed) -> Manifest | None:
    if not seen.config_map_is_due:
        return None
    if seen.job.found_by_name:
        return build_config_map(seen.job, endpoints_by_name(seen.job))
    # The job's annotation may have been edited since; pods go by what it said when they were made.
    found = {name: Endpoint(seen.addresses[name], port_in(pod.metadata)) for name, pod in seen.own.items()}
    return build_config_map(seen.job, found)


def endpoints_by_name(job: PaddleJob) -> dict[str, Endpoint]:
    return {
        name: Endpoint(job.service_host(name), port_of(job, slot)) for name, slot in slots_of(job).items()
    }
