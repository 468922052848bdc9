"""Data-parallel training that may be killed at any moment: a new run goes on from the last checkpoint.

STEPS        how far to train
CHECKPOINTS  the folder of the checkpoint; all workers see the same one
CRASH_AT     at this step the last worker kills itself, unless the run has resumed
"""

import hashlib
import os
import signal
from pathlib import Path

import numpy as np
import paddle
from paddle import distributed, nn

STEPS = int(os.environ.get("STEPS", "200"))
SAVE_EVERY = 20
CHECKPOINT = Path(os.environ.get("CHECKPOINTS", "checkpoints"), "latest.pdparams")
CRASH_AT = int(os.environ.get("CRASH_AT", "0"))

BATCH = 96  # examples a step, of all workers together
INPUTS, CLASSES = 32, 3


def batch_of(step: int) -> tuple[np.ndarray, np.ndarray]:
    """Depends on the step alone: not on the number of workers, and not on how often they were killed."""
    rng = np.random.default_rng(step)
    truth = np.random.default_rng(0).normal(size=(INPUTS, CLASSES))
    x = rng.normal(size=(BATCH, INPUTS))
    return x.astype("float32"), np.argmax(np.tanh(x) @ truth, axis=1)


def save(step: int, loss: float, model: nn.Layer, optimizer: paddle.optimizer.Optimizer) -> None:
    """Replaces the checkpoint as a whole: whoever is killed here leaves the old one or the new one."""
    state = {"step": step, "loss": loss, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    CHECKPOINT.parent.mkdir(exist_ok=True)
    unfinished = CHECKPOINT.with_suffix(".unfinished")
    paddle.save(state, str(unfinished))
    unfinished.replace(CHECKPOINT)


def load(model: nn.Layer, optimizer: paddle.optimizer.Optimizer) -> tuple[int, float]:
    if not CHECKPOINT.exists():
        return 0, float("nan")
    state = paddle.load(str(CHECKPOINT))
    model.set_state_dict(state["model"])
    optimizer.set_state_dict(state["optimizer"])  # momentum too, or the result would be another one
    return state["step"], state["loss"]


def digest(model: nn.Layer) -> str:
    """A fingerprint of all parameters: equal only if every bit is."""
    content = b"".join(parameter.numpy().tobytes() for parameter in model.parameters())
    return hashlib.sha256(content).hexdigest()[:16]


def main() -> None:
    paddle.seed(2024)
    distributed.init_parallel_env()  # meets the other workers, if there are any
    rank, workers = distributed.get_rank(), distributed.get_world_size()
    network = nn.Sequential(nn.Linear(INPUTS, 64), nn.ReLU(), nn.Linear(64, CLASSES))
    optimizer = paddle.optimizer.Momentum(0.05, 0.9, parameters=network.parameters())
    start, mean = load(network, optimizer)
    model = paddle.DataParallel(network) if workers > 1 else network
    print(f"worker {rank} of {workers} begins after step {start}", flush=True)

    # One worker takes two parts of a batch in turn, and so adds up to the last bit what two workers would.
    parts = max(workers, 2)
    for step in range(start + 1, STEPS + 1):
        if step == CRASH_AT and start == 0 and rank == workers - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        x, y = map(paddle.to_tensor, batch_of(step))
        total = paddle.zeros([])
        for part in range(rank, parts, workers):
            loss = nn.functional.cross_entropy(model(x[part::parts]), y[part::parts]) * workers / parts
            loss.backward()  # gradients become the mean of those of all workers
            total += loss.detach()
        optimizer.step()
        optimizer.clear_grad()
        if workers > 1:
            distributed.all_reduce(total)
        mean = float(total) / workers
        if rank == 0 and step % 10 == 0:
            print(f"step={step} loss={mean:.4f}", flush=True)
        if rank == 0 and (step % SAVE_EVERY == 0 or step == STEPS):
            save(step, mean, network, optimizer)

    print(f"done step={STEPS} loss={mean!r} parameters={digest(network)}", flush=True)


if __name__ == "__main__":
    main()
