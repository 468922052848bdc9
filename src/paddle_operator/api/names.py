"""Every name that leaves this program: labels, annotations, variables, conditions, reasons.

The first group is the contract of the Go operator and of the seeds; the second is ours. Ours are hints for
people and selectors only: whose a pod is, its owner UID says, and which one it is, its name.
"""

GROUP = "batch.paddlepaddle.org"

LABEL_RES_NAME = "paddle-res-name"
LABEL_RES_TYPE = "paddle-res-type"
ANNOTATION_RESOURCE = "paddle-resource"
OLD_FINALIZER = "finalizers.paddlepaddle.org"

PREFIX = "paddlepaddle.org/"
LABEL_JOB_UID = PREFIX + "job-uid"
LABEL_ROLE = PREFIX + "role"
LABEL_INDEX = PREFIX + "index"
LABEL_ATTEMPT = PREFIX + "attempt"
# Patched onto a pod so that its kubelet looks for the config map at once; the value is "<count> <time>".
ANNOTATION_NUDGE = PREFIX + "nudge"
# On a PaddleJob: the port of its processes, where 2379 is not free. A laptop gives each job another one.
ANNOTATION_PORT = PREFIX + "port"

TRAINING_CONTAINER = "paddle"
INIT_CONTAINER = "coord-paddle"
PADDLE_PORT = 2379
PORTS_PER_POD = 20
LAST_PORT = 65536 - PORTS_PER_POD
# Of the ports of a job's first pod, the one where processes meet: at gloo's server in PS mode, else at the
# trainers' store (MASTER_PORT). The first port is for the server, or for the master of Paddle's launcher.
MEETING_PORT = 18
# What Host jobs share out among themselves, in blocks of PORTS_PER_POD.
HOST_PORTS = range(35_000, 65_000, PORTS_PER_POD)

# On a PaddleJob: its servers keep the model by themselves, so a worker may be restarted alone.
ANNOTATION_ASYNC_PS = PREFIX + "async-ps"
# On a PaddleJob: whether its containers have accelerators, where what they ask for does not tell.
ANNOTATION_ACCELERATOR = PREFIX + "accelerator"
# A variable: where training writes its report, unless that is Kubernetes' own /dev/termination-log.
TERMINATION_MESSAGE_PATH = "TERMINATION_MESSAGE_PATH"
# On a PaddleJob: the path of a file that lists the workers' addresses.
ANNOTATION_HOSTFILE = PREFIX + "hostfile"
# The init container that writes it, and the volume that holds it.
HOSTFILE = "paddle-hostfile"
# On a PaddleJob: its workers do not train together, on purpose.
ANNOTATION_INDEPENDENT_RANKS = PREFIX + "independent-ranks"
# On a config map: a fingerprint of the peers that it tells of.
ANNOTATION_PEERS = PREFIX + "peers"

# Types of condition.
CREATED = "Created"
RUNNING = "Running"
RESTARTING = "Restarting"
SUSPENDED = "Suspended"
COMPLETED = "Completed"
FAILED = "Failed"
GANG_SCHEDULED = "GangScheduled"

# Reasons of Created=False: nothing can be made until somebody, or time, mends it.
INVALID_SPEC = "InvalidSpec"
NOT_SERVED = "NotServed"
CONFIG_MAP_TAKEN = "ConfigMapTaken"
NAMESAKE_TERMINATING = "NamesakeTerminating"
REFUSED = "CreateRefused"
NO_IPV4 = "NoIPv4Address"
SHARED_ADDRESS = "SharedAddress"
PORTS_TAKEN = "PortsTaken"
# Reasons of the other conditions.
PODS_CREATED = "PodsCreated"
ALL_PODS_RUN = "AllPodsRun"
ALL_PODS_SUCCEEDED = "AllPodsSucceeded"
ALL_WORKERS_SUCCEEDED = "AllWorkersSucceeded"
POD_FAILED = "PodFailed"
POD_LOST = "PodLost"
SERVER_ENDED = "ServerEnded"
RESTARTED_ALONE = "RestartedAlone"
RESTARTED_TOO_OFTEN = "RestartedTooOften"
ADDRESS_CHANGED = "AddressChanged"
TRAINED_ALONE = "TrainedAlone"
ACTIVE_DEADLINE = "ActiveDeadlineExceeded"
START_DEADLINE = "StartDeadlineExceeded"
NODE_LOST = "NodeLost"
POD_STUCK = "PodStuck"
RESUMED = "Resumed"
PODS_START = "PodsStart"
JOB_ENDED = "JobEnded"
# Reasons of Running=False while pods wait; images and containers have those that the kubelet gives.
UNSCHEDULABLE = "Unschedulable"
CONFIG_MAP_MISSING = "ConfigMapMissing"
SLOW_START = "SlowStart"
# Reasons of events that have no condition.
ENV_DROPPED = "VariableDropped"
NO_ACCELERATOR = "TakenForNoAccelerator"
UNREADABLE = "Unreadable"


def port_range(port: int) -> str:
    """Where Paddle's launcher draws the ports of its trainers from, between its own and the meeting place."""
    return f"{port + 1}:{port + MEETING_PORT - 1}"


def pod_name(job: str, role: str, index: int) -> str:
    return f"{job}-{role}-{index}"
