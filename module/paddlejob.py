"""What a training script may say of itself, in three calls; and it will not train alone without knowing it.

    import paddle.distributed as dist
    import paddlejob

    dist.init_parallel_env()            # or fleet.init(is_collective=True)
    paddlejob.begin()                   # raises TrainsAlone if peers are missing
    for step in range(steps):
        ...
        paddlejob.step(step, samples=batch_size)
        if step % 100 == 0:
            save()
            paddlejob.checkpoint(step)

What is said goes into the file of the container's termination message, as JSON of at most 2,048 bytes, at the
begin, every ten seconds and at the end; paddle-operator reads it there. It holds numbers and the name of an
error's class, never a message, a log line or a variable. Where there is no such file, the calls
cost nothing, and begin() still sees to it that nobody trains alone who knows NNODES.

One file without dependencies, for Python 3.7 and newer: install it, or copy it beside the script.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

try:
    import fcntl
except ImportError:  # not a Unix; there is no operator either
    fcntl = None  # type: ignore[assignment]

__version__ = "0.1.0"
__all__ = ["TrainsAlone", "begin", "checkpoint", "step"]

MARK = "paddlepaddle.org/report"
FORMAT = 1
LOCK_TRIES = 100
ADVICE = (
    "this process is one of {world} that train together, but the job has {pods} pods of {processes}. Was it "
    "started by `python -m paddle.distributed.launch --master $MASTER_ADDR:$MASTER_PORT --nnodes $NNODES "
    "--rank $RANK train.py`, with the variables as the operator sets them, and does it call "
    "init_parallel_env or fleet.init first? If it is to be alone: begin(alone=True). If all workers are to "
    'be: the annotation paddlepaddle.org/independent-ranks: "true" on the job.'
)
# A kubelet shares out 12 KiB among all containers of a pod, 4 KiB for each at most.
MOST_BYTES = 2048
SECONDS_BETWEEN_WRITES = 10.0
# What gloo and NCCL say, in the message of an error, when a peer is gone.
SIGNS_OF_A_LOST_PEER = (
    "gloo/transport/tcp",
    "Connection reset by peer",
    "ncclRemoteError",
    "ncclSystemError",
)
# The second is where a kubelet looks, unless the pod's terminationMessagePath says otherwise.
PATH_VARIABLE = "TERMINATION_MESSAGE_PATH"
USUAL_PATH = "/dev/termination-log"


class TrainsAlone(RuntimeError):  # noqa: N818 (reads as what it is)
    """Fewer processes train together than the job has pods."""


class _Process:
    """What this process has to say, and where."""

    def __init__(self, rank: int, world: int) -> None:
        self.said: dict[str, Any] = {"rank": rank, "world": world}
        self._samples = 0
        self._counted_since = time.monotonic()
        self._written_at: float | None = None

    def count(self, samples: int) -> None:
        self._samples += samples

    def write(self, *, at_once: bool = False) -> None:
        now = time.monotonic()
        if not at_once and self._written_at is not None and now - self._written_at < SECONDS_BETWEEN_WRITES:
            return
        if self._samples and now > self._counted_since:
            self.said["samplesPerSecond"] = round(self._samples / (now - self._counted_since), 2)
            self._samples, self._counted_since = 0, now
        self._written_at = now
        _put(self.said)


_process: _Process | None = None


def begin(rank: int | None = None, world: int | None = None, *, alone: bool = False) -> None:
    """After the processes have met. The rank and the size of the world are Paddle's, unless both are given.

    Raises TrainsAlone if the world is smaller than the job; not with alone=True, for what is done alone on
    purpose: an evaluation after the training, say.
    """
    global _process  # noqa: PLW0603 (of the process, as its file is)
    if rank is None or world is None:
        rank, world = _as_paddle_sees_it()
    if _process is None:
        atexit.register(_say_at_the_end)
        sys.excepthook = _telling(sys.excepthook)
    _process = _Process(int(rank), int(world))
    if alone:
        _process.said["alone"] = True
    _process.write(at_once=True)
    pods, processes = _count("NNODES"), _count("PADDLE_LOCAL_SIZE")
    if int(world) < pods * processes and not alone:
        raise TrainsAlone(ADVICE.format(world=world, pods=pods, processes=processes))


def step(number: int, samples: int = 0) -> None:
    """A step is done, with so many samples in this process."""
    process = _begun()
    process.said["step"] = int(number)
    process.count(samples)
    process.write()


def checkpoint(number: int) -> None:
    """All that was learned up to this step is saved."""
    process = _begun()
    process.said["checkpointStep"] = int(number)
    process.write(at_once=True)


def _begun() -> _Process:
    if _process is None:
        begin()
    assert _process is not None
    return _process


def _as_paddle_sees_it() -> tuple[int, int]:
    """Who have met: until then Paddle knows only the variables, which say who shall."""
    paddle = sys.modules.get("paddle")
    if paddle is None:
        return _count("PADDLE_TRAINER_ID", 0), _count("PADDLE_TRAINERS_NUM")
    distributed = paddle.distributed
    rank, world = distributed.get_rank(), distributed.get_world_size()
    if world > 1 and not distributed.is_initialized():
        return rank, 1
    fleet = sys.modules.get("paddle.distributed.fleet")
    if fleet is not None and getattr(fleet.fleet, "_role_maker", None) is not None:
        return fleet.worker_index(), min(world, fleet.worker_num())
    return rank, world


def _count(name: str, default: int = 1) -> int:
    """Of nodes an elastic launcher may have a range: from 1:4 on."""
    written = os.environ.get(name, "").partition(":")[0]
    return int(written) if written.isdigit() else default


def _say_at_the_end() -> None:
    _begun().write(at_once=True)


def _telling(hook: Callable[..., Any]) -> Callable[..., Any]:
    """Which class of error ended it, and whether a peer was gone.

    The message of an error may hold anything, so it is not said.
    """

    def tell(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        said = _begun().said
        said["error"] = kind.__name__[:64]
        if any(sign in str(error) for sign in SIGNS_OF_A_LOST_PEER):
            said["lostPeer"] = True
        hook(kind, error, trace)

    return tell


def _put(said: dict[str, Any]) -> None:
    """Beside what other processes of this container say. Whatever goes wrong here ends no training."""
    named = os.environ.get(PATH_VARIABLE)
    said = {"localRank": _count("PADDLE_LOCAL_RANK", 0), **said}
    try:
        # A kubelet makes its file; one of another name is made here, as the operator has asked for it.
        opened = os.open(named or USUAL_PATH, os.O_RDWR | (os.O_CREAT if named else 0), 0o644)
        with os.fdopen(opened, "r+", errors="replace") as file:
            _lock(file)
            # Those of another world are of a time before this one, and so is another rank in the same place.
            others = [one for one in _read(file.read()) if one.get("world") == said["world"]]
            others = [one for one in others if one.get("localRank") != said["localRank"]]
            text = _fitting(sorted([*others, said], key=lambda one: one["rank"]))
            file.seek(0)
            file.truncate()
            file.write(text)
    except (OSError, ValueError):
        return  # nobody has asked for it, or another process holds the file: then it is said next time


def _lock(file: Any) -> None:
    """Not at any price: a process that was stopped would stop all the others."""
    for _ in range(LOCK_TRIES):
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
        else:
            return
    raise BlockingIOError


def _read(text: str) -> list[dict[str, Any]]:
    try:
        found = json.loads(text)
        return [one for one in found["processes"] if isinstance(one["rank"], int)]
    except (ValueError, TypeError, KeyError):
        return []


def _fitting(processes: list[dict[str, Any]]) -> str:
    """As many as there is room for, the lowest ranks first."""
    while True:
        text = json.dumps({MARK: FORMAT, "processes": processes}, separators=(",", ":"))
        if len(text) <= MOST_BYTES:
            return text
        processes = processes[:-1]
