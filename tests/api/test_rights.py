"""The rights of the operator are written down once for people and once for tests: both say the same."""

import re
from pathlib import Path

from world import OPERATOR_RULES

PAGE = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8")


def documented() -> dict[str, set[str]]:
    """The rows of the table: resources, verbs, reasons."""
    section = PAGE.partition("## Rights of the manager")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:3] for line in section.splitlines() if line.startswith("| `")]
    return {
        resource: {verb.strip() for verb in verbs.split(",")}
        for resources, verbs in rows
        for resource in re.findall(r"`([^`]+)`", resources)
    }


def test_the_page_lists_the_rights_that_the_tests_grant() -> None:
    granted = {resource: {*rule["verbs"]} for rule in OPERATOR_RULES for resource in rule["resources"]}
    assert documented() == granted


def test_nothing_is_granted_by_a_star_and_nothing_beyond_the_few_kinds_that_are_used() -> None:
    words = [word for rule in OPERATOR_RULES for name in ("verbs", "resources") for word in rule[name]]
    assert not [word for word in words if "*" in word]
    # It never writes a spec of its own accord as a whole, reads no secret, and makes no job.
    assert "update" not in {
        verb for resource, verbs in documented().items() if "/" not in resource for verb in verbs
    }
    assert "create" not in documented()["paddlejobs"]
    assert "secrets" not in documented()
