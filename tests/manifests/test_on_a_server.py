"""A real server takes every manifest: first those of the Go operator, then ours over them.

This has a control plane of its own: names and namespace of an installation are fixed.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from world import unique_name

from paddle_operator.api.rights import FOLLOWED, LEASE_NAME
from testbed import binaries
from testbed.controlplane import ControlPlane

pytestmark = pytest.mark.apiserver

ROOT = Path(__file__).resolve().parents[2]
CRD, OPERATOR = "deploy/v1/crd.yaml", "deploy/v1/operator.yaml"
ACCOUNT = "system:serviceaccount:paddle-system:paddle-manager-sa"


@pytest.fixture(scope="module")
def apiserver() -> Iterator[ControlPlane]:
    with ControlPlane(unique_name("manifests")) as plane:
        yield plane


class Kubectl:
    def __init__(self, plane: ControlPlane) -> None:
        self._command = [str(plane.kubectl), "--kubeconfig", str(plane.kubeconfig)]

    def run(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = [*self._command, *arguments]
        return subprocess.run(command, cwd=ROOT, input=stdin, capture_output=True, text=True, check=False)

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def can(self, verb: str, what: str, *, subresource: str = "", namespace: str) -> bool:
        """Whether the operator's account may do that."""
        options = ["--subresource", subresource, "-n", namespace, "--as", ACCOUNT]
        answer = self.run("auth", "can-i", verb, what, *options).stdout.strip()
        assert answer in {"yes", "no"}
        return answer == "yes"


@pytest.fixture(scope="module")
def kubectl(apiserver: ControlPlane) -> Kubectl:
    """With the Go operator's manifests applied, then ours, and the rights that were left deleted."""
    kubectl = Kubectl(apiserver)
    of_go = binaries.source_folder(binaries.GO_OPERATOR) / "deploy" / "v1"
    # Too large for `kubectl apply`, so its users create it.
    kubectl("create", "-f", str(of_go / "crd.yaml"))
    kubectl("apply", "-f", str(of_go / "operator.yaml"))
    kubectl("apply", "-f", CRD, "-f", OPERATOR)
    kubectl("delete", "clusterrolebinding", "paddle-manager-rolebinding")
    asked = iter(range(100))
    while kubectl.can("create", "pods", namespace="default"):
        # The server sees it at once, or a little later.
        assert next(asked, None) is not None, "the rights of the Go operator do not end"
    return kubectl


def outcomes(printed: str) -> dict[str, str]:
    """What `kubectl apply` says of each object."""
    lines = [line.split(maxsplit=1) for line in printed.splitlines()]
    return {line[0]: line[1].removesuffix(" (server dry run)") for line in lines}


def documents(text: str) -> dict[tuple[str, str], Any]:
    return {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(text)}


def test_ours_takes_the_place_of_the_go_operator(kubectl: Kubectl) -> None:
    found = json.loads(
        kubectl("-n", "paddle-system", "get", "deployment", "paddle-controller-manager", "-o", "json")
    )
    (manager,) = found["spec"]["template"]["spec"]["containers"]
    wanted = documents((ROOT / OPERATOR).read_text(encoding="utf-8"))
    spec = wanted["Deployment", "paddle-controller-manager"]["spec"]["template"]["spec"]
    for field in ("image", "args", "command", "resources", "securityContext"):
        assert manager[field] == spec["containers"][0][field]
    kind = json.loads(kubectl("get", "crd", "paddlejobs.batch.paddlepaddle.org", "-o", "json"))
    assert "x-kubernetes-validations" in kind["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def test_what_is_left_of_the_go_operator_is_what_the_guide_deletes(kubectl: Kubectl) -> None:
    of_go = binaries.source_folder(binaries.GO_OPERATOR) / "deploy" / "v1" / "operator.yaml"
    theirs = documents(of_go.read_text(encoding="utf-8"))
    left = theirs.keys() - documents((ROOT / OPERATOR).read_text(encoding="utf-8")).keys()
    assert left == {
        ("ClusterRole", "paddle-manager-role"),
        ("ClusterRoleBinding", "paddle-manager-rolebinding"),
        ("ConfigMap", "paddle-manager-config"),
    }
    guide = (ROOT / "docs" / "en" / "upgrade.md").read_text(encoding="utf-8")
    assert [f"{kind} {name}".lower() for kind, name in left if f"{kind} {name}".lower() not in guide] == []


def test_a_second_apply_changes_nothing(kubectl: Kubectl) -> None:
    said = outcomes(kubectl("apply", "-f", CRD, "-f", OPERATOR))
    assert len(said) == 8
    assert set(said.values()) == {"unchanged"}


def test_kustomize_makes_the_same_objects_as_the_files(kubectl: Kubectl) -> None:
    made = documents(kubectl("kustomize", "config/default"))
    files = [(ROOT / name).read_text(encoding="utf-8") for name in (CRD, OPERATOR)]
    assert made == documents("\n---\n".join(files))
    assert set(outcomes(kubectl("apply", "-k", "config/default")).values()) == {"unchanged"}


def test_the_overlay_for_all_namespaces_is_the_same_but_for_its_rights_and_scope(kubectl: Kubectl) -> None:
    usual = documents(kubectl("kustomize", "config/default"))
    made = documents(kubectl("kustomize", "config/overlays/all-namespaces"))
    role = made.pop(("ClusterRole", "paddle-manager-role"))
    binding = made.pop(("ClusterRoleBinding", "paddle-manager-rolebinding"))
    assert role["rules"] == usual.pop(("Role", "paddle-manager-role"))["rules"]
    assert binding["subjects"] == usual.pop(("RoleBinding", "paddle-manager-rolebinding"))["subjects"]
    assert binding["roleRef"]["kind"] == "ClusterRole"
    containers = [
        one["Deployment", "paddle-controller-manager"]["spec"]["template"]["spec"]["containers"][0]
        for one in (made, usual)
    ]
    assert containers[0].pop("args") == ["--leader-elect"]
    assert containers[1].pop("args") == ["--leader-elect", "--namespace=paddle-system"]
    assert made == usual
    kubectl("apply", "--dry-run=server", "-k", "config/overlays/all-namespaces")


def test_the_deployment_for_old_clusters_also_takes_the_place_of_one_that_rolls(kubectl: Kubectl) -> None:
    """The server fills in how to roll; kubectl must take that away where the new file says Recreate."""
    said = outcomes(kubectl("apply", "--dry-run=server", "-f", "deploy/v1beta1/operator.yaml"))
    assert said["deployment.apps/paddle-controller-manager"] == "configured"


def test_the_admission_policy_is_taken(kubectl: Kubectl) -> None:
    said = outcomes(kubectl("apply", "--dry-run=server", "-f", "deploy/v1/admission-policy.yaml"))
    assert set(said.values()) == {"created"}


def test_the_account_may_do_what_the_operator_needs_in_its_namespace_only(kubectl: Kubectl) -> None:
    for right in FOLLOWED:
        resource, _, subresource = right.resource.partition("/")
        what = f"{resource}.{right.group}".rstrip(".")
        allowed = {
            place: {
                verb
                for verb in right.verbs
                if kubectl.can(verb, what, subresource=subresource, namespace=place)
            }
            for place in ("paddle-system", "default")
        }
        assert allowed == {"paddle-system": {*right.verbs}, "default": set()}, right.resource


def test_of_leases_the_account_may_hold_one(kubectl: Kubectl) -> None:
    leases = "leases.coordination.k8s.io"
    assert kubectl.can("create", leases, namespace="paddle-system")
    for verb in ("get", "patch"):
        assert kubectl.can(verb, f"{leases}/{LEASE_NAME}", namespace="paddle-system")
        assert not kubectl.can(verb, f"{leases}/another", namespace="paddle-system")
        assert not kubectl.can(verb, f"{leases}/{LEASE_NAME}", namespace="default")


def test_the_account_reads_no_secret_and_makes_no_job(kubectl: Kubectl) -> None:
    assert not kubectl.can("get", "secrets", namespace="paddle-system")
    assert not kubectl.can("create", "paddlejobs.batch.paddlepaddle.org", namespace="paddle-system")
    assert not kubectl.can("create", "pods", subresource="exec", namespace="paddle-system")


def restricted_pod(kubectl: Kubectl, namespace: str) -> dict[str, Any]:
    kubectl("create", "namespace", namespace)
    kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    kubectl("-n", namespace, "create", "serviceaccount", "paddle-manager-sa")
    template = documents((ROOT / OPERATOR).read_text(encoding="utf-8"))[
        "Deployment", "paddle-controller-manager"
    ]["spec"]["template"]
    metadata = {**template["metadata"], "name": "manager", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def test_a_namespace_that_enforces_restricted_takes_the_pod(kubectl: Kubectl) -> None:
    pod = restricted_pod(kubectl, "restricted")
    kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(pod))
    del pod["spec"]["securityContext"]["seccompProfile"]
    refused = kubectl.run("create", "--dry-run=server", "-f", "-", stdin=json.dumps(pod))
    assert 'violates PodSecurity "restricted' in refused.stderr
