"""Every generated file of an installation: its path, and its text."""

from dev.manifests import chart, v1beta1
from dev.manifests.objects import (
    NAMESPACE,
    account,
    deployment,
    image,
    lease_rights,
    manager_rights,
    namespace_object,
    pod,
)
from dev.manifests.text import write
from paddle_operator.api.crd import paddle_job_crd
from paddle_operator.api.documents import write_documents
from paddle_operator.api.meta import Manifest

POLICY = "deploy/v1/admission-policy.yaml"
CHART = "charts/paddle-operator"

WRITTEN_BY = "Written by `make generate` from dev/manifests."
FOLLOWS = (
    "# The jobs that it follows: of this namespace; of several: --namespace=a,b; of all: without this line. "
    "It needs the Role paddle-manager-role in each of them, or as a ClusterRole."
)
FOLLOWS_ONE = f"--namespace={NAMESPACE}"
OPTIONS = (
    "# Others, for those who want them (docs/en/configuration.md has all):",
    "# - --scheduling=volcano",
    "# - --etcd-server=paddle-elastic-etcd.paddle-system.svc.cluster.local:2379",
    "# - --log-format=json",
)
EDIT = f"{WRITTEN_BY} Edit the copy that you apply as you like."
HEADING = f"The operator. Apply crd.yaml of this folder, too.\n{EDIT}"
OLD_HEADING = (
    "The operator, for Kubernetes 1.11 to 1.15; newer ones: deploy/v1. Apply crd.yaml of this folder, too.\n"
    f"{EDIT}"
)
OLD_ELECTS = "# With Kubernetes 1.14 or 1.15, which have leases, also: --leader-elect"


def files(version: str, *, policy: str) -> dict[str, str]:
    """By path from the top of the repository."""
    return {
        "deploy/v1/operator.yaml": write(operator(version), heading=HEADING),
        "deploy/v1beta1/crd.yaml": write_documents([v1beta1.crd()]).decode(),
        "deploy/v1beta1/operator.yaml": write(old_operator(version), heading=OLD_HEADING),
        "config/crd/crd.yaml": write_documents([paddle_job_crd()]).decode(),
        "config/manager/manager.yaml": write(manager(version), heading=WRITTEN_BY),
        "config/rights/one-namespace/rights.yaml": write(manager_rights(), heading=WRITTEN_BY),
        "config/rights/all-namespaces/rights.yaml": write(manager_rights(""), heading=WRITTEN_BY),
        **{f"{CHART}/{name}": text for name, text in chart.files(version, policy=policy).items()},
    }


def operator(version: str) -> list[Manifest]:
    *others, runs = manager(version)
    return [*others, *manager_rights(), runs]


def manager(version: str) -> list[Manifest]:
    """All but what it may do in the namespaces that it follows."""
    args = ["--leader-elect", FOLLOWS, FOLLOWS_ONE, *OPTIONS]
    return [namespace_object(), account(), *lease_rights(), deployment(pod(image(version), args))]


def old_operator(version: str) -> list[Manifest]:
    args = [OLD_ELECTS, FOLLOWS, FOLLOWS_ONE, *OPTIONS]
    runs = v1beta1.old_deployment(image(version), args)
    return [namespace_object(), account(), *lease_rights(), *manager_rights(), runs]
