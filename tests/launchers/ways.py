"""The ways in which people start a training in the pods of a job, and what each of its processes should see.

A way is a command of the shell. It finds these scripts in $SCRIPTS, Python as $PYTHON and a list of addresses
as $HOSTFILE; results go to $RESULTS. Such names outlive what recipes delete.
"""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from paddle_operator.api.names import ANNOTATION_HOSTFILE

SCRIPTS = Path(__file__).parent
PODS = 2
HOSTFILE = "/tmp/paddle-launchers/hostfile"
INTRANETS = ("PodIP", "Service", "Host")
VERSIONS = ("2.6.2", "3.0.0", "3.3.1")
LINE = re.compile(r"world=(\d+) rank=(\d+) parameters=([0-9a-f]{16})")

_LAUNCH = '"$PYTHON" -m paddle.distributed.launch'
_SCRIPT = '"$SCRIPTS/train_world.py"'
_DELETE_ALL = """
for name in $(env | sed -n 's/^\\([A-Za-z0-9_]*\\)=.*/\\1/p' | grep -e PADDLE -e ENDPOINT); do
  unset "$name"
done
"""
# As the commands of recipes have them: where nobody set the variables, a training of one node.
_MEETING = (
    '--master "${MASTER_ADDR:-127.0.0.1}:${MASTER_PORT:-8080}" --nnodes "${NNODES:-1}" --rank "${RANK:-0}"'
)


class Way(NamedTuple):
    name: str
    command: str
    processes: int = 1
    """In each pod."""
    hostfile: bool = False

    @property
    def world(self) -> int:
        return PODS * self.processes


WAYS = (
    Way("script", f'exec "$PYTHON" {_SCRIPT}'),
    Way("script, fleet.init", f'exec "$PYTHON" {_SCRIPT} fleet'),
    Way("launch", f"exec {_LAUNCH} {_SCRIPT}"),
    Way("launch, fleet.init", f"exec {_LAUNCH} {_SCRIPT} fleet"),
    Way("launch, 2 processes", f"exec {_LAUNCH} --nproc_per_node 2 {_SCRIPT}", processes=2),
    Way(
        "launch by hand",
        f'exec {_LAUNCH} --master "${{PADDLE_TRAINERS%%,*}}:$PADDLE_PORT" '
        f'--nnodes "$PADDLE_TRAINERS_NUM" --rank "$PADDLE_TRAINER_ID" {_SCRIPT}',
    ),
    Way("recipe, all deleted", f"{_DELETE_ALL}exec {_LAUNCH} {_MEETING} {_SCRIPT}"),
    Way(
        "recipe, 2 processes",
        f"{_DELETE_ALL}exec {_LAUNCH} {_MEETING} --nproc_per_node 2 {_SCRIPT}",
        processes=2,
    ),
    Way("recipe's command", f'exec "$PYTHON" "$SCRIPTS/play_cli.py" {_SCRIPT}'),
    Way(
        "hostfile",
        f'{_DELETE_ALL}exec {_LAUNCH} --master "$(head -n 1 "$HOSTFILE"):${{MASTER_PORT:-8080}}" '
        f'--nnodes "$(grep -c . "$HOSTFILE")" --rank "${{RANK:-0}}" {_SCRIPT}',
        hostfile=True,
    ),
)
BY_NAME = {way.name: way for way in WAYS}


class Process(NamedTuple):
    world: int
    rank: int
    parameters: str


def read_results(folder: Path) -> list[Process]:
    """One of each process that came to its end, by rank."""
    found = [LINE.fullmatch(file.read_text()) for file in folder.iterdir()]
    return sorted(Process(int(one[1]), int(one[2]), one[3]) for one in found if one)


def worlds(processes: Iterable[Process]) -> str:
    """In words: `4` if all were told the same, `1 1` if two trained alone."""
    return " ".join(str(one.world) for one in processes) or "none"


def equal(processes: Iterable[Process]) -> bool:
    return len({one.parameters for one in processes}) == 1


def check(way: Way, processes: list[Process]) -> None:
    """All were in one world, each with a rank of its own, and what they have learned is the same."""
    assert [one.world for one in processes] == [way.world] * way.world, processes
    assert Counter(one.rank for one in processes) == Counter(range(way.world)), processes
    assert equal(processes), processes


def manifest(
    way: Way,
    intranet: str,
    *,
    variables: dict[str, str],
    name: str = "launchers",
    image: str = "paddle-operator/paddle:3.0.0",
    **pod: Any,
) -> dict[str, Any]:
    """The job that starts so; with more fields of its pods."""
    variables = {"OMP_NUM_THREADS": "1", "HOSTFILE": HOSTFILE} | variables
    container = {
        "name": "paddle",
        "image": image,
        "command": ["sh", "-c", way.command],
        "env": [{"name": key, "value": value} for key, value in variables.items()],
        **pod.pop("container", {}),
    }
    metadata: dict[str, Any] = {"name": name}
    if way.hostfile:
        metadata["annotations"] = {ANNOTATION_HOSTFILE: HOSTFILE}
    template = {"spec": {"terminationGracePeriodSeconds": 1, "containers": [container], **pod}}
    return {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": metadata,
        "spec": {
            "intranet": intranet,
            "cleanPodPolicy": "Never",
            "worker": {"replicas": PODS, "template": template},
        },
    }
