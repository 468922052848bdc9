"""The rights of the operator are written down once for people and once for machines: both say the same."""

import re
from pathlib import Path

import pytest

from paddle_operator.api.rights import FOLLOWED, LEASE, LEASE_NAME, Right, rules

PAGE = (Path(__file__).parents[2] / "docs" / "en" / "security.md").read_text(encoding="utf-8")
QUOTED = r"`([^`]+)`"


def documented(title: str) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """The rows of a section's table: resource, verbs, and the only names that are meant, if any."""
    section = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:3] for line in section.splitlines() if line.startswith("| `")]
    parts = [(*what.partition("only")[::2], tuple(verbs.strip().split(", "))) for what, verbs in rows]
    return [
        (resource, verbs, tuple(re.findall(QUOTED, names)))
        for resources, names, verbs in parts
        for resource in re.findall(QUOTED, resources)
    ]


@pytest.mark.parametrize(
    ("title", "rights"), [("Rights of the manager", FOLLOWED), ("Rights for the lease", LEASE)]
)
def test_the_page_lists_the_rights_that_are_granted(title: str, rights: tuple[Right, ...]) -> None:
    assert documented(title) == [(right.resource, right.verbs, right.names) for right in rights]


def test_nothing_is_granted_by_a_star_and_nothing_beyond_the_few_kinds_that_are_used() -> None:
    granted = {right.resource: {*right.verbs} for right in FOLLOWED}
    words = [word for rule in rules([*FOLLOWED, *LEASE]) for part in rule.values() for word in part]
    assert not [word for word in words if "*" in word]
    # It never writes a spec of its own accord as a whole, reads no secret, and makes no job.
    assert "update" not in {verb for name, verbs in granted.items() if "/" not in name for verb in verbs}
    assert "create" not in granted["paddlejobs"]
    assert "secrets" not in granted


def test_every_right_has_a_reason() -> None:
    assert [right for right in (*FOLLOWED, *LEASE) if not right.why] == []


def test_of_leases_only_the_one_of_the_leader_can_be_read_and_changed() -> None:
    free = [right for right in LEASE if not right.names]
    assert [right.verbs for right in free] == [("create",)]
    assert {name for right in LEASE for name in right.names} == {LEASE_NAME}
