"""From a role's template and an index to a pod. The template is copied; all that we add is listed here."""

from typing import Any

from paddle_operator.api.meta import Manifest
from paddle_operator.api.names import (
    ANNOTATION_PORT,
    ANNOTATION_RESOURCE,
    GROUP,
    LABEL_ATTEMPT,
    LABEL_INDEX,
    LABEL_JOB_UID,
    LABEL_RES_NAME,
    LABEL_RES_TYPE,
    LABEL_ROLE,
    PADDLE_PORT,
    PREFIX,
    pod_name,
)
from paddle_operator.api.paddlejob import PaddleJob, Role, read_template, training_container_of
from paddle_operator.api.resources import PADDLE_JOBS

from .environment import dropped_variables, merged_variables, pod_variables


def build_pod(job: PaddleJob, role: Role, rank: int) -> Manifest:
    name = pod_name(job.metadata.name, role, rank)
    template = read_template(job.roles[role].template)
    spec = template["spec"]
    # Left empty it would be Always, and the job would never end.
    spec["restartPolicy"] = spec.get("restartPolicy") or "Never"
    _equip(training_container_of(spec), job, role, rank)
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
                **({ANNOTATION_PORT: str(job.port)} if job.port != PADDLE_PORT else {}),
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
        names.update(dropped_variables(container.get("env") or []))
    return sorted(names)


def owner_reference(job: PaddleJob) -> Manifest:
    return {
        "apiVersion": f"{GROUP}/{PADDLE_JOBS.version}",
        "kind": PADDLE_JOBS.kind,
        "name": job.metadata.name,
        "uid": job.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def job_labels(job: PaddleJob) -> dict[str, str]:
    return {LABEL_JOB_UID: job.uid, LABEL_ATTEMPT: str(job.status.attempt)}


def _equip(container: dict[str, Any], job: PaddleJob, role: Role, rank: int) -> None:
    """Give the training container its variables; it cannot start before the config map is there."""
    ours = pod_variables(job, role, rank, container)
    container["env"] = merged_variables(ours, container.get("env") or [])
    # The last source wins, so ours stands behind the user's.
    container["envFrom"] = [*(container.get("envFrom") or []), {"configMapRef": {"name": job.metadata.name}}]


def _users(template: dict[str, Any], field: str) -> dict[str, str]:
    """Labels or annotations of the template, less those that could pass for ours."""
    written: dict[str, str] = (template.get("metadata") or {}).get(field) or {}
    return {name: value for name, value in written.items() if not name.startswith(PREFIX)}
