#!/bin/sh
# Starts a training as the scripts of today's recipes do: forgets whatever has PADDLE or ENDPOINT in its name,
# and tells the launcher by NNODES, RANK, MASTER_ADDR and MASTER_PORT whom to meet. By itself: one worker.
set -eu

for name in $(env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p' | grep -e PADDLE -e ENDPOINT); do
    unset "$name"
done

# The log of each worker has a folder of its own: on one machine they share this one.
exec python -m paddle.distributed.launch \
    --master "${MASTER_ADDR:-127.0.0.1}:${MASTER_PORT:-8080}" \
    --nnodes "${NNODES:-1}" \
    --rank "${RANK:-0}" \
    --log_dir "$(mktemp -d)" \
    train_recipe.py
