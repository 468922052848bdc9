"""The job's config map: the list of peers. Containers cannot start before it exists."""

from collections.abc import Mapping
from hashlib import sha256

from paddle_operator.api.meta import Manifest
from paddle_operator.api.names import ANNOTATION_PEERS
from paddle_operator.api.paddlejob import PaddleJob, Role, port_in

from .endpoints import Endpoint, port_of, slots_of
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
            "annotations": {ANNOTATION_PEERS: _fingerprint(endpoints)},
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


def was_resized(seen: Observed) -> bool:
    """The list of this try is of another number of peers: the job was suspended and resumed unseen."""
    found = seen.own_config_map
    told = found.metadata.annotations.get(ANNOTATION_PEERS, "") if found is not None else ""
    return bool(told) and told.partition(" ")[0] != str(len(seen.slots))


def tells_wrong_peers(seen: Observed) -> bool:
    """The map of this try lists other hosts than there are: a pod has got another address since, say."""
    found = seen.own_config_map
    told = found.metadata.annotations.get(ANNOTATION_PEERS) if found is not None else None
    if told is None:
        return False  # none, or the Go operator's
    if seen.job.found_by_name:
        return told != _fingerprint(endpoints_by_name(seen.job))
    if len(seen.own) < len(seen.slots) or not all(seen.addresses.values()):
        return False  # not known, or not known yet
    return told != _fingerprint({name: Endpoint(host, 0) for name, host in seen.addresses.items()})


def _fingerprint(endpoints: Mapping[str, Endpoint]) -> str:
    """How many, and of the hosts: ports do not change. The list itself may be long, and is in the data."""
    hosts = [f"{name}={endpoint.host}" for name, endpoint in sorted(endpoints.items())]
    return f"{len(hosts)} {sha256(chr(10).join(hosts).encode()).hexdigest()[:16]}"


def endpoints_by_name(job: PaddleJob) -> dict[str, Endpoint]:
    return {
        name: Endpoint(job.service_host(name), port_of(job, slot)) for name, slot in slots_of(job).items()
    }
