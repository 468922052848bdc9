"""The command lines of the control plane. Everything here is a pure function of an instance's layout."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"
# 198.18.0.0/15 is reserved for benchmarks and never routed. The API server refuses to advertise a loopback
# address; without a node nobody connects to this one, so it need not exist.
ADVERTISE_ADDRESS = "198.18.0.1"
SERVICE_RANGE = "198.19.0.0/16"
FIRST_SERVICE_ADDRESS = "198.19.0.1"
SERVER_NAMES = (
    HOST,
    "localhost",
    ADVERTISE_ADDRESS,
    FIRST_SERVICE_ADDRESS,
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
ISSUER = "https://kubernetes.default.svc.cluster.local"

# They would evict or delete the pods of a fake node, which sends no heartbeats, or hand out its addresses.
OMITTED_CONTROLLERS = (
    "device-taint-eviction-controller",
    "node-ipam-controller",
    "node-lifecycle-controller",
    "pod-garbage-collector-controller",
    "taint-eviction-controller",
)

AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
"""

ETCD = "etcd"
API_SERVER = "kube-apiserver"
CONTROLLER_MANAGER = "kube-controller-manager"
SCHEDULER = "kube-scheduler"

HEALTH_PATHS = {
    ETCD: "/health",
    API_SERVER: "/readyz",
    CONTROLLER_MANAGER: "/healthz",
    SCHEDULER: "/healthz",
}


@dataclass(frozen=True)
class Layout:
    """Where the files of an instance are, and whether it has a real node."""

    folder: Path
    node: bool = False

    @property
    def api_address(self) -> str:
        """Of the API server: a node cannot reach the loopback of its host."""
        return ADVERTISE_ADDRESS if self.node else HOST

    @property
    def record(self) -> Path:
        return self.folder / "instance.json"

    @property
    def certificates(self) -> Path:
        return self.folder / "certificates"

    @property
    def ca(self) -> Path:
        return self.certificates / "ca.crt"

    def certificate(self, name: str) -> Path:
        return self.certificates / f"{name}.crt"

    def key(self, name: str) -> Path:
        return self.certificates / f"{name}.key"

    @property
    def kubeconfigs(self) -> Path:
        return self.folder / "kubeconfigs"

    def kubeconfig(self, user: str) -> Path:
        return self.kubeconfigs / f"{user.removeprefix('system:')}.yaml"

    @property
    def tokens(self) -> Path:
        return self.folder / "tokens.csv"

    @property
    def audit_policy(self) -> Path:
        return self.folder / "audit-policy.yaml"

    @property
    def audit_log(self) -> Path:
        return self.folder / "audit.log"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    def log(self, component: str) -> Path:
        return self.logs / f"{component}.log"


def flags_of(component: str, layout: Layout, ports: Mapping[str, int]) -> tuple[str, ...]:
    flags = {
        ETCD: _etcd,
        API_SERVER: _api_server,
        CONTROLLER_MANAGER: _controller_manager,
        SCHEDULER: _scheduler,
    }
    return flags[component](layout, ports)


def _etcd(layout: Layout, ports: Mapping[str, int]) -> tuple[str, ...]:
    """Clients and peers need a certificate of ours, so other users of the machine stay out."""
    client = f"https://{HOST}:{ports[ETCD]}"
    peer = f"https://{HOST}:{ports['etcd-peer']}"
    return (
        "--name=testbed",
        f"--data-dir={layout.folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=testbed={peer}",
        f"--cert-file={layout.certificate('server')}",
        f"--key-file={layout.key('server')}",
        f"--trusted-ca-file={layout.ca}",
        "--client-cert-auth",
        f"--peer-cert-file={layout.certificate('server')}",
        f"--peer-key-file={layout.key('server')}",
        f"--peer-trusted-ca-file={layout.ca}",
        "--peer-client-cert-auth",
        # The data need not survive a power cut, and waiting for disks makes tests slow.
        "--unsafe-no-fsync",
        # Milliseconds. A lone member elects itself after this time; the default costs a second at each start.
        "--heartbeat-interval=20",
        "--election-timeout=200",
        "--socket-reuse-port",
        "--log-level=warn",
    )


def _api_server(layout: Layout, ports: Mapping[str, int]) -> tuple[str, ...]:
    return (
        f"--etcd-servers=https://{HOST}:{ports[ETCD]}",
        f"--etcd-cafile={layout.ca}",
        f"--etcd-certfile={layout.certificate('etcd-client')}",
        f"--etcd-keyfile={layout.key('etcd-client')}",
        *_serving(layout, ports[API_SERVER], layout.api_address),
        f"--advertise-address={ADVERTISE_ADDRESS}",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        f"--service-account-issuer={ISSUER}",
        f"--service-account-key-file={layout.certificates / 'service-accounts.pub'}",
        f"--service-account-signing-key-file={layout.key('service-accounts')}",
        f"--token-auth-file={layout.tokens}",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged=true",
        "--kubelet-preferred-address-types=InternalIP",
        f"--kubelet-client-certificate={layout.certificate('etcd-client')}",
        f"--kubelet-client-key={layout.key('etcd-client')}",
        "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
        # It taints every new node, and the one who would lift the taint is among OMITTED_CONTROLLERS.
        "--disable-admission-plugins=TaintNodesByCondition",
        f"--audit-policy-file={layout.audit_policy}",
        f"--audit-log-path={layout.audit_log}",
        # Megabytes. A reader of the log wants one file, not one that is rotated away below it.
        "--audit-log-maxsize=102400",
    )


def _controller_manager(layout: Layout, ports: Mapping[str, int]) -> tuple[str, ...]:
    return (
        f"--kubeconfig={layout.kubeconfig('system:kube-controller-manager')}",
        *_serving(layout, ports[CONTROLLER_MANAGER]),
        "--controllers=" + ",".join(["*", *(f"-{name}" for name in _omitted_controllers(layout))]),
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={layout.key('service-accounts')}",
        f"--root-ca-file={layout.ca}",
        "--leader-elect=false",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        f"--flex-volume-plugin-dir={layout.folder / 'volume-plugins'}",
        # By default a claim waits 8 to 16 seconds for its volume.
        "--pvclaimbinder-sync-period=1s",
    )


def _omitted_controllers(layout: Layout) -> tuple[str, ...]:
    return ("node-ipam-controller",) if layout.node else OMITTED_CONTROLLERS


def _scheduler(layout: Layout, ports: Mapping[str, int]) -> tuple[str, ...]:
    return (
        f"--kubeconfig={layout.kubeconfig('system:kube-scheduler')}",
        *_serving(layout, ports[SCHEDULER]),
        "--leader-elect=false",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
    )


def _serving(layout: Layout, port: int, address: str = HOST) -> tuple[str, ...]:
    return (
        f"--bind-address={address}",
        f"--secure-port={port}",
        # We hold the port until the component has it, see `reserved_ports`.
        "--permit-port-sharing=true",
        f"--tls-cert-file={layout.certificate('server')}",
        f"--tls-private-key-file={layout.key('server')}",
    )
