"""Data-parallel training of a small network, which learns where a point of a spiral belongs.

It knows nothing of how it was started: `paddle.distributed` tells its rank. A batch depends on the number of
the step alone, and each worker takes its share, so that however many they are, they learn the same.
"""

import hashlib
import os

import numpy as np
import paddle
from paddle import distributed, nn

STEPS = int(os.environ.get("STEPS", "200"))
BATCH = 96  # points a step, of all workers together
ARMS = 3


def batch_of(step: int) -> tuple[np.ndarray, np.ndarray]:
    """Points of a spiral with some arms; the further out, the further round."""
    rng = np.random.default_rng(step)
    arms = rng.integers(ARMS, size=BATCH)
    radius = rng.uniform(0.1, 1, size=BATCH)
    angle = 4 * radius + 2 * np.pi * arms / ARMS + rng.normal(scale=0.1, size=BATCH)
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return points.astype("float32"), arms


def digest(model: nn.Layer) -> str:
    """A fingerprint of all parameters: equal only if every bit is."""
    content = b"".join(parameter.numpy().tobytes() for parameter in model.parameters())
    return hashlib.sha256(content).hexdigest()[:16]


def main() -> None:
    paddle.seed(2024)
    distributed.init_parallel_env()
    rank, workers = distributed.get_rank(), distributed.get_world_size()
    network = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, ARMS))
    model = paddle.DataParallel(network) if workers > 1 else network
    optimizer = paddle.optimizer.Adam(0.01, parameters=model.parameters())
    print(f"worker {rank} of {workers} begins", flush=True)

    for step in range(1, STEPS + 1):
        points, arms = map(paddle.to_tensor, batch_of(step))
        mine = slice(rank, None, workers)
        loss = nn.functional.cross_entropy(model(points[mine]), arms[mine])
        loss.backward()  # gradients become the mean of those of all workers
        optimizer.step()
        optimizer.clear_grad()
        total = loss.detach()
        if workers > 1:
            distributed.all_reduce(total)
        mean = float(total) / workers
        if rank == 0 and step % 10 == 0:
            print(f"step={step} loss={mean:.4f}", flush=True)

    print(f"done step={STEPS} loss={mean!r} parameters={digest(network)}", flush=True)


if __name__ == "__main__":
    main()
