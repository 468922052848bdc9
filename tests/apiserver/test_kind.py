"""The PaddleJob kind on a real API server, as kubectl users meet it."""

import subprocess
from pathlib import Path

import make
import pytest
import yaml
from world import World

from paddle_operator.api.meta import Manifest
from paddle_operator.cluster import Invalid

pytestmark = pytest.mark.apiserver

TOP = Path(__file__).parents[2]


def kubectl(world: World, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [str(world.plane.kubectl), "--kubeconfig", str(world.plane.kubeconfig), "-n", world.namespace]
    return subprocess.run([*command, *arguments], input=stdin, capture_output=True, text=True, check=False)


def apply(world: World, manifest: Manifest) -> subprocess.CompletedProcess[str]:
    return kubectl(world, "apply", "-f", "-", stdin=yaml.safe_dump(manifest))


def test_the_crd_fits_kubectl_apply(world: World) -> None:
    for _ in range(2):
        result = kubectl(world, "apply", "-f", str(TOP / "deploy/v1/crd.yaml"))
        assert result.returncode == 0, result.stderr
    assert "unchanged" in result.stdout


@pytest.mark.parametrize(
    "file", [*sorted(TOP.glob("examples/*/job.yaml")), TOP / "deploy/examples/resnet.yaml"]
)
def test_every_example_is_accepted_without_a_warning(world: World, file: Path) -> None:
    result = kubectl(world, "apply", "-f", str(file))
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("file", sorted(TOP.glob("tests/golden/seeds/*.yaml")), ids=lambda file: file.stem)
def test_the_yaml_of_the_seeds_applies_verbatim(world: World, file: Path) -> None:
    jobs = [one for one in yaml.safe_load_all(file.read_text()) if one and one["kind"] == "PaddleJob"]
    for job in jobs:
        result = apply(world, job)
        assert (result.returncode, result.stderr) == (0, ""), file


def test_a_typo_in_a_container_field_is_refused_and_named(world: World) -> None:
    pod = make.template(make.container(imagePullPolice="Always"))
    result = apply(world, make.manifest(pod=pod))
    assert result.returncode != 0
    assert 'unknown field "spec.worker.template.spec.containers[0].imagePullPolice"' in result.stderr


def test_labels_and_annotations_of_a_template_survive(world: World) -> None:
    metadata = {"labels": {"team": "vision"}, "annotations": {"note": "two words"}}
    assert apply(world, make.manifest(pod=make.template(metadata=metadata))).returncode == 0
    stored = yaml.safe_load(kubectl(world, "get", "pdj", "resnet", "-o", "yaml").stdout)
    assert stored["spec"]["worker"]["template"]["metadata"] == metadata


def test_kubectl_get_shows_status_mode_and_age(world: World) -> None:
    assert apply(world, make.manifest()).returncode == 0
    assert kubectl(world, "get", "pdj").stdout.split("\n")[0].split() == ["NAME", "STATUS", "MODE", "AGE"]


async def test_the_number_of_workers_is_fixed(world: World) -> None:
    assert apply(world, make.manifest(workers=2)).returncode == 0
    result = apply(world, make.manifest(workers=3))
    assert result.returncode != 0
    assert "spec.worker.replicas" in result.stderr
    assert "delete the job and create it anew" in result.stderr


async def test_servers_cannot_be_added_to_a_job(world: World) -> None:
    assert apply(world, make.manifest()).returncode == 0
    result = apply(world, make.manifest(ps={"replicas": 1, "template": make.template()}))
    assert result.returncode != 0
    assert "ps cannot change during the life of a job" in result.stderr


@pytest.mark.parametrize(
    ("before", "after", "field"),
    [
        ({}, {"intranet": "Host"}, "spec.intranet"),
        ({"intranet": "Service"}, {"intranet": "PodIP"}, "spec.intranet"),
        ({"withGloo": 1}, {"withGloo": 0}, "spec.withGloo"),
        ({"withGloo": 1}, {}, "spec.withGloo"),
    ],
)
def test_how_peers_find_each_other_is_fixed(
    world: World, before: Manifest, after: Manifest, field: str
) -> None:
    assert apply(world, make.manifest(**before)).returncode == 0
    result = apply(world, make.manifest(**after))
    assert result.returncode != 0
    assert f"{field}: " in result.stderr
    assert "delete the job and create it anew" in result.stderr


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"worker": {"replicas": 0, "template": make.template()}}, "spec.worker.replicas"),
        ({"worker": {"replicas": 1}}, "spec.worker.template"),
        ({"cleanPodPolicy": "OnComplete"}, "spec.cleanPodPolicy"),
        ({"intranet": "Bridge"}, "spec.intranet"),
        ({"withGloo": 3}, "spec.withGloo"),
    ],
)
async def test_bad_values_are_refused_by_the_server(world: World, spec: Manifest, field: str) -> None:
    manifest = make.manifest()
    manifest["spec"] |= spec
    with pytest.raises(Invalid, match=field):
        await world.submit(manifest)
