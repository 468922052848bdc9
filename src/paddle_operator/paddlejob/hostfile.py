"""A file that lists the workers' addresses, one a line in the order of ranks, for a job that asks for it.

Addresses are known only when all pods have one, and volumes are mounted before that: a volume of the config
map would be awaited for ever, or be empty. So an init container waits for the map, as training does, and
writes the file into a volume of the pod. It runs the image of training, which is on the node anyway.
"""

from typing import Any

from paddle_operator.api.names import ANNOTATION_HOSTFILE, HOSTFILE
from paddle_operator.api.paddlejob import Mode, PaddleJob, training_container_of

FILE = "hostfile"
_FOLDER = f"/{HOSTFILE}"
_LIST = "TRAINER_IP_LIST"
_SCRIPT = f"""set -ef; IFS=,; printf '%s\\n' ${_LIST} > {_FOLDER}/{FILE}"""


def add_hostfile(job: PaddleJob, pod: dict[str, Any]) -> None:
    """To the spec of a pod."""
    path = job.metadata.annotations.get(ANNOTATION_HOSTFILE)
    if not path or job.spec.mode is Mode.PS:
        return
    training = training_container_of(pod)
    pod["volumes"] = [*(pod.get("volumes") or []), {"name": HOSTFILE, "emptyDir": {}}]
    pod["initContainers"] = [_writer(job, training), *(pod.get("initContainers") or [])]
    mount = {"name": HOSTFILE, "mountPath": path, "subPath": FILE, "readOnly": True}
    training["volumeMounts"] = [*(training.get("volumeMounts") or []), mount]


def _writer(job: PaddleJob, training: dict[str, Any]) -> dict[str, Any]:
    """With the rights of training, less what is beyond those of a user, and with its CPUs and memory.

    That costs nothing: of init containers and the others a pod needs the larger amount, not the sum.
    """
    like_training: dict[str, Any] = {
        name: training[name] for name in ("image", "imagePullPolicy") if name in training
    }
    if rights := training.get("securityContext"):
        like_training["securityContext"] = _less(rights)
    source = {"configMapKeyRef": {"name": job.metadata.name, "key": _LIST}}
    return {
        "name": HOSTFILE,
        **like_training,
        "command": ["sh", "-c", _SCRIPT],
        "env": [{"name": _LIST, "valueFrom": source}],
        "resources": _amounts(training.get("resources") or {}),
        "volumeMounts": [{"name": HOSTFILE, "mountPath": _FOLDER}],
    }


def _less(rights: dict[str, Any]) -> dict[str, Any]:
    left = {name: value for name, value in rights.items() if name != "privileged"}
    if (left.get("capabilities") or {}).get("add"):
        left["capabilities"] = {name: value for name, value in left["capabilities"].items() if name != "add"}
    return left


def _amounts(resources: dict[str, Any]) -> dict[str, Any]:
    kinds = {kind: resources.get(kind) or {} for kind in ("requests", "limits")}
    chosen = {
        kind: {name: found[name] for name in ("cpu", "memory") if name in found}
        for kind, found in kinds.items()
    }
    return {kind: amounts for kind, amounts in chosen.items() if amounts}
