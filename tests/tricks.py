"""What an author may try to get by way of a PaddleJob: each with its field and the right that it takes."""

from typing import Any, NamedTuple

import make

from paddle_operator.api.meta import Manifest

PAUSE: Manifest = {"name": "first", "image": "registry.example/pause:1"}
UNCONFINED = {"type": "Unconfined"}
ELSEWHERE = {"httpGet": {"host": "198.18.0.1", "port": 10250}}
APPARMOR = "container.apparmor.security.beta.kubernetes.io/paddle"

ACCOUNT = "use"
HOST_NETWORK = "use-host-network"
PRIVILEGED = "use-privileged"


class Trick(NamedTuple):
    job: Manifest
    field: str
    verb: str = PRIVILEGED


def job(
    name: str = "resnet", *, role: str = "worker", template: Manifest | None = None, **spec: Any
) -> Manifest:
    """A job with all roles, one of them with the template."""
    roles = {each: {"replicas": 1, "template": make.template()} for each in ("worker", "ps", "heter")}
    if template is not None:
        roles[role] = {"replicas": 1, "template": template}
    made = make.manifest(name)
    made["spec"] = {**roles, **spec}
    return made


def in_pod(role: str = "worker", **fields: Any) -> Manifest:
    return job(role=role, template=make.template(**fields))


def in_container(role: str = "worker", **fields: Any) -> Manifest:
    return job(role=role, template=make.template(make.container(**fields)))


def in_context(**fields: Any) -> Manifest:
    return in_container(securityContext=fields)


def in_first_container(role: str = "worker", **fields: Any) -> Manifest:
    return in_pod(role, initContainers=[{**PAUSE, **fields}])


def on_host(manifest: Manifest) -> Manifest:
    """Without this the kind itself refuses hostNetwork in a template, whoever asks."""
    return {**manifest, "spec": {**manifest["spec"], "intranet": "Host"}}


def with_volume(role: str = "worker", **source: Any) -> Manifest:
    return in_pod(role, volumes=[{"name": "data", **source}])


POD = "spec.worker.template.spec"
CONTAINER = f"{POD}.containers[paddle]"
CONTEXT = f"{CONTAINER}.securityContext"

TRICKS = {
    # The network of the node.
    "intranet-host": Trick(job(intranet="Host"), "spec.intranet", HOST_NETWORK),
    "intranet-host-network": Trick(job(intranet="HostNetwork"), "spec.intranet", HOST_NETWORK),
    "host-network": Trick(on_host(in_pod(hostNetwork=True)), f"{POD}.hostNetwork", HOST_NETWORK),
    "host-network-of-servers": Trick(
        on_host(in_pod("ps", hostNetwork=True)), "spec.ps.template.spec.hostNetwork", HOST_NETWORK
    ),
    "host-network-of-heter": Trick(
        on_host(in_pod("heter", hostNetwork=True)), "spec.heter.template.spec.hostNetwork", HOST_NETWORK
    ),
    "host-port": Trick(
        in_container(ports=[{"containerPort": 80}, {"containerPort": 22, "hostPort": 22}]),
        f"{CONTAINER}.ports.hostPort",
        HOST_NETWORK,
    ),
    "host-port-of-an-init-container": Trick(
        in_first_container(ports=[{"containerPort": 22, "hostPort": 22}]),
        f"{POD}.initContainers[first].ports.hostPort",
        HOST_NETWORK,
    ),
    # Somebody else's account.
    "service-account": Trick(in_pod(serviceAccountName="trainer"), f"{POD}.serviceAccountName", ACCOUNT),
    "service-account-by-its-older-name": Trick(
        in_pod(serviceAccount="trainer"), f"{POD}.serviceAccountName", ACCOUNT
    ),
    "service-account-behind-the-default-one": Trick(
        in_pod(serviceAccountName="default", serviceAccount="trainer"), f"{POD}.serviceAccountName", ACCOUNT
    ),
    "service-account-of-servers": Trick(
        in_pod("ps", serviceAccountName="trainer"), "spec.ps.template.spec.serviceAccountName", ACCOUNT
    ),
    "service-account-of-heter": Trick(
        in_pod("heter", serviceAccount="trainer"), "spec.heter.template.spec.serviceAccountName", ACCOUNT
    ),
    # The node itself.
    "host-pid": Trick(in_pod(hostPID=True), f"{POD}.hostPID"),
    "host-ipc": Trick(in_pod("ps", hostIPC=True), "spec.ps.template.spec.hostIPC"),
    "host-path": Trick(with_volume(hostPath={"path": "/"}), f"{POD}.volumes[data].hostPath"),
    "host-path-of-heter": Trick(
        with_volume("heter", hostPath={"path": "/etc"}), "spec.heter.template.spec.volumes[data].hostPath"
    ),
    "host-path-behind-good-volumes": Trick(
        in_pod(
            volumes=[
                {"name": "cache", "emptyDir": {}},
                {"name": "socket", "hostPath": {"path": "/run/containerd.sock"}},
            ]
        ),
        f"{POD}.volumes[socket].hostPath",
    ),
    "nfs": Trick(with_volume(nfs={"server": "nfs", "path": "/"}), f"{POD}.volumes[data].nfs"),
    "flex-volume": Trick(
        with_volume(flexVolume={"driver": "vendor/run-as-root"}), f"{POD}.volumes[data].flexVolume"
    ),
    "git-repo": Trick(with_volume(gitRepo={"repository": "git"}), f"{POD}.volumes[data].gitRepo"),
    # A container that is none.
    "privileged": Trick(in_context(privileged=True), f"{CONTEXT}.privileged"),
    "privileged-init-container": Trick(
        in_first_container(securityContext={"privileged": True}),
        f"{POD}.initContainers[first].securityContext.privileged",
    ),
    "privileged-init-container-of-servers": Trick(
        in_first_container("ps", securityContext={"privileged": True}),
        "spec.ps.template.spec.initContainers[first].securityContext.privileged",
    ),
    "privileged-side-car": Trick(
        job(
            template=make.template(
                make.container(), {**PAUSE, "name": "side", "securityContext": {"privileged": True}}
            )
        ),
        f"{POD}.containers[side].securityContext.privileged",
    ),
    "privileged-side-car-that-restarts": Trick(
        in_first_container(restartPolicy="Always", securityContext={"privileged": True}),
        f"{POD}.initContainers[first].securityContext.privileged",
    ),
    "capability": Trick(in_context(capabilities={"add": ["SYS_ADMIN"]}), f"{CONTEXT}.capabilities.add"),
    "capability-with-its-prefix": Trick(
        in_context(capabilities={"add": ["CAP_SYS_ADMIN"]}), f"{CONTEXT}.capabilities.add"
    ),
    "capability-among-good-ones": Trick(
        in_context(capabilities={"drop": ["ALL"], "add": ["CHOWN", "BPF"]}), f"{CONTEXT}.capabilities.add"
    ),
    "all-capabilities": Trick(in_context(capabilities={"add": ["ALL"]}), f"{CONTEXT}.capabilities.add"),
    "bare-proc": Trick(in_context(procMount="Unmasked"), f"{CONTEXT}.procMount"),
    "no-seccomp": Trick(in_context(seccompProfile=UNCONFINED), f"{CONTEXT}.seccompProfile"),
    "no-seccomp-for-the-pod": Trick(
        in_pod(securityContext={"seccompProfile": UNCONFINED}), f"{POD}.securityContext.seccompProfile"
    ),
    "no-apparmor": Trick(in_context(appArmorProfile=UNCONFINED), f"{CONTEXT}.appArmorProfile"),
    "no-apparmor-by-annotation": Trick(
        job(template=make.template(metadata={"annotations": {APPARMOR: "unconfined"}})),
        f"spec.worker.template.metadata.annotations[{APPARMOR}]",
    ),
    "selinux": Trick(in_context(seLinuxOptions={"type": "spc_t"}), f"{CONTEXT}.seLinuxOptions"),
    "selinux-of-the-pod": Trick(
        in_pod(securityContext={"seLinuxOptions": {"level": "s0:c1,c2"}}),
        f"{POD}.securityContext.seLinuxOptions",
    ),
    "sysctl": Trick(
        in_pod(securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}),
        f"{POD}.securityContext.sysctls",
    ),
    "host-process-of-windows": Trick(
        in_context(windowsOptions={"hostProcess": True}), f"{CONTEXT}.windowsOptions"
    ),
    # A better place than others have.
    "node-name": Trick(in_pod(nodeName="control-plane"), f"{POD}.nodeName"),
    "priority-class": Trick(in_pod(priorityClassName="system-node-critical"), f"{POD}.priorityClassName"),
    "priority": Trick(in_pod(priority=2_000_000_000), f"{POD}.priority"),
    "priority-of-the-group": Trick(
        job(schedulingPolicy={"priorityClass": "urgent"}), "spec.schedulingPolicy.priorityClass"
    ),
    "overhead": Trick(in_pod(overhead={"cpu": "1"}), f"{POD}.overhead"),
    # The kubelet as a messenger.
    "probe-of-another-host": Trick(in_container(livenessProbe=ELSEWHERE), f"{CONTAINER}.livenessProbe"),
    "socket-probe-of-another-host": Trick(
        in_container(startupProbe={"tcpSocket": {"host": "127.0.0.1", "port": 2379}}),
        f"{CONTAINER}.startupProbe",
    ),
    "hook-to-another-host": Trick(
        in_container(lifecycle={"preStop": ELSEWHERE}), f"{CONTAINER}.lifecycle.preStop"
    ),
}

RESTRICTED: Manifest = {
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}

ORDINARY = {
    "plain": job(),
    "restricted": in_pod(
        securityContext={"fsGroup": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
        containers=[make.container(securityContext=RESTRICTED)],
    ),
    "root": in_context(runAsUser=0),
    "service-network": job(intranet="Service"),
    "what-is-written-as-off": in_pod(
        hostNetwork=False, hostPID=False, hostIPC=False, nodeName="", priorityClassName=""
    ),
    "switches-off-in-a-container": in_context(privileged=False, procMount="", capabilities={"add": []}),
    "default-account": in_pod(serviceAccountName="default", serviceAccount="default"),
    "ports-and-own-probes": in_container(
        ports=[{"containerPort": 2379}], readinessProbe={"tcpSocket": {"port": 2379}}
    ),
    "gpus-and-places": in_pod(
        nodeSelector={"accelerator": "nvidia"},
        tolerations=[{"operator": "Exists"}],
        schedulerName="volcano",
        runtimeClassName="nvidia",
    ),
    "volumes": in_pod(
        volumes=[
            {"name": "shm", "emptyDir": {"medium": "Memory"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "keys", "secret": {"secretName": "keys"}},
            {"name": "settings", "configMap": {"name": "settings"}},
        ]
    ),
    "run-policy": job(
        runPolicy={
            "backoffLimit": 3,
            "maxDisruptions": 3,
            "activeDeadlineSeconds": 3600,
            "startDeadlineSeconds": 600,
            "ttlSecondsAfterFinished": 0,
            "forceDeleteAfterSeconds": 60,
        }
    ),
    "notes": job(
        template=make.template(metadata={"labels": {"team": "vision"}, "annotations": {"note": "1"}})
    ),
}
