"""The operator's image on a real node, under the strictest of the Pod Security Standards."""

import json
import statistics
from pathlib import Path
from typing import Any

import pytest
import yaml
from real_cluster import TINY, Cluster, pod

from paddle_operator.api.meta import Manifest
from testbed import docker, images
from testbed.binaries import GO_OPERATOR, source_folder
from testbed.controlplane import ControlPlane

pytestmark = pytest.mark.node

ASK = ["/usr/bin/python3", "-IBS", "-c", Path(__file__).with_name("inside_image.py").read_text()]


def restricted(name: str, *, read_only: bool = True, **container: Any) -> Manifest:
    security = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": read_only,
        "runAsNonRoot": True,  # the user is that of the image
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    whole = {"name": "manager", "image": images.OPERATOR_NAME, "securityContext": security, **container}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"restartPolicy": "Never", "automountServiceAccountToken": False, "containers": [whole]},
    }


@pytest.fixture
def strict(apiserver: ControlPlane, cluster: Cluster) -> Cluster:
    """A namespace that takes no pod but a restricted one; the image is on the node."""
    apiserver.node.import_image(images.ensure(images.OPERATOR))
    level = "pod-security.kubernetes.io/enforce=restricted"
    cluster.kubectl("label", "namespace", cluster.world.namespace, level)
    return cluster


async def output(cluster: Cluster, manifest: Manifest) -> str:
    """All that it prints. A pod that fails ends the wait as well, and tells more than a timeout."""
    name = manifest["metadata"]["name"]
    cluster.apply(manifest)
    ended = await cluster.world.pod_until(name, lambda seen: seen.status.phase in {"Succeeded", "Failed"})
    printed = cluster.logs(name)
    assert ended.status.phase == "Succeeded", printed
    return printed


async def answer(cluster: Cluster, question: str, **pod: Any) -> Any:
    words = [*ASK, question]
    return json.loads(await output(cluster, restricted(question.replace("_", "-"), command=words, **pod)))


async def test_it_is_the_manager_of_this_version(strict: Cluster) -> None:
    assert await output(strict, restricted("version", args=["--version"])) == f"{images.VERSION}\n"
    assert "--leader-elect" in await output(strict, restricted("help", args=["--help"]))
    other = restricted("other", command=["paddle-operator", "--version"])
    assert await output(strict, other) == f"{images.VERSION}\n"


async def test_it_is_nobody_and_can_write_nowhere(strict: Cluster) -> None:
    rights = await answer(strict, "rights")
    assert rights == {"ids": [65532, 65532, [65532]], "writable": []}


async def test_what_is_the_operator_s_is_safe_even_if_the_image_can_be_written_to(strict: Cluster) -> None:
    rights = await answer(strict, "rights", read_only=False)
    assert set(rights["writable"]) <= {"/run/lock", "/tmp", "/var/tmp"}
    assert rights["writable"], "then the test before this one would not see it"


async def test_there_is_no_shell_and_no_installer(strict: Cluster) -> None:
    found = await answer(strict, "programs")
    assert {"paddle-operator", "python3"} <= set(found["programs"])
    unwanted = {"apt-get", "bash", "busybox", "dash", "dpkg", "perl", "pip", "pip3", "sh"}
    assert not unwanted.intersection(found["programs"])
    assert not found["installers"]


async def test_byte_code_is_there_and_current(strict: Cluster) -> None:
    found = await answer(strict, "byte_code")
    assert set(found) == {"unchecked"}, {state: names[:5] for state, names in found.items()}
    assert {"asyncio", "aiohttp", "paddle_operator"} <= {
        Path(name).parent.name for name in found["unchecked"]
    }


async def test_how_large_and_how_fast(strict: Cluster, outcomes: dict[str, str]) -> None:
    found = await answer(strict, "measures")
    medians = {title: statistics.median(times) for title, times in found["seconds"].items()}
    packed = images.OPERATOR.archive.stat().st_size
    outcomes["operator image"] = f"{packed / 1e6:.0f} MB packed, {found['bytes'] / 1e6:.0f} MB unpacked"
    outcomes["operator start"] = ", ".join(f"{title} {seconds:.2f} s" for title, seconds in medians.items())
    assert found["bytes"] < 150e6, "something is in it that the manager does not need"


async def test_the_go_operator_is_there_under_the_name_that_its_manifest_has(
    apiserver: ControlPlane, strict: Cluster
) -> None:
    documents = yaml.safe_load_all((source_folder(GO_OPERATOR) / "deploy/v1/operator.yaml").read_text())
    (deployment,) = (one for one in documents if one["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    apiserver.node.import_image(images.ensure(images.GO_OPERATOR))
    original = restricted("go", image=container["image"], command=[*container["command"], "--help"])
    assert "-leader-elect" in await output(strict, original)


async def test_what_documents_say_to_docker(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "greeting").write_text("hello")
    (tmp_path / "Dockerfile").write_text(f'FROM {TINY}\nCOPY greeting /\nCMD ["cat", "/greeting"]\n')
    assert docker.main(["build", "-t", "example/greeting:1", str(tmp_path)]) == 0
    assert docker.main(["push", "example/greeting:1"]) == 0
    greeting = pod("greeting", "", container={"image": "example/greeting:1", "command": None})
    assert await output(cluster, greeting) == "hello"
