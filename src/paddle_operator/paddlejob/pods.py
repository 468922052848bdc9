"""From a role's template and an index to a pod. The template is copied; all that we add is listed here."""

from typing import Any

from paddle_operator.api.accelerators import unknown_resources
from paddle_operator.api.meta import Manifest
from paddle_operator.api.names import (
    ANNOTATION_PORT,
    ANNOTATION_RESOURCE,
    LABEL_INDEX,
    LABEL_RES_NAME,
    LABEL_RES_TYPE,
    LABEL_ROLE,
    PADDLE_PORT,
    PORTS_PER_POD,
    PREFIX,
    pod_name,
)
from paddle_operator.api.paddlejob import Mode, PaddleJob, read_template, training_container_of

from .endpoints import Slot, port_of
from .environment import dropped_variables, merged_variables, pod_variables
from .hostfile import add_hostfile
from .init_container import wait_for_names
from .labels import job_labels, owner_reference


def build_pod(job: PaddleJob, slot: Slot, init_image: str = "") -> Manifest:
    role, rank = slot
    name = pod_name(job.metadata.name, role, rank)
    template = read_template(job.roles[role].template)
    spec = template["spec"]
    # Left empty it would be Always, and the job would never end.
    spec["restartPolicy"] = spec.get("restartPolicy") or "Never"
    _equip(training_container_of(spec), job, slot)
    if job.on_host_network:
        _put_on_host_network(spec, port_of(job, slot))
    add_hostfile(job, spec)
    if job.found_by_name and init_image:
        spec["initContainers"] = [wait_for_names(job, role, init_image), *(spec.get("initContainers") or [])]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": job.metadata.namespace,
            "labels": {
                **_users(template, "labels"),
                LABEL_RES_NAME: name,
                LABEL_RES_TYPE: str(role),
                **job_labels(job),
                LABEL_ROLE: str(role),
                LABEL_INDEX: str(rank),
            },
            "annotations": {
                **_users(template, "annotations"),
                ANNOTATION_RESOURCE: str(role),
                **_port_note(port_of(job, slot)),
            },
            "ownerReferences": [owner_reference(job)],
        },
        "spec": spec,
    }


def dropped_variables_of(job: PaddleJob) -> list[str]:
    """The variables in the job's templates that its pods will not get, because they are ours to set."""
    names: set[str] = set()
    for role in job.roles.values():
        container = training_container_of(read_template(role.template)["spec"])
        names.update(dropped_variables(job, container.get("env") or []))
    return sorted(names)


def unknown_resources_of(job: PaddleJob) -> list[str]:
    """What its workers ask for of device plugins, of which nobody can tell whether it computes."""
    if job.spec.mode is Mode.PS:
        return []
    container = training_container_of(read_template(job.spec.worker.template)["spec"])
    return unknown_resources(container, job.metadata.annotations)


def _equip(container: dict[str, Any], job: PaddleJob, slot: Slot) -> None:
    """Give the training container its variables; it cannot start before the config map is there."""
    ours = pod_variables(job, slot, container)
    container["env"] = merged_variables(job, ours, container.get("env") or [])
    # The last source wins, so ours stands behind the user's.
    container["envFrom"] = [*(container.get("envFrom") or []), {"configMapRef": {"name": job.metadata.name}}]


def _put_on_host_network(spec: dict[str, Any], port: int) -> None:
    """With its ports declared, so that the scheduler puts no other pod that wants them on the same node."""
    spec["hostNetwork"] = True
    # Otherwise the pod would ask the node's DNS, which knows no services.
    spec["dnsPolicy"] = spec.get("dnsPolicy") or "ClusterFirstWithHostNet"
    container = training_container_of(spec)
    container["ports"] = [
        *(container.get("ports") or []),
        *({"containerPort": one, "hostPort": one} for one in range(port, port + PORTS_PER_POD)),
    ]


def _port_note(port: int) -> dict[str, str]:
    return {ANNOTATION_PORT: str(port)} if port != PADDLE_PORT else {}


def _users(template: dict[str, Any], field: str) -> dict[str, str]:
    """Labels or annotations of the template, less those that could pass for ours."""
    written: dict[str, str] = (template.get("metadata") or {}).get(field) or {}
    return {name: value for name, value in written.items() if not name.startswith(PREFIX)}
