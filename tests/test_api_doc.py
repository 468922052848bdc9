"""docs/en/api_doc.md is up to date and whole; `make generate` writes it again."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from paddle_operator.api.crd import paddle_job_schema

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "en" / "api_doc.md"


@pytest.fixture(scope="module")
def api_doc() -> ModuleType:
    spec = importlib.util.spec_from_file_location("api_doc", ROOT / "dev" / "api_doc.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_types_say(api_doc: ModuleType) -> None:
    assert PAGE.read_text(encoding="utf-8") == api_doc.page(), (
        "docs/en/api_doc.md is out of date: run `make generate`"
    )


def fields_in(path: str, schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The object and the name of each field; what is in a pod template is Kubernetes' own."""
    for name, field in schema["properties"].items():
        yield path, name
        inner = field.get("items", field)
        if "properties" in inner and name != "template":
            yield from fields_in(f"{path}.{name}{'[]' if inner is not field else ''}", inner)


def rows_of(page: str) -> Iterator[tuple[str, str]]:
    """The same of each row, by the heading that it stands under."""
    objects: list[str] = []
    for line in page.splitlines():
        if line.startswith("#"):
            objects = [one.strip("`") for one in line.strip("# ").split(", ")]
        elif line.startswith("| `"):
            yield from ((one, line.split("`")[1]) for one in objects)


@pytest.mark.parametrize("part", ["spec", "status"])
def test_every_field_has_a_row(part: str) -> None:
    rows = [row for row in rows_of(PAGE.read_text(encoding="utf-8")) if row[0].split(".")[0] == part]
    fields = list(fields_in(part, paddle_job_schema()["properties"][part]))
    assert len(fields) > 25
    assert sorted(rows) == sorted(fields)
