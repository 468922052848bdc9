"""What users can see is documented: every condition, reason, event, phase, option, metric and right."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry
from shell_blocks import blocks_of
from typer.main import get_command

from paddle_operator.api import names
from paddle_operator.api.paddlejob import Failure, Phase, RunPolicy
from paddle_operator.api.rights import FOLLOWED, LEASE, Right
from paddle_operator.cli import app
from paddle_operator.paddlejob.ends import table
from paddle_operator.paddlejob.environment import OURS, OURS_TO_MEET
from paddle_operator.run.request import Source, load
from paddle_operator.runtime.controller import Turn
from paddle_operator.serve.jobs import JobMetrics
from paddle_operator.serve.metrics import Metrics

TOP = Path(__file__).parents[1]
ENGLISH = TOP / "docs" / "en"
PAGES = sorted([*TOP.glob("*.md"), *TOP.glob("docs/**/*.md")])
GUIDE = (ENGLISH / "paddlejob.md").read_text()
CONFIGURATION = (ENGLISH / "configuration.md").read_text()
METRICS = (ENGLISH / "metrics.md").read_text()
SECURITY = (ENGLISH / "security.md").read_text()
NOT_SEEN_BY_USERS = {"OLD_FINALIZER", "TRAINING_CONTAINER"}
# A comment, then the block; `as in FILE` for one that is quoted.
QUOTED = re.compile(r"^<!-- as in (\S+) -->\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
YAML_BLOCK = re.compile(r"(?:^```yaml\n|<<END\n)(.*?)(?:^```$|^END$)", re.MULTILINE | re.DOTALL)

REASONS = sorted(
    value
    for name, value in vars(names).items()
    if name.isupper() and isinstance(value, str) and value[0].isupper() and name not in NOT_SEEN_BY_USERS
)


def rows_of(page: str) -> list[list[str]]:
    """Of all tables: the cells."""
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if line.startswith("| `")
    ]


def test_there_are_reasons() -> None:
    assert "PodLost" in REASONS
    assert "Completed" in REASONS


@pytest.mark.parametrize("word", [*REASONS, *(str(phase) for phase in Phase), *sorted(OURS | OURS_TO_MEET)])
def test_the_guide_explains(word: str) -> None:
    assert f"`{word}" in GUIDE


@pytest.mark.parametrize("field", [*RunPolicy.__struct_encode_fields__, *Failure.__struct_encode_fields__])
def test_the_guide_has_a_row_for_the_field(field: str) -> None:
    assert any(f"`{field}`" in row[0] for row in rows_of(GUIDE))


@pytest.mark.parametrize("reason", [row.reasons[0] for row in table().waiting])
def test_the_guide_has_each_reason_for_which_a_job_waits(reason: str) -> None:
    assert f"`{reason}`" in GUIDE


@pytest.mark.parametrize("kind", table().blame)
def test_the_guide_has_each_class_of_failures(kind: str) -> None:
    assert f"`{kind}`" in GUIDE


def commands() -> dict[str, Any]:
    found: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
    return found


def test_every_command_stands_in_the_changelog_or_a_guide() -> None:
    texts = "".join(page.read_text() for page in PAGES)
    assert {"manager", "run", "render", "crd", "explain-exit"} <= set(commands())
    for name in commands():
        assert f"paddle-operator {name}" in texts


OPTIONS = {option.opts[0]: option for option in commands()["manager"].params if option.name != "help"}


def test_the_manager_has_options() -> None:
    assert {"--namespace", "--leader-elect", "--metrics-bind-address"} <= OPTIONS.keys()


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_of_the_manager_is_documented_with_its_variable_and_its_default(name: str) -> None:
    option = OPTIONS[name]
    (row,) = (row for row in rows_of(CONFIGURATION) if f"`{name}`" in row[0])
    named, variable, left_out, meaning = row
    assert re.findall(r"`([^`]+)`", named) == [*option.opts, *option.secondary_opts]
    assert variable == f"`{option.envvar or 'KUBECONFIG'}`"
    if option.default and not isinstance(option.default, bool):
        assert left_out == f"`{option.default}`"
    assert meaning


def test_no_option_is_documented_that_there_is_not() -> None:
    documented = {
        word for row in rows_of(CONFIGURATION) for word in re.findall(r"`(--[^`]+)`", row[0]) if len(row) == 4
    }
    known = {word for option in OPTIONS.values() for word in (*option.opts, *option.secondary_opts)}
    assert documented == known


def leaves(values: dict[str, Any], path: str = "") -> Iterator[str]:
    for key, value in values.items():
        # Users replace resources as a whole.
        if isinstance(value, dict) and value and key != "resources":
            yield from leaves(value, f"{path}{key}.")
        else:
            yield path + key


def test_the_values_of_the_chart_are_documented() -> None:
    values = yaml.safe_load((TOP / "charts" / "paddle-operator" / "values.yaml").read_text())
    text = CONFIGURATION.partition("## Values of the chart")[2]
    assert [word for row in rows_of(text) for word in re.findall(r"`([^`]+)`", row[0])] == [*leaves(values)]


def metric_names() -> dict[str, set[str]]:
    """Of each metric of ours, its labels; counters as Prometheus shows them."""
    metrics, jobs = Metrics(), CollectorRegistry()
    JobMetrics(jobs)
    collectors = [*metrics.registry._collector_to_names, *jobs._collector_to_names]
    found = {}
    for collector in collectors:
        for family in collector.collect():
            suffix = "_total" if family.type == "counter" else ""
            labels = set(getattr(collector, "_labelnames", ()))
            labels |= {label for sample in family.samples for label in sample.labels} - {"le"}
            found[family.name + suffix] = labels
    return {name: labels for name, labels in found.items() if name.startswith("paddle_operator_")}


def test_each_metric_is_documented_with_its_labels() -> None:
    documented = {
        row[0].strip("`"): set(re.findall(r"`([^`]+)`", row[2]))
        for row in rows_of(METRICS)
        if row[0].startswith("`paddle_operator_")
    }
    assert documented == metric_names()


@pytest.mark.parametrize("word", [*(str(turn) for turn in Turn), "New"])
def test_the_page_of_metrics_explains_the_label(word: str) -> None:
    assert f"`{word}`" in METRICS


def test_questions_and_alerts_ask_for_metrics_that_there_are() -> None:
    asked = {
        re.sub(r"_(bucket|count|sum)$", "", word) for word in re.findall(r"paddle_operator_\w+", METRICS)
    }
    assert asked <= metric_names().keys()


def rights_of(section: str) -> list[tuple[set[str], set[str]]]:
    """The rows of a table: resources (and the names that are meant), verbs."""
    text = SECURITY.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return [(set(re.findall(r"`([^`]+)`", row[0])), set(row[1].split(", "))) for row in rows_of(text)]


def as_row(right: Right) -> tuple[set[str], set[str]]:
    return {right.resource, *right.names}, {*right.verbs}


def test_the_page_lists_the_rights_of_the_operator() -> None:
    followed = [
        ({one}, verbs) for resources, verbs in rights_of("Rights of the manager") for one in resources
    ]
    assert sorted(map(str, followed)) == sorted(str(as_row(right)) for right in FOLLOWED) != []
    assert rights_of("Rights for the lease") == [as_row(right) for right in LEASE]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    links = [part.partition(")")[0] for part in page.read_text().split("](")[1:]]
    for link in links:
        file, _, section = link.partition("#")
        if link.startswith("https://"):
            continue
        target = page.parent / file if file else page
        assert target.exists(), link
        assert not section or section in sections_of(target), link


def sections_of(page: Path) -> set[str]:
    """As GitHub names them."""
    titles = [line.lstrip("#").strip() for line in page.read_text().splitlines() if line.startswith("#")]
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_what_a_page_quotes_is_as_in_the_file(page: Path) -> None:
    for name, text in QUOTED.findall(page.read_text()):
        without_introduction = re.sub(r"\A(#.*\n)+", "", (TOP / name).read_text())
        assert text == without_introduction, name


def test_pages_quote_files() -> None:
    assert len(QUOTED.findall((ENGLISH / "user-guide.md").read_text())) == 4


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_yaml_of_a_page_is_yaml_and_its_jobs_are_good(page: Path) -> None:
    for block in YAML_BLOCK.findall(page.read_text()):
        documents = [document for document in yaml.safe_load_all(block) if document]
        assert documents, block
        if any(isinstance(one, dict) and one.get("kind") == "PaddleJob" for one in documents):
            assert load([Source(page.name, block, page.parent)], "default").jobs


def test_only_what_can_be_typed_is_a_block_of_shell() -> None:
    for page in PAGES:
        for block in blocks_of(page.read_text()):
            assert not re.search(r"^\$ ", block.commands, re.MULTILINE), (page, block)
