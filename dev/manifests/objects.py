"""The objects of an installation. Their names are those of the Go operator, so that ours takes its place."""

from collections.abc import Iterable, Sequence

from dev.manifests.text import COMMENT, Inline
from paddle_operator.api.meta import Manifest
from paddle_operator.api.rights import FOLLOWED, LEASE, Right

NAMESPACE = "paddle-system"
ACCOUNT = "paddle-manager-sa"
DEPLOYMENT = "paddle-controller-manager"
MANAGER_ROLE = "paddle-manager-role"
MANAGER_BINDING = "paddle-manager-rolebinding"
LEASE_ROLE = "paddle-leader-election-role"
LEASE_BINDING = "paddle-leader-election-rolebinding"
REPOSITORY = "registry.baidubce.com/paddle-operator/controller"

METRICS_PORT = 8080
HEALTH_PORT = 8081
USER = 65532
RESOURCES = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}}

# A Deployment's selector can never change, so it is that of the Go operator, which says little.
SELECTOR = {"control-plane": "controller-manager"}
LABELS = {"app.kubernetes.io/name": "paddle-operator"}
RBAC_GROUP = "rbac.authorization.k8s.io"


def image(version: str) -> str:
    return f"{REPOSITORY}:v{version}"


def namespace_object(name: str = NAMESPACE) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": SELECTOR | LABELS}}


def account(namespace: str = NAMESPACE, name: str = ACCOUNT) -> Manifest:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(name, namespace)}


def manager_rights(
    namespace: str = NAMESPACE, *, account_namespace: str = NAMESPACE, account_name: str = ACCOUNT
) -> list[Manifest]:
    """What it may do in a namespace that it follows; without a namespace: in all."""
    return [
        _role(MANAGER_ROLE, namespace, FOLLOWED),
        _binding(MANAGER_BINDING, namespace, MANAGER_ROLE, account_namespace, account_name),
    ]


def lease_rights(namespace: str = NAMESPACE, *, account_name: str = ACCOUNT) -> list[Manifest]:
    return [
        _role(LEASE_ROLE, namespace, LEASE),
        _binding(LEASE_BINDING, namespace, LEASE_ROLE, namespace, account_name),
    ]


def deployment(pod_spec: Manifest, *, namespace: str = NAMESPACE) -> Manifest:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": DEPLOYMENT, "namespace": namespace, "labels": SELECTOR | LABELS},
        "spec": {
            COMMENT: "Of several one leads. The others stand by, and one takes over when it is gone.",
            "replicas": 1,
            "selector": {"matchLabels": SELECTOR},
            "template": {"metadata": {"labels": SELECTOR | LABELS}, "spec": pod_spec},
        },
    }


def pod(image: str, args: Sequence[str], *, account_name: str = ACCOUNT) -> Manifest:
    return {
        "serviceAccountName": account_name,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "manager",
                "image": image,
                "imagePullPolicy": "IfNotPresent",
                "command": ["/manager"],
                "args": [*args],
                "ports": [
                    {"name": "metrics", "containerPort": METRICS_PORT},
                    {"name": "health", "containerPort": HEALTH_PORT},
                ],
                "livenessProbe": _probe("/healthz", initialDelaySeconds=15, periodSeconds=20),
                "readinessProbe": _probe("/readyz", periodSeconds=5),
                "resources": {
                    COMMENT: "No limit of CPU: it would slow down the start of large jobs, and nothing else.",
                    **RESOURCES,
                },
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
            }
        ],
        "terminationGracePeriodSeconds": 10,
        "topologySpreadConstraints": [
            {
                COMMENT: "Several operators on several nodes, where there are several.",
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": SELECTOR},
            }
        ],
    }


def _probe(path: str, **timing: int) -> Manifest:
    # The default, one second, is little on a busy node.
    return {"httpGet": {"path": path, "port": "health"}, **timing, "timeoutSeconds": 5}


def _metadata(name: str, namespace: str) -> Manifest:
    place = {"namespace": namespace} if namespace else {}
    return {"name": name, **place, "labels": LABELS}


def _role(name: str, namespace: str, rights: Iterable[Right]) -> Manifest:
    return {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": "Role" if namespace else "ClusterRole",
        "metadata": _metadata(name, namespace),
        "rules": [
            {COMMENT: right.why, **{field: Inline(words) for field, words in right.rule.items()}}
            for right in rights
        ],
    }


def _binding(name: str, namespace: str, role: str, account_namespace: str, account_name: str) -> Manifest:
    return {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": _metadata(name, namespace),
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": "Role" if namespace else "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account_name, "namespace": account_namespace}],
    }
