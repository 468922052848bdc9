from pathlib import Path

import pytest

from dev import paddles


@pytest.fixture(scope="session")
def newest_paddle() -> Path:
    """The Python of an environment that has the newest Paddle and nothing of ours."""
    return paddles.ensure(paddles.NEWEST)
