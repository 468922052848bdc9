"""Words that make no sense are refused before anything is started."""

import signal
from collections.abc import Iterator

import pytest

from testbed.__main__ import main


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """`main` says what SIGTERM does; that must not outlive the test."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--gpus", "-1", "--node"], "'-1' is no number of GPUs; give 0 or more"),
        (["--gpus", "two", "--node"], "'two' is no number of GPUs"),
        (["--label", "accelerator", "--node"], "'accelerator' is no label; give name=value"),
        (["--label", "a=b c", "--node"], "'a=b c' is no label"),
        (["--label", "a=b,c=d", "--node"], "'a=b,c=d' is no label"),
    ],
)
def test_a_value_that_a_node_could_not_have(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["up", *words])
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--gpus", "4"], ["--label", "a=b"]])
def test_what_a_node_shall_have_without_a_node(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["up", *words]) == 1
    assert "say --node as well" in capsys.readouterr().err
