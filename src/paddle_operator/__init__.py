"""Run PaddlePaddle training on Kubernetes, and the same file on a laptop."""


def __getattr__(name: str) -> str:
    """`__version__`, looked up when somebody asks: it costs 50 ms, which `--help` need not pay."""
    if name != "__version__":
        raise AttributeError(name)
    from importlib.metadata import version  # noqa: PLC0415

    return version("paddle-operator")
