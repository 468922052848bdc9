"""deploy/v1/operator.yaml as users, the Go operator's users and Pod Security want it."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from dev.manifests.__main__ import current_files
from paddle_operator.api.meta import Manifest
from paddle_operator.api.rights import FOLLOWED, LEASE, rules
from paddle_operator.cli import app

ROOT = Path(__file__).resolve().parents[2]
OLD, NEW = "deploy/v1beta1/operator.yaml", "deploy/v1/operator.yaml"
TEXTS = current_files()
EVERYWHERE = pytest.mark.parametrize("name", [NEW, OLD])


def objects(name: str) -> dict[tuple[str, str], Manifest]:
    """By kind and name."""
    documents = yaml.safe_load_all(TEXTS[name])
    return {(one["kind"], one["metadata"]["name"]): one for one in documents}


def deployment(name: str) -> Any:
    return objects(name)["Deployment", "paddle-controller-manager"]


def pod_spec(name: str) -> Any:
    return deployment(name)["spec"]["template"]["spec"]


def manager(name: str) -> Any:
    (only,) = pod_spec(name)["containers"]
    return only


@EVERYWHERE
def test_the_names_are_those_of_the_go_operator_so_that_ours_takes_its_place(name: str) -> None:
    assert set(objects(name)) == {
        ("Namespace", "paddle-system"),
        ("ServiceAccount", "paddle-manager-sa"),
        ("Role", "paddle-leader-election-role"),
        ("RoleBinding", "paddle-leader-election-rolebinding"),
        ("Role", "paddle-manager-role"),
        ("RoleBinding", "paddle-manager-rolebinding"),
        ("Deployment", "paddle-controller-manager"),
    }
    assert manager(name)["name"] == "manager"
    assert manager(name)["command"] == ["/manager"]


@EVERYWHERE
def test_the_selector_is_that_of_the_go_operator_because_it_can_never_change(name: str) -> None:
    spec = deployment(name)["spec"]
    assert spec["selector"] == {"matchLabels": {"control-plane": "controller-manager"}}
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()


@EVERYWHERE
def test_all_but_the_namespace_is_in_paddle_system(name: str) -> None:
    places = {one["metadata"].get("namespace") for key, one in objects(name).items() if key[0] != "Namespace"}
    assert places == {"paddle-system"}


@EVERYWHERE
def test_the_roles_grant_the_rights_of_the_operator_and_no_others(name: str) -> None:
    found = objects(name)
    assert found["Role", "paddle-manager-role"]["rules"] == rules(FOLLOWED)
    assert found["Role", "paddle-leader-election-role"]["rules"] == rules(LEASE)


@EVERYWHERE
def test_every_role_is_bound_to_the_account_of_the_pod(name: str) -> None:
    found = objects(name)
    account = {"kind": "ServiceAccount", "name": "paddle-manager-sa", "namespace": "paddle-system"}
    bound = {
        one["roleRef"]["name"]: one["subjects"] for (kind, _), one in found.items() if kind == "RoleBinding"
    }
    roles = [role for kind, role in found if kind == "Role"]
    assert bound == {role: [account] for role in roles}
    assert pod_spec(name)["serviceAccountName"] == account["name"]


def test_it_leads_only_with_the_lease_and_follows_its_own_namespace() -> None:
    assert manager(NEW)["args"] == ["--leader-elect", "--namespace=paddle-system"]


def test_an_old_cluster_has_no_lease_so_two_never_run_at_once() -> None:
    assert manager(OLD)["args"] == ["--namespace=paddle-system"]
    assert deployment(OLD)["spec"]["strategy"] == {"type": "Recreate"}
    assert deployment(OLD)["spec"]["replicas"] == 1


@EVERYWHERE
def test_every_option_that_the_file_names_is_one_of_the_manager(name: str) -> None:
    """Also those in comments, which are there to be used."""
    command = get_command(app).commands["manager"]  # type: ignore[attr-defined]
    known = {word for option in command.params for word in option.opts}
    named = set(re.findall(r"--[a-zA-Z][a-zA-Z-]*", TEXTS[name]))
    assert {"--leader-elect", "--scheduling", "--etcd-server", "--namespace"} <= named
    assert named <= known


@EVERYWHERE
def test_the_container_is_restricted(name: str) -> None:
    assert manager(name)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    context = pod_spec(name)["securityContext"]
    assert (context["runAsNonRoot"], context["runAsUser"], context["runAsGroup"]) == (True, 65532, 65532)


def test_the_seccomp_profile_is_said_in_the_words_of_the_time() -> None:
    assert pod_spec(NEW)["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    annotations = deployment(OLD)["spec"]["template"]["metadata"]["annotations"]
    assert annotations == {"seccomp.security.alpha.kubernetes.io/pod": "runtime/default"}


@EVERYWHERE
def test_probes_and_metrics_are_where_the_manager_serves_them(name: str) -> None:
    ports = {port["name"]: port["containerPort"] for port in manager(name)["ports"]}
    assert ports == {"metrics": 8080, "health": 8081}
    probes = {manager(name)[probe]["httpGet"]["path"]: probe for probe in ("livenessProbe", "readinessProbe")}
    assert probes == {"/healthz": "livenessProbe", "/readyz": "readinessProbe"}
    assert {manager(name)[probe]["httpGet"]["port"] for probe in probes.values()} == {"health"}


@EVERYWHERE
def test_it_asks_for_little_and_is_stopped_in_ten_seconds(name: str) -> None:
    assert manager(name)["resources"] == {
        "requests": {"cpu": "100m", "memory": "64Mi"},
        "limits": {"memory": "256Mi"},
    }
    assert pod_spec(name)["terminationGracePeriodSeconds"] == 10


@EVERYWHERE
def test_the_image_is_that_of_this_version(name: str) -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    version = re.search(r'^version = "(.+)"$', project, re.MULTILINE)
    assert version is not None
    assert manager(name)["image"] == f"registry.baidubce.com/paddle-operator/controller:v{version[1]}"
    assert manager(name)["imagePullPolicy"] == "IfNotPresent"


@EVERYWHERE
def test_no_comment_became_a_part_of_an_object(name: str) -> None:
    def words(value: Any) -> list[str]:
        match value:
            case dict():
                return [*value, *(word for inner in value.values() for word in words(inner))]
            case list():
                return [word for inner in value for word in words(inner)]
        return [str(value)]

    assert [word for one in objects(name).values() for word in words(one) if word.startswith("#")] == []
    assert "# - --scheduling=volcano\n" in TEXTS[name]
