"""The programs of a cluster, built from source once and then kept in the user's cache.

Layout: <cache>/kubernetes/v1.34.4-<key>/kube-apiserver. A name without suffix is always a whole binary:
builds write to NAME.partial-PID and rename. The version stands in tools/*/go.mod and nowhere else.
"""

import hashlib
import json
import os
import platform
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from testbed.cache import build_lock, cache_folder, finish
from testbed.errors import BuildError, tail
from testbed.progress import Progress
from testbed.toolchain import Toolchain, select_toolchain

TOOLS = Path(__file__).parent / "tools"
KUBERNETES_VERSION = "k8s.io/component-base/version"


@dataclass(frozen=True)
class Module:
    """A Go module of ours that does nothing but pin the versions of what it builds."""

    name: str
    upstream: str
    folder: Path

    @property
    def version(self) -> str:
        return self._version_of(self.upstream)

    @property
    def minimum_go(self) -> str:
        return self._find(r"^go\s+(\S+)", "names a Go version")

    @property
    def build_flags(self) -> tuple[str, ...]:
        stamps = [f"-X {variable}={value}" for variable, value in self._stamps().items()]
        return ("-trimpath", "-ldflags", " ".join(["-s", "-w", *stamps]))

    def cache_key(self, go_version: str) -> str:
        """Changes whenever the resulting binary might."""
        ingredients = [
            (self.folder / "go.mod").read_bytes(),
            (self.folder / "go.sum").read_bytes(),
            *(file.read_bytes() for file in sorted(self.folder.glob("*.go"))),
            "\0".join(self.build_flags).encode(),
            go_version.encode(),
            platform.machine().encode(),
        ]
        # Digests of the parts: no two different lists of parts run together into the same text.
        digests = b"".join(hashlib.sha256(ingredient).digest() for ingredient in ingredients)
        return hashlib.sha256(digests).hexdigest()[:16]

    def _stamps(self) -> dict[str, str]:
        """Variables that upstream's own builds set, so that the program knows which version it is."""
        match self.upstream:
            case "k8s.io/kubernetes":
                major, minor, _ = self.version.removeprefix("v").split(".", 2)
                stamps = {"gitVersion": self.version, "gitMajor": major, "gitMinor": minor}
                return {f"{KUBERNETES_VERSION}.{name}": value for name, value in stamps.items()}
            case "helm.sh/helm/v3":
                # Which Kubernetes charts are rendered for when no server is asked: that of its client.
                minor = self._version_of("k8s.io/client-go").split(".")[1]
                packages = ("pkg/chartutil", "pkg/lint/rules")
                kubernetes = {f"{self.upstream}/{package}.k8sVersionMinor": minor for package in packages}
                return {f"{self.upstream}/internal/version.version": self.version} | kubernetes
            case _:
                return {}

    def _version_of(self, module: str) -> str:
        return self._find(rf"^\s*(?:require\s+)?{re.escape(module)}\s+(v\S+)", f"requires {module}")

    def _find(self, pattern: str, what: str) -> str:
        match = re.search(pattern, (self.folder / "go.mod").read_text(), re.MULTILINE)
        if match is None:
            raise BuildError(
                f"no line of {self.folder / 'go.mod'} {what}",
                remedy="restore the file: git checkout -- testbed/tools",
            )
        return match[1]


@dataclass(frozen=True)
class Program:
    name: str
    module: Module
    package: str
    first_build: str
    """How long a build without any cache takes, for a person who wonders whether to wait."""


KUBERNETES = Module("kubernetes", "k8s.io/kubernetes", TOOLS / "kubernetes")
ETCD = Module("etcd", "go.etcd.io/etcd/server/v3", TOOLS / "etcd")
COREDNS = Module("coredns", "github.com/coredns/coredns", TOOLS / "coredns")
GO_OPERATOR = Module(
    "go-paddle-operator", "github.com/paddleflow/paddle-operator", TOOLS / "go-paddle-operator"
)
TRAINING_OPERATOR = Module(
    "training-operator", "github.com/kubeflow/training-operator", TOOLS / "training-operator"
)
HELM = Module("helm", "helm.sh/helm/v3", TOOLS / "helm")

PROGRAMS = {
    program.name: program
    for program in (
        Program("etcd", ETCD, "go.etcd.io/etcd/server/v3", "1 minute"),
        Program("kube-apiserver", KUBERNETES, "k8s.io/kubernetes/cmd/kube-apiserver", "4 minutes"),
        Program(
            "kube-controller-manager",
            KUBERNETES,
            "k8s.io/kubernetes/cmd/kube-controller-manager",
            "1 minute",
        ),
        Program("kube-scheduler", KUBERNETES, "k8s.io/kubernetes/cmd/kube-scheduler", "10 seconds"),
        Program("kubectl", KUBERNETES, "k8s.io/kubernetes/cmd/kubectl", "30 seconds"),
        Program("kubelet", KUBERNETES, "k8s.io/kubernetes/cmd/kubelet", "1 minute"),
        Program("kube-proxy", KUBERNETES, "k8s.io/kubernetes/cmd/kube-proxy", "10 seconds"),
        Program("coredns", COREDNS, ".", "1 minute"),
        Program("go-paddle-operator", GO_OPERATOR, GO_OPERATOR.upstream, "2 minutes"),
        Program("training-operator", TRAINING_OPERATOR, ".", "2 minutes"),
        Program("helm", HELM, "helm.sh/helm/v3/cmd/helm", "2 minutes"),
    )
}
NODE_PROGRAMS = ("kubelet", "kube-proxy", "coredns")
# Whom we follow, and whose jobs we take over: for the tests of that, built when they ask.
PEERS = ("go-paddle-operator",)
# Whom we are measured against: for benchmarks alone.
RIVALS = ("training-operator",)
# What people install the operator with: for the tests of that, which take place on a real node.
INSTALLERS = ("helm",)
CONTROL_PLANE_PROGRAMS = tuple(
    name for name in PROGRAMS if name not in {*NODE_PROGRAMS, *PEERS, *RIVALS, *INSTALLERS}
)


def ensure(names: Iterable[str] = CONTROL_PLANE_PROGRAMS) -> dict[str, Path]:
    """Paths of these programs; each exists and is whole. Builds what is neither given nor in the cache."""
    return {name: ensure_program(PROGRAMS[name]) for name in names}


def ensure_program(program: Program) -> Path:
    given = _from_assets(program)
    if given is not None:
        print(f"{program.name}: {given} (KUBEBUILDER_ASSETS)")
        return given
    toolchain = select_toolchain(program.module.minimum_go, cache_folder())
    binary = binary_path(program, toolchain)
    title = f"{program.name} {program.module.version}"
    if not binary.exists():
        with build_lock(binary.with_name(f"{binary.name}.lock"), title) as lock:
            # Whoever held the lock before may have built it.
            if not binary.exists():
                toolchain.install()
                _build(program, toolchain, binary, lock)
                return binary
    print(f"{title}: cached")
    return binary


def path_of(program: Program) -> Path:
    """Where it is, or will be. Another path whenever it might be another program."""
    toolchain = select_toolchain(program.module.minimum_go, cache_folder())
    return _from_assets(program) or binary_path(program, toolchain)


def source_folder(module: Module) -> Path:
    """Where Go keeps the source of what the module builds; fetched if need be, checked against go.sum."""
    toolchain = select_toolchain(module.minimum_go, cache_folder())
    toolchain.install()
    command = [str(toolchain.executable), "mod", "download", "-json", module.upstream]
    answer = subprocess.run(
        command,
        cwd=module.folder,
        env=toolchain.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        raise BuildError(
            f"`{' '.join(command)}` in {module.folder} failed:\n{answer.stdout}{answer.stderr}",
            remedy="see the message above: no network or module proxy (GOPROXY)?",
        )
    return Path(json.loads(answer.stdout)["Dir"])


def binary_path(program: Program, toolchain: Toolchain) -> Path:
    module = program.module
    key = module.cache_key(toolchain.version)
    return cache_folder() / module.name / f"{module.version}-{key}" / program.name


def _from_assets(program: Program) -> Path | None:
    """The folder that setup-envtest and Kubebuilder users already have; what it lacks is built."""
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    if not folder:
        return None
    candidate = Path(folder).absolute() / program.name
    return candidate if candidate.is_file() and os.access(candidate, os.X_OK) else None


def _build(program: Program, toolchain: Toolchain, binary: Path, lock: int) -> None:
    for leftover in binary.parent.glob(f"{binary.name}.partial-*"):
        leftover.unlink()
    partial = binary.with_name(f"{binary.name}.partial-{os.getpid()}")
    log = binary.with_name(f"{binary.name}.log")
    command = [
        str(toolchain.executable),
        "build",
        *program.module.build_flags,
        "-o",
        str(partial),
        program.package,
    ]
    title = f"{program.name} {program.module.version}"
    progress = Progress(title, f"building (first time: about {program.first_build} on 2 cores)")
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command,
            cwd=program.module.folder,
            env=toolchain.environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=(lock,),
        ) as process,
    ):
        code = finish(process, progress)
    if code != 0:
        progress.stop()
        raise BuildError(
            f"{title}: `go build {program.package}` in {program.module.folder} failed with code {code}, "
            f"{toolchain.version}; the end of {log}:\n{tail(log)}",
            remedy="see the message above: no network or module proxy (GOPROXY), a full disk, little memory?",
        )
    partial.rename(binary)
    log.unlink()
    progress.done("built")
