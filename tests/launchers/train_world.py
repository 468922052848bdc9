"""A training of a second: each of its processes tells how many they were, and what they have learned.

Parameters and data are drawn anew in every process: only those that train together end with equal parameters.
`python train_world.py fleet` meets the others by fleet, else by init_parallel_env.
"""

import hashlib
import os
import sys
import uuid
from pathlib import Path

import numpy as np
import paddle
from paddle import distributed
from paddle.distributed import fleet

STEPS = 5


def meet() -> tuple[int, int]:
    """Our rank, and how many there are, as whoever made us meet has it."""
    if sys.argv[1:] == ["fleet"]:
        strategy = fleet.DistributedStrategy()
        # Only the group of all: examples/02-collective tells why.
        strategy.heter_ccl_mode = True
        fleet.init(is_collective=True, strategy=strategy)
        return fleet.worker_index(), fleet.worker_num()
    distributed.init_parallel_env()
    return distributed.get_rank(), distributed.get_world_size()


def main() -> None:
    rank, world = meet()
    chance = np.random.default_rng()
    paddle.seed(int(chance.integers(2**31)))
    layer = paddle.nn.Linear(4, 1)
    model = paddle.DataParallel(layer) if world > 1 else layer
    optimizer = paddle.optimizer.SGD(0.1, parameters=model.parameters())
    for _ in range(STEPS):
        loss = model(paddle.to_tensor(chance.random((8, 4), dtype="float32"))).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
    content = b"".join(parameter.numpy().tobytes() for parameter in layer.parameters())
    line = f"world={world} rank={rank} parameters={hashlib.sha256(content).hexdigest()[:16]}"
    print(line, flush=True)
    # Launchers show the output of one of their processes, and two that train alone have the same rank.
    Path(os.environ["RESULTS"], uuid.uuid4().hex).write_text(line)


if __name__ == "__main__":
    main()
