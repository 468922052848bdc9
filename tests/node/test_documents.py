"""The pages that tell users what to type: typed in a clone, on a real cluster, from first line to last.

How many blocks of each were run is printed at the end of the run, and why others were not.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from shell_blocks import BlockError, run_page

from testbed import binaries, images
from testbed.controlplane import ControlPlane

# The kind, which all tests share, comes and goes here.
pytestmark = [pytest.mark.node, pytest.mark.alone]

TOP = Path(__file__).parents[2]
PAGES = ("README.md", "docs/en/install.md", "docs/en/user-guide.md")
NOT_IN_A_CLONE = (".git", ".venv", ".hypothesis", ".*_cache", "__pycache__")
# There is no docker here: buildah builds, and a push puts the image onto the node.
DOCKER = """\
#!/bin/sh
PYTHONPATH={clone} exec {python} -m testbed.docker "$@"
"""
# What a page that failed half-way may have left for the tests after it.
LEFTOVERS = (
    ("crd/paddlejobs.batch.paddlepaddle.org",),
    ("namespace", "paddle-system", "vision", "speech"),
    ("persistentvolume", "checkpoints", "nfs-pv"),
    ("clusterrole/paddle-manager-role", "clusterrolebinding/paddle-manager-rolebinding"),
    ("-f", "deploy/v1/admission-policy.yaml"),
)

# Asked when a page has failed.
QUESTIONS = (
    ("get", "pods,pdj,leases", "--all-namespaces", "--output=wide"),
    ("describe", "pods", "--namespace=paddle-system"),
    ("logs", "--namespace=paddle-system", "--selector=control-plane=controller-manager", "--tail=50"),
)
VOLUMES = Path("/tmp/nas")
"""On this machine and on the node; the user guide makes it, and takes it away."""


@pytest.fixture(scope="module")
def _images(apiserver: ControlPlane) -> None:
    for image in (images.PADDLE, images.OPERATOR):
        apiserver.node.import_image(images.ensure(image))


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return shutil.copytree(TOP, tmp_path / "clone", ignore=shutil.ignore_patterns(*NOT_IN_A_CLONE))


@pytest.fixture
def environment(apiserver: ControlPlane, clone: Path, tmp_path: Path) -> Mapping[str, str]:
    """Of somebody whose kubectl, helm and docker are set up, and who has activated .venv."""
    docker = tmp_path / "bin" / "docker"
    docker.parent.mkdir()
    docker.write_text(DOCKER.format(clone=clone, python=sys.executable))
    docker.chmod(0o755)
    programs = [apiserver.kubectl, binaries.ensure(["helm"])["helm"], docker, Path(sys.executable)]
    return os.environ | {
        "KUBECONFIG": str(apiserver.kubeconfig),
        "PATH": ":".join([*(str(program.parent) for program in programs), os.environ["PATH"]]),
    }


@pytest.fixture(autouse=True)
def _clean(apiserver: ControlPlane) -> Iterator[None]:
    """The kind is installed by the pages, in their own way; tests after these make it again."""
    _delete_leftovers(apiserver)
    yield
    _delete_leftovers(apiserver)


def _delete_leftovers(apiserver: ControlPlane) -> None:
    for words in LEFTOVERS:
        deleted = _kubectl(apiserver, "delete", "--ignore-not-found", "--timeout=2m", *words)
        assert deleted.returncode == 0, deleted.stdout
    shutil.rmtree(VOLUMES, ignore_errors=True)


def _kubectl(apiserver: ControlPlane, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(apiserver.kubectl), f"--kubeconfig={apiserver.kubeconfig}", *words],
        cwd=TOP,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


@pytest.mark.usefixtures("_images")
@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_says_can_be_typed(
    page: str,
    apiserver: ControlPlane,
    clone: Path,
    environment: Mapping[str, str],
    tmp_path: Path,
    outcomes: dict[str, str],
) -> None:
    scratch = tmp_path / "blocks"
    scratch.mkdir()
    try:
        outcome = run_page(clone / page, clone, environment, scratch)
    except BlockError as error:
        seen = [_kubectl(apiserver, *words).stdout for words in QUESTIONS]
        pytest.fail("\n--- ".join([str(error), *seen]))
    outcomes[page] = str(outcome)
    assert outcome.run
