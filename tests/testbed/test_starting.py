"""A component is waited for; one that does not come shows its log."""

from pathlib import Path

import pytest

from testbed import starting
from testbed.components import Layout
from testbed.errors import ControlPlaneError


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path / "blue")
    layout.logs.mkdir(parents=True)
    return layout


def shell(script: str) -> list[str]:
    return ["/bin/sh", "-c", script]


def test_one_that_ends_is_started_again_until_it_is_ready(layout: Layout) -> None:
    runs = layout.folder / "runs"
    command = shell(f"echo run >> {runs}")
    starting.start(
        "box", command, layout, lambda: runs.exists() and runs.read_text().count("run") == 3, most_starts=5
    )
    assert runs.read_text().count("run") == 3


@pytest.mark.parametrize(("most", "words"), [(1, "ended;"), (3, "ended 3 times;")])
def test_one_that_ends_too_often_shows_its_log(layout: Layout, most: int, words: str) -> None:
    with pytest.raises(
        ControlPlaneError, match=rf"box of the testbed 'blue' {words}[\s\S]*oh no[\s\S]*--name blue"
    ):
        starting.start("box", shell("echo oh no"), layout, lambda: False, most_starts=most)
    assert layout.log("box").read_text() == "oh no\n" * most


def test_one_that_is_never_ready_is_given_up(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "TIMEOUT_SECONDS", 0.0)
    with pytest.raises(ControlPlaneError, match="not ready after 0 s"):
        starting.wait("node", lambda: False, "box", layout)


def test_one_that_cannot_be_run_is_named(layout: Layout) -> None:
    with pytest.raises(ControlPlaneError, match=r"cannot run /no/such/program[\s\S]*testbed build"):
        starting.start("box", ["/no/such/program"], layout, lambda: False)
