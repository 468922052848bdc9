"""Data-parallel training of a small residual network with fleet, one process a worker.

What is in the picture: a circle, a square or a cross? The script draws the pictures itself. A batch depends
on the number of the step alone, and each worker takes its share: however many they are, they learn the same.
`python train_fleet.py` by itself is a job of one worker.
"""

import hashlib
import os

import numpy as np
import paddle
from paddle import distributed, nn
from paddle.distributed import fleet

STEPS = int(os.environ.get("STEPS", "240"))
BATCH = 96  # pictures a step, of all workers together
SIZE = 20  # pixels
SHAPES = 3


def draw(shape: int, rng: np.random.Generator) -> np.ndarray:
    """The outline of one shape, somewhere in the picture and of some size, under noise."""
    radius = rng.uniform(4, 8)
    center = rng.uniform(radius, SIZE - 1 - radius, size=(2, 1, 1))
    down, right = np.abs(np.mgrid[:SIZE, :SIZE] - center)
    far, near = np.maximum(down, right), np.minimum(down, right)
    circle = np.abs(np.hypot(down, right) - radius) < 1
    square = np.abs(far - radius) < 1
    cross = (near < 1) & (far < radius)
    return (circle, square, cross)[shape] + rng.normal(scale=0.5, size=(SIZE, SIZE))


def batch_of(step: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(step)
    shapes = rng.integers(SHAPES, size=BATCH)
    pictures = np.stack([draw(shape, rng) for shape in shapes])
    return pictures[:, None].astype("float32"), shapes


class Block(nn.Layer):
    """Adds to its input what two convolutions make of it, at first nothing: learning begins gently."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        nothing = nn.initializer.Constant(0.0)
        self.change = nn.Sequential(
            nn.Silu(),
            nn.Conv2D(channels, channels, 3, padding=1),
            nn.Silu(),
            nn.Conv2D(channels, channels, 3, padding=1, weight_attr=nothing),
        )

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return x + self.change(x)


def residual_network() -> nn.Layer:
    # No batch normalisation: it would make the result depend on how a batch is shared out.
    return nn.Sequential(
        nn.Conv2D(1, 16, 3, stride=2, padding=1),
        Block(16),
        nn.Conv2D(16, 32, 3, stride=2, padding=1),
        Block(32),
        nn.Silu(),
        nn.AdaptiveAvgPool2D(1),
        nn.Flatten(),
        nn.Linear(32, SHAPES),
    )


def digest(model: nn.Layer) -> str:
    """A fingerprint of all parameters: equal only if every bit is."""
    content = b"".join(parameter.numpy().tobytes() for parameter in model.parameters())
    return hashlib.sha256(content).hexdigest()[:16]


def main() -> None:
    paddle.seed(2024)
    strategy = fleet.DistributedStrategy()
    # Only the group of all workers. By itself fleet makes more, for other kinds of parallelism; on CPUs, with
    # Paddle 3.0.0, workers now and then miss each other in these (docs/en/troubleshooting.md).
    strategy.heter_ccl_mode = True
    fleet.init(is_collective=True, strategy=strategy)  # meets them at the addresses that the operator has set
    rank, workers = fleet.worker_index(), fleet.worker_num()
    network = residual_network()
    model = paddle.DataParallel(network) if workers > 1 else network
    adam = paddle.optimizer.Adam(0.002, parameters=model.parameters())
    optimizer = fleet.distributed_optimizer(adam)
    print(f"worker {rank} of {workers} begins", flush=True)

    for step in range(1, STEPS + 1):
        pictures, shapes = map(paddle.to_tensor, batch_of(step))
        mine = slice(rank, None, workers)
        loss = nn.functional.cross_entropy(model(pictures[mine]), shapes[mine])
        loss.backward()  # gradients become the mean of those of all workers
        optimizer.step()
        optimizer.clear_grad()
        total = loss.detach()
        if workers > 1:
            distributed.all_reduce(total)
        mean = float(total) / workers
        if rank == 0 and step % 10 == 0:
            print(f"step={step} loss={mean:.4f}", flush=True)

    print(f"done step={STEPS} loss={mean!r} parameters={digest(model)}", flush=True)


if __name__ == "__main__":
    main()
