"""What `--initImage` asks for, in Service mode: training does not start before the names of its role resolve.

Paddle does not need it; clusters whose DNS remembers for long that a name was not there yet may.
"""

from paddle_operator.api.meta import Manifest
from paddle_operator.api.names import INIT_CONTAINER
from paddle_operator.api.paddlejob import PaddleJob, Role

# A list of hosts with or without ports. Some images have no getent; and the nslookup of some does not try the
# search domains of the pod, so these are tried one by one.
_SCRIPT = """\
found() {
  getent hosts "$1" || nslookup "$1" && return
  for domain in $(sed -n 's/^search //p' /etc/resolv.conf); do nslookup "$1.$domain." && return; done
  return 1
}
for peer in $(echo "$PEERS" | tr , ' '); do
  tries=0
  until found "${peer%:*}" >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ "$tries" -lt 1000 ] || { echo "${peer%:*}: not found in 1000 seconds" >&2; exit 1; }
    sleep 1
  done
done
sleep 2
"""
_LISTS = {Role.PS: "PADDLE_PSERVERS_IP_PORT_LIST", Role.WORKER: "PADDLE_TRAINERS"}


def wait_for_names(job: PaddleJob, role: Role, image: str) -> Manifest:
    """With no more rights than a namespace with restricted Pod Security allows."""
    peers = {"configMapKeyRef": {"name": job.metadata.name, "key": _LISTS[role]}}
    amounts = {"cpu": "10m", "memory": "10Mi"}
    return {
        "name": INIT_CONTAINER,
        "image": image,
        "command": ["sh", "-c", _SCRIPT],
        "env": [{"name": "PEERS", "valueFrom": peers}],
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
