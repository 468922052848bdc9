"""Data-parallel training with several processes in each pod, one for each GPU as a rule; here on CPUs.

STEPS    how far to train
FAIL_AT  at this step the last process finds bad data
"""

import hashlib
import os

import numpy as np
import paddle
from paddle import distributed, nn

STEPS = int(os.environ.get("STEPS", "100"))
FAIL_AT = int(os.environ.get("FAIL_AT", "0"))

BATCH = 96  # examples a step, of all processes together
INPUTS, CLASSES = 32, 3


def batch_of(step: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(step)
    truth = np.random.default_rng(0).normal(size=(INPUTS, CLASSES))
    x = rng.normal(size=(BATCH, INPUTS))
    return x.astype("float32"), np.argmax(np.tanh(x) @ truth, axis=1)


def digest(model: nn.Layer) -> str:
    """A fingerprint of all parameters: equal only if every bit is."""
    content = b"".join(parameter.numpy().tobytes() for parameter in model.parameters())
    return hashlib.sha256(content).hexdigest()[:16]


def main() -> None:
    paddle.seed(2024)
    distributed.init_parallel_env()  # meets the other processes, those of its pod and those of others
    rank, processes = distributed.get_rank(), distributed.get_world_size()
    network = nn.Sequential(nn.Linear(INPUTS, 64), nn.ReLU(), nn.Linear(64, CLASSES))
    model = paddle.DataParallel(network) if processes > 1 else network
    optimizer = paddle.optimizer.Momentum(0.05, 0.9, parameters=network.parameters())
    print(f"process {rank} of {processes} begins", flush=True)

    for step in range(1, STEPS + 1):
        if step == FAIL_AT and rank == processes - 1:
            raise ValueError(f"bad data at step {step}")
        x, y = map(paddle.to_tensor, batch_of(step))
        mine = slice(rank, None, processes)
        loss = nn.functional.cross_entropy(model(x[mine]), y[mine])
        loss.backward()  # gradients become the mean of those of all processes
        optimizer.step()
        optimizer.clear_grad()
        if step % 10 == 0:
            print(f"step={step} loss={float(loss):.4f}", flush=True)  # of its own share

    print(f"done after {STEPS} steps, parameters={digest(network)}", flush=True)


if __name__ == "__main__":
    main()
