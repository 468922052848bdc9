"""The chart, rendered by the real Helm: by default what deploy/v1 is, and what its values say."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddle_operator.api.rights import FOLLOWED, rules
from testbed import binaries

pytestmark = pytest.mark.node

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "paddle-operator"
CRD = ("CustomResourceDefinition", "", "paddlejobs.batch.paddlepaddle.org")
DEPLOYMENT = ("Deployment", "paddle-system", "paddle-controller-manager")

Objects = dict[tuple[str, str, str], Any]
Helm = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    program = binaries.ensure(binaries.INSTALLERS)["helm"]
    home = tmp_path_factory.mktemp("helm")
    places = {f"HELM_{name}_HOME": str(home / name.lower()) for name in ("CACHE", "CONFIG", "DATA")}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(program), *arguments]
        environment = {**os.environ, **places}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    return run


def rendered(helm: Helm, *settings: str) -> Objects:
    options = [word for setting in settings for word in ("--set-json", setting)]
    done = helm("template", "paddle-operator", str(CHART), "--namespace", "paddle-system", *options)
    assert done.returncode == 0, done.stderr
    return objects(done.stdout)


def objects(text: str) -> Objects:
    """By kind, namespace and name."""
    documents = [one for one in yaml.safe_load_all(text) if one is not None]
    found = {
        (one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]): one for one in documents
    }
    assert len(found) == len(documents)
    return found


def refused(helm: Helm, *options: str) -> str:
    done = helm("template", "paddle-operator", str(CHART), *options)
    assert done.returncode != 0
    return done.stderr


def notes(helm: Helm, folder: Path, *settings: str) -> str:
    """`helm template` leaves them out: here they are the field of an object."""
    copy = shutil.copytree(CHART, folder / "chart")
    (copy / "templates" / "NOTES.txt").rename(copy / "NOTES.txt")
    (copy / "templates" / "notes.yaml").write_text('text: {{ tpl (.Files.Get "NOTES.txt") . | quote }}\n')
    options = [word for setting in settings for word in ("--set-json", setting)]
    done = helm("template", "paddle-operator", str(copy), "--show-only=templates/notes.yaml", *options)
    assert done.returncode == 0, done.stderr
    text: str = yaml.safe_load(done.stdout)["text"]
    return text


def manager(found: Objects) -> Any:
    (only,) = found[DEPLOYMENT]["spec"]["template"]["spec"]["containers"]
    return only


def test_helm_finds_nothing_to_complain_about(helm: Helm) -> None:
    done = helm("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout


def test_by_default_it_is_what_the_manifests_are(helm: Helm) -> None:
    """But for the namespace, which `helm install --create-namespace` makes."""
    files = [
        (ROOT / "deploy" / "v1" / name).read_text(encoding="utf-8") for name in ("crd.yaml", "operator.yaml")
    ]
    expected = objects("\n---\n".join(files))
    del expected["Namespace", "", "paddle-system"]
    found = rendered(helm)
    assert found[CRD]["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
    # Not compared by pytest: of the CRD, finding the difference takes minutes.
    assert [key for key in {*found, *expected} if found.get(key) != expected.get(key)] == []


@pytest.mark.parametrize(
    ("value", "namespaces", "option"),
    [
        ('"team-a"', {"team-a"}, ["--namespace=team-a"]),
        ('["team-a","team-b"]', {"team-a", "team-b"}, ["--namespace=team-a,team-b"]),
        ('["1234"]', {"1234"}, ["--namespace=1234"]),
        ("null", {"paddle-system"}, ["--namespace=paddle-system"]),
    ],
)
def test_a_role_for_each_namespace_that_is_followed(
    helm: Helm, value: str, namespaces: set[str], option: list[str]
) -> None:
    found = rendered(helm, f"watchNamespace={value}")
    roles = [key for key in found if key[0] == "Role" and key[2] == "paddle-manager-role"]
    assert {key[1] for key in roles} == namespaces
    assert [found[key]["rules"] for key in roles] == [rules(FOLLOWED)] * len(namespaces)
    for namespace in namespaces:
        binding = found["RoleBinding", namespace, "paddle-manager-rolebinding"]
        assert binding["subjects"] == [
            {"kind": "ServiceAccount", "name": "paddle-manager-sa", "namespace": "paddle-system"}
        ]
    assert not [key for key in found if key[0].startswith("ClusterRole")]
    assert manager(found)["args"] == ["--leader-elect", *option]


def test_a_cluster_role_for_all_namespaces_and_only_then(helm: Helm) -> None:
    found = rendered(helm, 'watchNamespace=""')
    assert found["ClusterRole", "", "paddle-manager-role"]["rules"] == rules(FOLLOWED)
    assert found["ClusterRoleBinding", "", "paddle-manager-rolebinding"]["roleRef"]["kind"] == "ClusterRole"
    assert [key[2] for key in found if key[0] == "Role"] == ["paddle-leader-election-role"]
    assert manager(found)["args"] == ["--leader-elect"]


def test_options_of_the_manager_are_passed_on(helm: Helm) -> None:
    settings = {
        "scheduling": '"volcano"',
        "etcdServer": '"etcd.paddle-system.svc:2379"',
        "initImage": '"alpine:3.10"',
        "logFormat": '"json"',
        "logLevel": '"debug"',
        "extraArgs": '["--workers=16"]',
    }
    found = rendered(helm, *(f"{name}={value}" for name, value in settings.items()))
    assert manager(found)["args"] == [
        "--leader-elect",
        "--namespace=paddle-system",
        "--scheduling=volcano",
        "--etcd-server=etcd.paddle-system.svc:2379",
        "--initImage=alpine:3.10",
        "--log-format=json",
        "--log-level=debug",
        "--workers=16",
    ]


def test_what_a_pod_may_have(helm: Helm) -> None:
    found = rendered(
        helm,
        "replicas=2",
        'image={"repository":"example.com/operator","tag":"v9","pullPolicy":"Always","pullSecrets":[{"name":"key"}]}',
        'resources={"limits":{"memory":"1Gi"}}',
        'nodeSelector={"zone":"a"}',
        'tolerations=[{"operator":"Exists"}]',
        'affinity={"podAntiAffinity":{}}',
        'priorityClassName="system-cluster-critical"',
        'podAnnotations={"a":"b"}',
    )
    spec = found[DEPLOYMENT]["spec"]
    pod = spec["template"]["spec"]
    assert spec["replicas"] == 2
    assert spec["template"]["metadata"]["annotations"] == {"a": "b"}
    assert manager(found)["image"] == "example.com/operator:v9"
    assert manager(found)["imagePullPolicy"] == "Always"
    assert manager(found)["resources"]["limits"] == {"memory": "1Gi"}
    assert pod["imagePullSecrets"] == [{"name": "key"}]
    assert pod["nodeSelector"] == {"zone": "a"}
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert pod["affinity"] == {"podAntiAffinity": {}}
    assert pod["priorityClassName"] == "system-cluster-critical"


def test_an_account_of_somebody_elses(helm: Helm) -> None:
    found = rendered(helm, 'serviceAccount={"create":false,"name":"mine"}')
    assert not [key for key in found if key[0] == "ServiceAccount"]
    subjects = [one["subjects"] for key, one in found.items() if key[0] == "RoleBinding"]
    assert [[subject["name"] for subject in some] for some in subjects] == [["mine"], ["mine"]]
    assert found[DEPLOYMENT]["spec"]["template"]["spec"]["serviceAccountName"] == "mine"


def test_parts_that_can_be_left_to_others(helm: Helm) -> None:
    found = rendered(helm, "rbac.create=false", "crd.create=false")
    assert {key[0] for key in found} == {"ServiceAccount", "Deployment"}


def test_the_admission_policy_on_request_is_that_of_the_file(helm: Helm) -> None:
    usual = rendered(helm)
    found = rendered(helm, "admissionPolicy=true")
    added = {key: one for key, one in found.items() if key not in usual}
    assert added == objects((ROOT / "deploy" / "v1" / "admission-policy.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("version", "is_refused"), [("1.29.9", True), ("1.30.0", False)])
def test_the_admission_policy_is_refused_where_the_server_does_not_know_it(
    helm: Helm, version: str, *, is_refused: bool
) -> None:
    done = helm("template", "x", str(CHART), "--set=admissionPolicy=true", f"--kube-version={version}")
    assert (f"admissionPolicy needs Kubernetes 1.30, and this is v{version}" in done.stderr) is is_refused
    assert (done.returncode != 0) is is_refused


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("--namespace=a", "set watchNamespace"),
        ("-namespace=a", "set watchNamespace"),
        ("--leader-elect=false", "it is always on"),
        ("--no-leader-elect", "it is always on"),
        ("--lease-name=mine", "the Role is for one Lease"),
        ("--lease-namespace=a", "the release's own namespace"),
        ("--metrics-bind-address=:9090", "the pod's port for metrics is 8080"),
        ("--health-probe-bind-address=0", "the pod's probes go to port 8081"),
    ],
)
def test_an_option_on_which_other_objects_depend_is_refused(helm: Helm, option: str, reason: str) -> None:
    complaint = refused(helm, "--set-json", f'extraArgs=["--workers=16","{option}"]')
    assert f"extraArgs: {option} cannot be set: " in complaint
    assert reason in complaint


def test_options_whose_names_only_begin_alike_are_not_refused(helm: Helm) -> None:
    found = rendered(helm, 'extraArgs=["--lease-duration=20s","--workers=16"]')
    assert manager(found)["args"][-2:] == ["--lease-duration=20s", "--workers=16"]


def test_notes_tell_of_the_kind_only_if_it_is_left_to_others(helm: Helm, tmp_path: Path) -> None:
    (tmp_path / "with").mkdir()
    (tmp_path / "without").mkdir()
    assert "not part of this release" not in notes(helm, tmp_path / "with")
    assert "If it is not there yet: kubectl apply" in notes(helm, tmp_path / "without", "crd.create=false")


@pytest.mark.parametrize(
    ("setting", "place", "complaint"),
    [
        ('watchNamespace="Team_A"', "/watchNamespace", "does not match pattern"),
        ("watchNamespace=[]", "/watchNamespace", "minItems"),
        ('watchNamespace="a,b"', "/watchNamespace", "does not match pattern"),
        ('replicas="two"', "/replicas", "got string, want integer"),
        ("image.tag=2", "/image/tag", "got number, want string"),
        ('image.pullPolicy="Sometimes"', "/image/pullPolicy", "must be one of"),
        ('scheduling="yarn"', "/scheduling", "must be one of '', 'volcano'"),
        ('logLevel="loud"', "/logLevel", "must be one of"),
        ('extraArgs=["workers"]', "/extraArgs/0", "does not match pattern"),
        ('watchNamespaces="a"', "", "additional properties 'watchNamespaces' not allowed"),
        ('serviceAccount.nmae="a"', "/serviceAccount", "additional properties 'nmae' not allowed"),
    ],
)  # fmt: skip
def test_a_bad_value_is_refused_with_its_place(helm: Helm, setting: str, place: str, complaint: str) -> None:
    told = refused(helm, "--set-json", setting)
    about = [line for line in told.splitlines() if f"at '{place}" in line]
    assert [line for line in about if complaint in line], told
