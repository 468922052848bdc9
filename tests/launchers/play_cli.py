"""What the commands of today's recipes do before they train: these steps, and nothing of theirs besides.

    NNODES=2 RANK=0 MASTER_ADDR=10.0.0.1 MASTER_PORT=2397 python play_cli.py train_world.py

They keep the variables of one convention, take defaults for those that are missing, delete what an
operator may have set of the other one, and start Paddle's launcher.
"""

import os
import sys

DELETED = (
    "PADDLE_TRAINERS_NUM",
    "PADDLE_TRAINER_ID",
    "PADDLE_TRAINERS",
    "PADDLE_TRAINER_ENDPOINTS",
    "PADDLE_WORKERS_IP_PORT_LIST",
    "DISTRIBUTED_TRAINER_ENDPOINTS",
    "FLAGS_START_PORT",
)


def main() -> None:
    left = {name: value for name, value in os.environ.items() if name not in DELETED}
    address, port = left.get("MASTER_ADDR", "127.0.0.1"), left.get("MASTER_PORT", "8080")
    options = [
        f"--master={address}:{port}",
        f"--nnodes={left.get('NNODES', '1')}",
        f"--rank={left.get('RANK', '0')}",
    ]
    command = [sys.executable, "-m", "paddle.distributed.launch", *options, *sys.argv[1:]]
    os.execve(sys.executable, command, left)


if __name__ == "__main__":
    main()
