"""Run PaddlePaddle training on Kubernetes, and the same file on a laptop."""

from importlib.metadata import version

__version__ = version("paddle-operator")
