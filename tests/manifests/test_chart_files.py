"""The parts of the chart that are written by hand, as far as they can be judged without Helm."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from dev.manifests import chart, objects
from paddle_operator.log import LogFormat, LogLevel

CHART = Path(__file__).resolve().parents[2] / "charts" / "paddle-operator"
VALUES = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
SCHEMA = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
# People may put anything in there, or a parent chart does.
OPEN = {"requests", "limits", "claims", "annotations", "global"}


def names_of_values(values: Any, prefix: str = "") -> set[str]:
    return {
        name
        for key, value in values.items()
        for name in (f"{prefix}{key}", *(names_of_values(value, f"{prefix}{key}.") if is_map(value) else ()))
    }


def is_map(value: Any) -> bool:
    return isinstance(value, dict)


def names_of_schema(schema: Any, prefix: str = "") -> set[str]:
    return {
        name
        for key, inner in schema.get("properties", {}).items()
        if key not in OPEN
        for name in (f"{prefix}{key}", *names_of_schema(inner, f"{prefix}{key}."))
    }


def test_the_schema_knows_every_value_and_no_others() -> None:
    described = {name for name in names_of_values(VALUES) if not {*name.split(".")} & OPEN}
    assert described == names_of_schema(SCHEMA)


def test_a_misspelt_value_is_refused_wherever_it_stands() -> None:
    sections = [name for name, value in VALUES.items() if is_map(value) and value]
    assert SCHEMA["additionalProperties"] is False
    assert [
        name for name in sections if SCHEMA["properties"][name]["additionalProperties"] is not False
    ] == []


def test_the_defaults_are_those_of_the_manifests() -> None:
    assert VALUES["image"]["repository"] == objects.REPOSITORY
    assert VALUES["resources"] == objects.RESOURCES
    assert VALUES["watchNamespace"] is None
    assert VALUES["replicas"] == 1


@pytest.mark.parametrize(("value", "words"), [("logFormat", LogFormat), ("logLevel", LogLevel)])
def test_words_for_logs_are_those_of_the_manager(value: str, words: type[LogFormat | LogLevel]) -> None:
    assert SCHEMA["properties"][value]["enum"] == ["", *words]


@pytest.mark.parametrize(
    ("version", "for_helm"),
    [
        ("0.1.0.dev0", "0.1.0-dev.0"),
        ("0.1.0", "0.1.0"),
        ("1.0rc1", "1.0.0-rc.1"),
        ("1.2.3b4", "1.2.3-b.4"),
    ],
)
def test_a_version_is_written_as_helm_wants_it(version: str, for_helm: str) -> None:
    assert chart.semantic(version) == for_helm


@pytest.mark.parametrize("version", ["0.1.0+local", "1.0.post1", "one"])
def test_a_version_that_helm_cannot_have_is_refused(version: str) -> None:
    with pytest.raises(ValueError, match="Helm"):
        chart.semantic(version)


def test_what_helm_would_take_for_a_template_is_escaped() -> None:
    assert chart.escaped("a {{ b }} {c}") == 'a {{ "{{" }} b }} {c}'


def test_every_hole_is_filled() -> None:
    texts = chart.files("1.0.0", policy="")
    assert [name for name, text in texts.items() if "'@" in text] == []
