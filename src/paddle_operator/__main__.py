"""So that `python -m paddle_operator` is the same as `paddle-operator`."""

from .cli import main

main()
