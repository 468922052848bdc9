"""Run PaddlePaddle training on Kubernetes, and the same file on a laptop."""
