"""Files that are made from other files are up to date; `make generate` writes them again."""

import importlib.util
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from dev.manifests.__main__ import current_files
from paddle_operator.paddlejob.ends import table
from testbed.controlplane import ControlPlane

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests" / "golden" / "render"
EXAMPLES = {
    **{
        file.parent.name + file.stem.removeprefix("job"): file
        for file in sorted(ROOT.glob("examples/*/job*.yaml"))
    },
    **{file.stem: file for file in sorted(ROOT.glob("deploy/examples/*.yaml"))},
}
MANIFESTS = current_files()
REGENERATING = bool(os.environ.get("REGENERATE"))


@cache
def paddle_operator(*arguments: str) -> str:
    command = [sys.executable, "-m", "paddle_operator", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode()


def rendered(name: str) -> str:
    return paddle_operator("render", str(EXAMPLES[name].relative_to(ROOT)))


def tool(name: str) -> ModuleType:
    """A script of dev/."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "dev" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_crd_file_is_what_the_command_prints() -> None:
    stored = (ROOT / "deploy" / "v1" / "crd.yaml").read_text(encoding="utf-8")
    assert stored == paddle_operator("crd"), "deploy/v1/crd.yaml is out of date: run `make generate`"


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_file_of_an_installation_is_what_the_generator_writes(name: str) -> None:
    file = ROOT / name
    assert file.is_file(), f"{name} is missing: run `make generate`"
    # Not compared by pytest: of the CRD, finding the difference takes minutes.
    is_current = file.read_text(encoding="utf-8") == MANIFESTS[name]
    assert is_current, f"{name} is out of date: run `make generate`"


def test_no_file_of_the_chart_is_left_of_an_earlier_generator() -> None:
    chart = ROOT / "charts" / "paddle-operator"
    written_by_hand = {"values.yaml", "values.schema.json", "templates/_helpers.tpl", "templates/NOTES.txt"}
    generated = {name.removeprefix("charts/paddle-operator/") for name in MANIFESTS}
    found = {str(file.relative_to(chart)) for file in chart.rglob("*") if file.is_file()}
    assert found - written_by_hand <= generated


def test_the_guide_to_troubles_is_made_from_the_table_of_ends() -> None:
    stored = (ROOT / "docs" / "en" / "troubleshooting.md").read_text(encoding="utf-8")
    assert stored == tool("troubleshooting").page(), (
        "docs/en/troubleshooting.md is out of date: run `make generate`"
    )


def test_the_guide_to_troubles_has_a_section_for_every_class() -> None:
    assert set(tool("troubleshooting").CLASSES) == set(table().blame)


def test_there_are_examples() -> None:
    assert {"01-single", "02-collective", "resnet"} <= EXAMPLES.keys()


@pytest.mark.parametrize("name", EXAMPLES)
def test_golden_render_of_an_example(name: str) -> None:
    """What users see of a change in what a job becomes. REGENERATE=1 writes it anew, for the diff."""
    golden = GOLDEN / f"{name}.yaml"
    found = rendered(name)
    if REGENERATING:
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(found, encoding="utf-8")
    assert golden.is_file(), f"tests/golden/render/{name}.yaml is missing: run `make generate`"
    assert golden.read_text(encoding="utf-8") == found, "run `make generate`, and look at the diff"


def test_golden_renders_are_all_of_an_example() -> None:
    stale = sorted(GOLDEN.glob("*.yaml")) if GOLDEN.is_dir() else []
    stale = [file for file in stale if file.stem not in EXAMPLES]
    if REGENERATING:
        for file in stale:
            file.unlink()
        stale = []
    assert stale == [], "the example is gone: run `make generate`"


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_render_is_yaml_with_everything_in_the_order_in_which_it_is_made(name: str) -> None:
    documents = list(yaml.safe_load_all(rendered(name)))
    written = yaml.safe_load_all(EXAMPLES[name].read_text(encoding="utf-8"))
    (job,) = (document for document in written if document["kind"] == "PaddleJob")
    spec = job["spec"]
    count = sum(spec[role]["replicas"] for role in ("ps", "worker") if role in spec)
    pods, services = ["Pod"] * count, ["Service"] * count
    by_name = spec.get("intranet") == "Service"
    expected = ["ConfigMap", *services, *pods] if by_name else [*pods, "ConfigMap"]
    assert [document["kind"] for document in documents] == expected


@pytest.mark.apiserver
def test_the_schema_of_a_pod_template_is_that_of_the_real_server(apiserver: ControlPlane) -> None:
    kubectl = [str(apiserver.kubectl), "--kubeconfig", str(apiserver.kubeconfig)]
    command = [*kubectl, "get", "--raw", "/openapi/v3/api/v1"]
    published = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    stored = (ROOT / "src" / "paddle_operator" / "api" / "pod_template.json").read_text(encoding="utf-8")
    expected = tool("pod_template").pod_template_schema(published)
    assert json.loads(stored) == expected, "pod_template.json is out of date: run `make generate`"
