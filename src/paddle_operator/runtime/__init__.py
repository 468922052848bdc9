"""The loop around decisions: watch, queue, gate, execute. Knows nothing of Paddle."""
