from pathlib import Path

import pytest

from dev import newest_paddle as environment


@pytest.fixture(scope="session")
def newest_paddle() -> Path:
    """The Python of an environment that has the newest Paddle and nothing of ours."""
    return environment.ensure()
