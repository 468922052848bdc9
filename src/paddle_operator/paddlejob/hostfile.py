"""A file that lists the workers' addresses, one a line in the order of ranks, for a job that asks for it.

Addresses are known only when all pods have one, and volumes are mounted before that: a volume of the config
map would be awaited for ever, or be empty. So an init container waits for the map, as training does, and
writes the file into a volume of the pod. It runs the image of training, which is on the node anyway.
"""

from typing import Any

from paddle_operator.api.names import ANNOTATION_HOSTFILE
from paddle_operator.api.paddlejob import Mode, PaddleJob, training_container_of

NAME = "paddle-hostfile"
"""Of the init container, and of the volume."""
FILE = "hostfile"
_FOLDER = f"/{NAME}"
_LIST = "TRAINER_IP_LIST"
_SCRIPT = f"""set -ef; IFS=,; printf '%s\\n' ${_LIST} > {_FOLDER}/{FILE}"""


def add_hostfile(job: PaddleJob, pod: dict[str, Any]) -> None:
    """To the spec of a pod."""
    path = job.metadata.annotations.get(ANNOTATION_HOSTFILE)
    if not path or job.spec.mode is Mode.PS:
        return
    training = training_container_of(pod)
    pod["volumes"] = [*(pod.get("volumes") or []), {"name": NAME, "emptyDir": {}}]
    pod["initContainers"] = [_writer(job, training), *(pod.get("initContainers") or [])]
    mount = {"name": NAME, "mountPath": path, "subPath": FILE, "readOnly": True}
    training["volumeMounts"] = [*(training.get("volumeMounts") or []), mount]


def _writer(job: PaddleJob, training: dict[str, Any]) -> dict[str, Any]:
    """With the rights of training, and as little as a namespace with a quota asks for."""
    copied = ("image", "imagePullPolicy", "securityContext")
    like_training: dict[str, Any] = {name: training[name] for name in copied if name in training}
    amounts = {"cpu": "10m", "memory": "10Mi"}
    source = {"configMapKeyRef": {"name": job.metadata.name, "key": _LIST}}
    return {
        "name": NAME,
        **like_training,
        "command": ["sh", "-c", _SCRIPT],
        "env": [{"name": _LIST, "valueFrom": source}],
        "resources": {"requests": amounts, "limits": amounts},
        "volumeMounts": [{"name": NAME, "mountPath": _FOLDER}],
    }
