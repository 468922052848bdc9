"""What users can see is documented: every condition, reason, event, phase and flag."""

from pathlib import Path

import pytest
from typer.main import get_command

from paddle_operator.api import names
from paddle_operator.api.paddlejob import Failure, Phase, RunPolicy
from paddle_operator.cli import app
from paddle_operator.paddlejob.ends import table
from paddle_operator.paddlejob.environment import OURS

TOP = Path(__file__).parents[1]
GUIDE = (TOP / "docs/paddlejob.md").read_text()
NOT_SEEN_BY_USERS = {"OLD_FINALIZER", "TRAINING_CONTAINER"}

REASONS = sorted(
    value
    for name, value in vars(names).items()
    if name.isupper() and isinstance(value, str) and value[0].isupper() and name not in NOT_SEEN_BY_USERS
)


def test_there_are_reasons() -> None:
    assert "PodLost" in REASONS
    assert "Completed" in REASONS


@pytest.mark.parametrize("word", [*REASONS, *(str(phase) for phase in Phase), *sorted(OURS)])
def test_the_guide_explains(word: str) -> None:
    assert f"`{word}" in GUIDE


@pytest.mark.parametrize("field", [*RunPolicy.__struct_encode_fields__, *Failure.__struct_encode_fields__])
def test_the_guide_has_a_row_for_the_field(field: str) -> None:
    keys = [line.split("|")[1] for line in GUIDE.splitlines() if line.startswith("|")]
    assert any(f"`{field}`" in key for key in keys)


@pytest.mark.parametrize("reason", [row.reasons[0] for row in table().waiting])
def test_the_guide_has_each_reason_for_which_a_job_waits(reason: str) -> None:
    assert f"`{reason}`" in GUIDE


@pytest.mark.parametrize("kind", table().blame)
def test_the_guide_has_each_class_of_failures(kind: str) -> None:
    assert f"`{kind}`" in GUIDE


def test_every_command_stands_in_the_changelog_or_a_guide() -> None:
    texts = "".join(file.read_text() for file in [*TOP.glob("*.md"), *TOP.glob("docs/*.md")])
    commands = get_command(app).commands  # type: ignore[attr-defined]
    assert {"manager", "run", "render", "crd", "explain-exit"} <= set(commands)
    for name in commands:
        assert f"paddle-operator {name}" in texts


@pytest.mark.parametrize("page", [*TOP.glob("*.md"), *TOP.glob("docs/*.md")], ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    links = [part.partition(")")[0] for part in page.read_text().split("](")[1:]]
    for link in links:
        assert link.startswith("https://") or (page.parent / link).exists(), link
