"""Data-parallel training that says of itself how far it has come, by the module paddlejob."""

import hashlib
import os

import numpy as np
import paddle
import paddlejob
from paddle import distributed, nn

STEPS = int(os.environ.get("STEPS", "60"))
BATCH = 64  # points a step, of all workers together


def batch_of(step: int) -> tuple[np.ndarray, np.ndarray]:
    """Points around two centres, and at which centre each is."""
    rng = np.random.default_rng(step)
    sides = rng.integers(2, size=BATCH)
    points = rng.normal(scale=0.5, size=(BATCH, 2)) + sides[:, None] * 2 - 1
    return points.astype("float32"), sides


def train() -> None:
    distributed.init_parallel_env()
    paddlejob.begin()  # from here on: trains together with all the others, or not at all
    paddle.seed(0)
    rank, world = distributed.get_rank(), distributed.get_world_size()
    model: nn.Layer = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
    if world > 1:
        model = paddle.DataParallel(model)
    optimizer = paddle.optimizer.Adam(0.02, parameters=model.parameters())
    for step in range(1, STEPS + 1):
        points, sides = batch_of(step)
        mine = slice(rank, None, world)
        guesses, truth = model(paddle.to_tensor(points[mine])), paddle.to_tensor(sides[mine])
        loss = nn.functional.cross_entropy(guesses, truth)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        paddlejob.step(step, samples=len(truth))
        if step == 1 or step % 10 == 0:
            print(f"step={step} loss={mean_of_all(loss, world):.4f}", flush=True)
    weights = b"".join(parameter.numpy().tobytes() for parameter in model.parameters())
    fingerprint = hashlib.sha256(weights).hexdigest()[:16]
    print(f"done step={STEPS} loss={mean_of_all(loss, world):.4f} parameters={fingerprint}", flush=True)


def mean_of_all(loss: paddle.Tensor, world: int) -> float:
    """Of the shares that the workers have of a batch, which are of one size."""
    mean = loss.detach() / world
    if world > 1:
        distributed.all_reduce(mean)
    return float(mean)


if __name__ == "__main__":
    train()
