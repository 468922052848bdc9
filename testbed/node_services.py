"""What runs in the box of a real node: command lines and configurations, pure functions of the layout."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from testbed.box import BRIDGE, NODE_ADDRESS, NODE_RANGE, POD_RANGE, cgroup_of
from testbed.components import SERVICE_RANGE, Layout

CONTAINERD = "containerd"
KUBELET = "kubelet"
KUBE_PROXY = "kube-proxy"
COREDNS = "coredns"
SERVICES = (CONTAINERD, KUBELET, KUBE_PROXY, COREDNS)

NODE_NAME = "node-1"
NODE_USER = f"system:node:{NODE_NAME}"
BRIDGE_ADDRESS = "198.18.1.1"
CLUSTER_DOMAIN = "cluster.local"
# In the box, where /run is its own.
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
PAUSE_IMAGE = "docker.io/paddle-operator/tiny:1"

HEALTH_PORTS = {KUBELET: 10248, KUBE_PROXY: 10256, COREDNS: 8181}
HEALTH_PATHS = {KUBELET: "/healthz", KUBE_PROXY: "/healthz", COREDNS: "/ready"}
# Where each is asked how it is.
HEALTH_ADDRESSES = {
    CONTAINERD: f"unix://{CONTAINERD_SOCKET}",
    **{service: f"http://{NODE_ADDRESS}:{port}" for service, port in HEALTH_PORTS.items()},
}


@dataclass(frozen=True)
class Hardware:
    """What the node pretends to have: GPUs that nobody has to have, and labels."""

    gpus: int = 0
    labels: tuple[str, ...] = ()
    """As `name=value`."""


@dataclass(frozen=True)
class NodeLayout:
    """Where the files of the node are: in a folder of the instance."""

    layout: Layout

    @property
    def folder(self) -> Path:
        return self.layout.folder / "node"

    @property
    def ready(self) -> Path:
        """There when everything was up and ready once."""
        return self.path("ready")

    @property
    def hardware(self) -> Path:
        return self.path("hardware.json")

    def path(self, name: str) -> Path:
        return self.folder / name


def write_configurations(node: NodeLayout, hardware: Hardware) -> None:
    node.hardware.write_text(json.dumps(asdict(hardware)))
    for folder in ("cni", "kubelet", "pod-logs", "containerd"):
        node.path(folder).mkdir(parents=True)
    node.path("resolv.conf").touch()
    node.path("containerd.toml").write_text(_containerd(node))
    node.path("cni/10-testbed.conflist").write_text(json.dumps(_network(node), indent=2))
    node.path("kubelet.yaml").write_text(yaml.safe_dump(_kubelet(node)))
    node.path("kube-proxy.yaml").write_text(yaml.safe_dump(_kube_proxy(node)))
    node.path("Corefile").write_text(_coredns(node))


def load_hardware(node: NodeLayout) -> Hardware:
    content = json.loads(node.hardware.read_text())
    return Hardware(content["gpus"], tuple(content["labels"]))


def command_of(service: str, program: Path, node: NodeLayout) -> list[str | Path]:
    flags: dict[str, list[str]] = {
        CONTAINERD: [f"--config={node.path('containerd.toml')}"],
        KUBELET: [
            f"--config={node.path('kubelet.yaml')}",
            f"--kubeconfig={node.layout.kubeconfig(NODE_USER)}",
            f"--root-dir={node.path('kubelet')}",
            f"--cert-dir={node.path('kubelet/pki')}",
            f"--node-ip={NODE_ADDRESS}",
            f"--hostname-override={NODE_NAME}",
            f"--node-labels={','.join(load_hardware(node).labels)}",
        ],
        KUBE_PROXY: [f"--config={node.path('kube-proxy.yaml')}"],
        COREDNS: [f"-conf={node.path('Corefile')}"],
    }
    return [program, *flags[service]]


def _containerd(node: NodeLayout) -> str:
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    return f"""\
version = 2
root = "{node.path("containerd")}"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
]
[plugins."io.containerd.internal.v1.opt"]
path = "{node.path("opt")}"
[grpc]
address = "{CONTAINERD_SOCKET}"
[{cri}]
sandbox_image = "{PAUSE_IMAGE}"
# Without the capability SYS_RESOURCE no process may become less likely to be killed than its parent.
restrict_oom_score_adj = true
[{cri}.cni]
bin_dir = "/usr/lib/cni"
conf_dir = "{node.path("cni")}"
"""


def _network(node: NodeLayout) -> dict[str, Any]:
    bridge = {
        "type": "bridge",
        "bridge": BRIDGE,
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": POD_RANGE, "gateway": BRIDGE_ADDRESS}]],
            "dataDir": str(node.path("addresses")),
            # The node and the services, and nothing else: no default route.
            "routes": [{"dst": NODE_RANGE}, {"dst": SERVICE_RANGE}],
        },
    }
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "0.4.0", "name": "testbed", "plugins": [bridge, portmap]}


def _kubelet(node: NodeLayout) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": NODE_ADDRESS,
        "healthzBindAddress": NODE_ADDRESS,
        "healthzPort": HEALTH_PORTS[KUBELET],
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": False},
            "x509": {"clientCAFile": str(node.layout.ca)},
        },
        "authorization": {"mode": "AlwaysAllow"},
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cgroup_of(node.layout.folder)}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "makeIPTablesUtilChains": False,
        "clusterDNS": [NODE_ADDRESS],
        "clusterDomain": CLUSTER_DOMAIN,
        "resolvConf": str(node.path("resolv.conf")),
        "volumePluginDir": str(node.path("volume-plugins")),
        "podLogsDir": str(node.path("pod-logs")),
        "enforceNodeAllocatable": [],
        # A full disk of this machine is no reason to evict the pods of a test.
        "evictionHard": {"memory.available": "1Mi", "nodefs.available": "0%", "imagefs.available": "0%"},
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "kubeAPIQPS": 500,
        "kubeAPIBurst": 1000,
        "registerNode": True,
        "oomScoreAdj": 0,
    }


def _kube_proxy(node: NodeLayout) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(node.layout.kubeconfig("system:kube-proxy"))},
        "hostnameOverride": NODE_NAME,
        "mode": "nftables",
        "clusterCIDR": POD_RANGE,
        "conntrack": {"maxPerCore": 0},
        "oomScoreAdj": 0,
        "healthzBindAddress": f"{NODE_ADDRESS}:{HEALTH_PORTS[KUBE_PROXY]}",
        "metricsBindAddress": "",
    }


def _coredns(node: NodeLayout) -> str:
    return f"""\
.:53 {{
    bind {NODE_ADDRESS}
    errors
    ready {NODE_ADDRESS}:{HEALTH_PORTS[COREDNS]}
    kubernetes {CLUSTER_DOMAIN} in-addr.arpa {{
        kubeconfig {node.layout.kubeconfig("coredns")}
    }}
    cache 30
}}
"""
