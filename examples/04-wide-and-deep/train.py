"""A wide & deep model on parameter servers guesses who will click, from six categories and four numbers.

Servers and workers run this same script; the operator's variables tell each which of them it is. The servers
hold the parameters. Each worker learns by itself from data of its own, and every few steps exchanges with the
servers what has changed since. So the result is almost the same in every run, but not to the last bit.
"""

import os
import socket
import sys
import time
from contextlib import suppress
from typing import Any

import numpy as np
import paddle
from paddle import nn, static
from paddle.distributed import fleet
from paddle.distributed.communicator import Communicator
from paddle.distributed.ps.the_one_ps import BarrierTable

STEPS = int(os.environ.get("STEPS", "200"))
EPOCH = 50  # steps
EXCHANGE = 10  # steps between two exchanges with the servers
BATCH = 64
SLOTS, CATEGORIES, NUMBERS = 6, 1000, 4


def batch_of(worker: int, step: int) -> dict[str, np.ndarray]:
    """Clicks follow a hidden rule; few categories are frequent and most are rare, as in life."""
    rule = np.random.default_rng(7)
    of_categories, of_numbers = rule.normal(size=(SLOTS, CATEGORIES)), rule.normal(size=NUMBERS)
    rng = np.random.default_rng([worker, step])
    categories = rng.zipf(1.5, size=(BATCH, SLOTS)) % CATEGORIES
    numbers = rng.normal(size=(BATCH, NUMBERS))
    score = of_categories[range(SLOTS), categories].sum(axis=1) + numbers @ of_numbers
    feed = {f"slot{slot}": categories[:, [slot]] for slot in range(SLOTS)}
    return feed | {"numbers": numbers.astype("float32"), "clicks": (score > 0)[:, None].astype("float32")}


def wide_and_deep() -> static.Variable:
    """The loss. Wide: a weight for each category. Deep: a small network that sees them together."""
    slots = [static.data(f"slot{slot}", [None, 1], "int64") for slot in range(SLOTS)]
    numbers = static.data("numbers", [None, NUMBERS], "float32")
    clicks = static.data("clicks", [None, 1], "float32")

    def embeddings(name: str, width: int) -> list[static.Variable]:
        table = paddle.ParamAttr(name=name, initializer=nn.initializer.Uniform(-0.05, 0.05))
        rows = (
            static.nn.embedding(slot, [CATEGORIES, width], is_sparse=True, param_attr=table) for slot in slots
        )
        return [paddle.reshape(row, [-1, width]) for row in rows]

    wide = paddle.add_n(embeddings("wide", 1)) + static.nn.fc(numbers, 1)
    deep = paddle.concat([*embeddings("deep", 8), numbers], axis=1)
    for width in (32, 16):
        deep = static.nn.fc(deep, width, activation="relu")
    return nn.functional.binary_cross_entropy_with_logits(wide + static.nn.fc(deep, 1), clicks)


def wait_for_servers() -> None:
    """Until each accepts connections: Paddle 2.6 does this by itself, but 3.0 does not, and then fails."""
    for endpoint in fleet.server_endpoints():
        host, _, port = endpoint.rpartition(":")
        print(f"waiting for server {endpoint}", flush=True)
        while True:
            # Not yet listening; or, where servers have names, not yet known by it.
            with suppress(OSError), socket.create_connection((host, int(port)), timeout=5):
                break
            time.sleep(0.2)


def begin_in_turn() -> None:
    """The first worker hands its parameters to the servers, then the others fetch them.

    Paddle keeps this order by a barrier on the first server. There a worker that is slow to wake up may be
    overtaken, and then all wait for ever. So that barrier lets everybody pass here, and gloo keeps the order.
    """
    describe, init_params = BarrierTable._set, Communicator.init_params  # noqa: SLF001

    def describe_for_one(table: BarrierTable, description: Any) -> None:
        describe(table, description)
        description.common.trainer_num = 1

    def init_in_turn(communicator: Communicator, parameters: Any) -> None:
        if not fleet.is_first_worker():
            fleet.util.barrier()
        init_params(communicator, parameters)
        if fleet.is_first_worker():
            fleet.util.barrier()

    BarrierTable._set, Communicator.init_params = describe_for_one, init_in_turn  # noqa: SLF001


def train(loss: static.Variable) -> None:
    worker = fleet.worker_index()
    executor = static.Executor(paddle.CPUPlace())
    executor.run(static.default_startup_program())
    wait_for_servers()
    fleet.init_worker()
    print(f"worker {worker} of {fleet.worker_num()} begins", flush=True)

    losses = []
    for step in range(1, STEPS + 1):
        (found,) = executor.run(feed=batch_of(worker, step), fetch_list=[loss])
        losses.append(found.item())
        if step % 10 == 0:
            print(f"step={step} loss={np.mean(losses[-10:]):.4f}", flush=True)

    fleet.stop_worker()
    first, last = np.mean(losses[:EPOCH]), np.mean(losses[-EPOCH:])
    print(f"done step={STEPS} loss={last:.4f} (first epoch: {first:.4f})", flush=True)


def main() -> None:
    paddle.enable_static()
    paddle.seed(2024)
    fleet.init(is_collective=False)  # by the variables that the operator has set
    if not fleet.server_num():
        sys.exit("no parameter servers: start this script with `paddle-operator run job.yaml`, not by itself")
    begin_in_turn()
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = True  # workers do not wait for each other
    strategy.a_sync_configs = {"k_steps": EXCHANGE}
    loss = wide_and_deep()
    fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()  # for ever: it is the operator that ends a server, when all workers are done
    else:
        train(loss)


if __name__ == "__main__":
    main()
