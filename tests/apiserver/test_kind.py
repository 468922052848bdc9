"""The PaddleJob kind on a real API server, as kubectl users meet it."""

import json
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


def apply(world: World, manifest: Manifest) -> subprocess.CompletedProcess[str]:
    return world.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(manifest))


def test_the_crd_fits_kubectl_apply(world: World) -> None:
    for _ in range(2):
        result = world.kubectl("apply", "-f", str(TOP / "deploy/v1/crd.yaml"))
        assert result.returncode == 0, result.stderr
    assert "unchanged" in result.stdout


@pytest.mark.parametrize(
    "file", [*sorted(TOP.glob("examples/*/job.yaml")), TOP / "deploy/examples/resnet.yaml"]
)
def test_every_example_is_accepted_without_a_warning(world: World, file: Path) -> None:
    result = world.kubectl("apply", "-f", str(file))
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
    stored = yaml.safe_load(world.kubectl("get", "pdj", "resnet", "-o", "yaml").stdout)
    assert stored["spec"]["worker"]["template"]["metadata"] == metadata


def test_kubectl_get_shows_status_mode_and_age(world: World) -> None:
    assert apply(world, make.manifest()).returncode == 0
    assert world.kubectl("get", "pdj").stdout.split("\n")[0].split() == ["NAME", "STATUS", "MODE", "AGE"]


def test_kubectl_get_shows_restarts_and_failure_too_when_asked_for_more(world: World) -> None:
    assert apply(world, make.manifest()).returncode == 0
    failure = {"class": "OOM", "reason": "OOMKilled"}
    status = json.dumps({"status": {"phase": "Restarting", "restarts": 2, "failure": failure}})
    written = world.kubectl("patch", "pdj", "resnet", "--subresource=status", "--type=merge", "-p", status)
    assert written.returncode == 0, written.stderr
    head, row = world.kubectl("get", "pdj", "-o", "wide").stdout.splitlines()
    assert head.split() == ["NAME", "STATUS", "MODE", "AGE", "RESTARTS", "FAILURE"]
    assert row.split()[:2] == ["resnet", "Restarting"]
    assert row.split()[-2:] == ["2", "OOM"]


def test_every_word_of_a_run_policy_is_explained(world: World) -> None:
    shown = world.kubectl("explain", "pdj.spec.runPolicy").stdout
    for name in ("backoffLimit", "maxDisruptions", "ttlSecondsAfterFinished", "suspend"):
        assert name in shown
    assert "How often the job is restarted after failures of its own" in " ".join(shown.split())


SERVERS: Manifest = {"ps": {"replicas": 1, "template": make.template()}}
HETER: Manifest = {"heter": {"replicas": 1, "template": make.template()}}
SUSPENDED: Manifest = {"runPolicy": {"suspend": True}}
# How many pods there are, before and after, and what is named if that is refused.
RESIZED = {
    "more workers": (make.manifest(workers=2), make.manifest(workers=3), "spec.worker.replicas: "),
    "fewer workers": (make.manifest(workers=3), make.manifest(workers=2), "spec.worker.replicas: "),
    "servers": (make.manifest(), make.manifest(**SERVERS), "ps cannot change"),
    "no servers": (make.manifest(**SERVERS), make.manifest(), "ps cannot change"),
    "heter": (make.manifest(), make.manifest(**HETER), "heter cannot change"),
}


def with_policy(manifest: Manifest, policy: Manifest) -> Manifest:
    return {**manifest, "spec": {**manifest["spec"], **policy}}


@pytest.mark.parametrize(("before", "after", "named"), RESIZED.values(), ids=RESIZED.keys())
def test_the_number_of_pods_is_fixed_while_a_job_runs(
    world: World, before: Manifest, after: Manifest, named: str
) -> None:
    assert apply(world, before).returncode == 0
    result = apply(world, after)
    assert result.returncode != 0
    assert named in result.stderr
    assert "set runPolicy.suspend first" in result.stderr


@pytest.mark.parametrize(("before", "after", "named"), RESIZED.values(), ids=RESIZED.keys())
def test_the_number_of_pods_may_change_while_a_job_is_suspended_and_with_its_end(
    world: World, before: Manifest, after: Manifest, named: str
) -> None:
    assert apply(world, with_policy(before, SUSPENDED)).returncode == 0
    result = apply(world, with_policy(after, SUSPENDED))
    assert (result.returncode, result.stderr) == (0, ""), named
    assert apply(world, before).returncode == 0
    assert apply(world, after).returncode != 0


def test_how_peers_find_each_other_is_fixed_even_then(world: World) -> None:
    assert apply(world, make.manifest(**SUSPENDED)).returncode == 0
    result = apply(world, make.manifest(intranet="Service", **SUSPENDED))
    assert result.returncode != 0
    assert "spec.intranet: " in result.stderr


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
