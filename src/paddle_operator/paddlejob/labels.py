"""What every object that we make says of the job that it belongs to."""

from paddle_operator.api.meta import KubeObject, Manifest, ObjectMeta
from paddle_operator.api.names import GROUP, LABEL_ATTEMPT, LABEL_JOB_UID
from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.api.resources import PADDLE_JOBS


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


def attempt_of(metadata: ObjectMeta) -> int:
    """The try that a child belongs to. What the Go operator made does not say: it knew only one."""
    written = metadata.labels.get(LABEL_ATTEMPT, "")
    return int(written) if written.isascii() and written.isdigit() and len(written) < 10 else 0


def is_ahead(job: PaddleJob, child: KubeObject) -> bool:
    return attempt_of(child.metadata) > job.status.attempt
