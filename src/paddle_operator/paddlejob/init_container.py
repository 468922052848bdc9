"""What `--initImage` asks for, in Service mode: training does not start before the names of its role resolve.

Paddle does not need it; clusters whose DNS remembers for long that a name was not there yet may.
"""

from paddle_operator.api.meta import Manifest
from paddle_operator.api.names import INIT_CONTAINER, pod_name
from paddle_operator.api.paddlejob import PaddleJob, Role

from .endpoints import service_host

# The names are arguments, not text of the script.
_SCRIPT = """\
for name in "$@"; do
  tries=0
  until nslookup "$name" >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ "$tries" -lt 1000 ] || { echo "$name: not found in 1000 seconds" >&2; exit 1; }
    sleep 1
  done
done
sleep 2
"""


def wait_for_names(job: PaddleJob, role: Role, image: str) -> Manifest:
    """With no more rights than a namespace with restricted Pod Security allows."""
    pods = [pod_name(job.metadata.name, role, rank) for rank in range(job.roles[role].replicas)]
    amounts = {"cpu": "10m", "memory": "10Mi"}
    return {
        "name": INIT_CONTAINER,
        "image": image,
        "command": ["sh", "-c", _SCRIPT, INIT_CONTAINER],
        "args": [service_host(job, pod) for pod in pods],
        "resources": {"requests": amounts, "limits": amounts},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": 65534,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
