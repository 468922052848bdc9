"""The operator in a cluster, put there and removed as the documents say; and jobs for it."""

import asyncio
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import yaml
from operator_acts import Watchman
from real_cluster import kill, processes_of, tiny_job
from world import PATIENCE_SECONDS, World

from paddle_operator.api.core import Lease, Pod
from paddle_operator.api.meta import Manifest
from paddle_operator.api.resources import LEASES
from paddle_operator.api.rights import LEASE_NAME
from paddle_operator.kube.transport import Transport
from testbed import binaries
from testbed.controlplane import ControlPlane

TOP = Path(__file__).parents[1]
NAMESPACE = "paddle-system"
RBAC = "rbac.authorization.k8s.io/v1"
OWNERS = "holds-back-all-owners"
KIND = "paddlejobs.batch.paddlepaddle.org"
DEPLOYMENT = "deployment/paddle-controller-manager"
RELEASE = f"paddle-operator charts/paddle-operator --namespace {NAMESPACE}"
ROLLED_OUT = f"kubectl -n {NAMESPACE} rollout status {DEPLOYMENT} --timeout=90s"
STATE = "; ".join(
    f"kubectl -n {NAMESPACE} {words} -l control-plane=controller-manager 2>&1"
    for words in ("describe pods", "logs --prefix --tail=50")
)
FOLLOW_ALL = f"kubectl apply -k config/overlays/all-namespaces && {ROLLED_OUT}"
RESTART = f"kubectl -n {NAMESPACE} rollout restart {DEPLOYMENT}"
ADMISSION = "deploy/v1/admission-policy.yaml"
# Of a pod that is admitted to a namespace with Pod Security `restricted`.
RESTRICTED_POD = {
    "securityContext": {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
}
RESTRICTED_CONTAINER = {
    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
}
SLEEP = "sleep 600"
UNTIL_TOLD = f"echo begun; {SLEEP}; echo done"


# What is typed.


@dataclass(frozen=True)
class Shell:
    """At the top of the repository, of somebody whose kubectl and helm know the cluster."""

    plane: ControlPlane

    def __call__(self, line: str) -> str:
        done = self._run(line)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{self._run(STATE).stdout}"
        return done.stdout

    def _run(self, line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", line],
            cwd=TOP,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )

    @cached_property
    def _environment(self) -> dict[str, str]:
        programs = [self.plane.kubectl, binaries.ensure(["helm"])["helm"]]
        path = ":".join([*(str(program.parent) for program in programs), os.environ["PATH"]])
        return os.environ | {"KUBECONFIG": str(self.plane.kubeconfig), "PATH": path}


class Way(Protocol):
    """Of installing the operator. All but `uninstall` return when it is available."""

    @property
    def name(self) -> str: ...

    def install(self) -> None: ...

    def upgrade(self) -> None:
        """To something for which there has to be another pod."""

    def follow_all(self) -> None: ...

    def uninstall(self) -> None:
        """With all jobs."""


@dataclass(frozen=True)
class Files:
    shell: Shell
    folder: Path
    name: str = "kubectl"

    def install(self) -> None:
        self.shell(f"kubectl apply -f deploy/v1/crd.yaml -f deploy/v1/operator.yaml -f {ADMISSION}")
        self.shell(ROLLED_OUT)

    def upgrade(self) -> None:
        """With two lines of one's copy edited."""
        text = (TOP / "deploy/v1/operator.yaml").read_text()
        for line, edited in (("# - --log-format", "- --log-format"), ("replicas: 1", "replicas: 2")):
            assert text.count(line) == 1
            text = text.replace(line, edited)
        copy = self.folder / "operator.yaml"
        copy.write_text(text)
        self.shell(f"kubectl apply -f deploy/v1/crd.yaml -f {copy}")
        self.shell(ROLLED_OUT)

    def follow_all(self) -> None:
        self.shell(FOLLOW_ALL)

    def uninstall(self) -> None:
        self.shell(
            "kubectl delete -f deploy/v1/crd.yaml -f deploy/v1/operator.yaml && "
            f"kubectl delete --ignore-not-found -f {ADMISSION} && "
            "kubectl delete --ignore-not-found -k config/overlays/all-namespaces"
        )


@dataclass(frozen=True)
class Kustomize:
    shell: Shell
    folder: Path
    name: str = "kustomize"

    def install(self) -> None:
        self.shell("kubectl apply -k config/default")
        self.shell(ROLLED_OUT)

    def upgrade(self) -> None:
        """By an overlay of one's own, with one more argument."""
        more = {"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--workers=4"}
        overlay = {
            "resources": [os.path.relpath(TOP / "config/default", self.folder)],
            "patches": [{"target": {"kind": "Deployment"}, "patch": yaml.safe_dump([more])}],
        }
        (self.folder / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
        self.shell(f"kubectl apply -k {self.folder}")
        self.shell(ROLLED_OUT)

    def follow_all(self) -> None:
        self.shell(FOLLOW_ALL)

    def uninstall(self) -> None:
        self.shell("kubectl delete -k config/overlays/all-namespaces")


@dataclass(frozen=True)
class Helm:
    shell: Shell
    folder: Path
    name: str = "helm"

    def install(self) -> None:
        self.shell(f"helm install {RELEASE} --create-namespace --wait --timeout 90s")

    def upgrade(self) -> None:
        self._set("--set replicas=2 --set logLevel=debug --set admissionPolicy=true")

    def follow_all(self) -> None:
        self._set("--set watchNamespace=")

    def remove_release(self) -> str:
        """Without the kind, and so without any job. What Helm says of that."""
        return self.shell(f"helm uninstall paddle-operator --namespace {NAMESPACE} --wait --timeout 90s")

    def uninstall(self) -> None:
        self.remove_release()
        self.shell(f"kubectl delete crd/{KIND} namespace/{NAMESPACE}")

    def _set(self, values: str) -> None:
        self.shell(f"helm upgrade {RELEASE} --reset-then-reuse-values {values} --wait --timeout 90s")


def prepare(shell: Shell) -> None:
    """A cluster without an operator.

    This one checks whether whoever makes a pod may hold back the end of its owner, and it gets to know a new
    kind within 30 seconds only. Ours would wait until then, the Go operator would give up. So we spare both
    the check: it is not made of those who may hold back everything.
    """
    remove(shell)
    everything = {"apiGroups": ["*"], "resources": ["*/finalizers"], "verbs": ["update"]}
    role = {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": OWNERS}, "rules": [everything]}
    binding = {
        "apiVersion": RBAC,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": OWNERS},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": OWNERS},
        "subjects": [{"kind": "ServiceAccount", "namespace": NAMESPACE, "name": "paddle-manager-sa"}],
    }
    shell(f"kubectl apply -f - <<'END'\n{yaml.safe_dump_all([role, binding])}\nEND")


def remove(shell: Shell) -> None:
    """All that an installation may have left, in whatever state it is."""
    shell(f"kubectl -n {NAMESPACE} delete {DEPLOYMENT} --ignore-not-found --cascade=foreground")
    # A job that the Go operator began waits for it, or for ours.
    columns = "custom-columns=:.metadata.namespace,:.metadata.name"
    shell(
        f"kubectl get pdj --all-namespaces --no-headers -o {columns} | while read -r namespace name; do "
        'kubectl -n "$namespace" patch pdj "$name" --type merge -p \'{"metadata":{"finalizers":null}}\' '
        "|| exit; done"
    )
    shell(
        f"kubectl delete --ignore-not-found crd/{KIND} namespace/{NAMESPACE} "
        "clusterrole/paddle-manager-role clusterrolebinding/paddle-manager-rolebinding "
        f"clusterrole/{OWNERS} clusterrolebinding/{OWNERS}"
    )
    shell(f"kubectl delete --ignore-not-found -f {ADMISSION}")


@dataclass(frozen=True)
class Site:
    """Where a test looks: into the operator's own namespace, and into another."""

    system: World
    elsewhere: World
    shell: Shell
    watchman: Watchman

    @staticmethod
    def of(plane: ControlPlane, admin: Transport, namespace: str) -> "Site":
        system, elsewhere = (World(plane, name, admin) for name in (NAMESPACE, namespace))
        return Site(system, elsewhere, Shell(plane), Watchman(plane.audit_log))

    def make_room(self) -> None:
        """For pods that `NO_ROOM_YET` keeps waiting."""
        self.shell("kubectl label node --all --overwrite room=yes")

    def take_room(self) -> None:
        self.shell("kubectl label node --all room-")


# Jobs.

NO_ROOM_YET = {"nodeSelector": {"room": "yes"}}


def job(
    name: str, script: str, *, workers: int = 1, servers: int = 0, pod: Manifest | None = None, **spec: Any
) -> Manifest:
    """Small, admitted everywhere, and its pods stay."""
    made = tiny_job(
        name,
        script,
        workers=workers,
        container=RESTRICTED_CONTAINER,
        pod=RESTRICTED_POD | (pod or {}),
        cleanPodPolicy="Never",
        **spec,
    )
    if servers:
        made["spec"]["ps"] = made["spec"]["worker"] | {"replicas": servers}
    return made


async def finish(world: World, name: str) -> None:
    """The workers of a job that sleeps until told end well."""
    pods = await world.pods()
    for pod in (pod for pod in pods.values() if pod.metadata.name.startswith(f"{name}-worker-")):
        await _sleeps(pod)
        kill(pod, SLEEP)


async def _sleeps(pod: Pod) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            if SLEEP in processes_of(pod).values():
                return
            await asyncio.sleep(0.05)


async def pods_of_jobs(*worlds: World) -> dict[str, str]:
    """Their UIDs, by namespace and name. An operator has pods, too."""
    pods = [pod for world in worlds for pod in (await world.pods()).values()]
    return {
        f"{pod.metadata.namespace}/{pod.metadata.name}": pod.metadata.uid
        for pod in pods
        if "control-plane" not in pod.metadata.labels
    }


async def lease_until(system: World, holds: Callable[[str], bool], what: str) -> str:
    """Who holds the lease of the leader; once it is as wanted."""

    def holder(seen: Lease | None) -> str:
        return (seen.spec.holder_identity or "") if seen is not None else ""

    return holder(await system.until(LEASES, LEASE_NAME, lambda seen: holds(holder(seen)), what))
