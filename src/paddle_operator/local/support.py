"""What of a job this machine can play: refusals before anything is made, warnings for what is passed over."""

import importlib.util
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from msgspec.structs import replace

from paddle_operator.api.annotations import answer_to
from paddle_operator.api.meta import Manifest
from paddle_operator.api.names import ANNOTATION_ACCELERATOR, ANNOTATION_HOSTFILE
from paddle_operator.api.paddlejob import PaddleJob, read_template, training_container_of
from paddle_operator.api.quantities import quantity
from paddle_operator.api.schema_check import Problem

from .images import Images
from .machine import Machine
from .variables import NO_FIELD, is_field
from .volumes import COPIES, LEADS_OUT, MAKERS, SHARED_MEMORY, host_path_problem, in_memory, leaves_its_folder

INSTALL_PADDLE = "pip install 'paddle-operator[local]'"
NO_MOUNT_NAMESPACE = "this kernel gives no mount namespace to a user"
ALLOW_NAMESPACES = (
    "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, on Ubuntu "
    "kernel.apparmor_restrict_unprivileged_userns=0), run as root"
)
SUSPENDED = (
    "a suspended job has no pods, and here nobody resumes it; write false, or add "
    "--set spec.runPolicy.suspend=false"
)
LOGS_ARE_OURS = (
    "is passed over on this machine: --logs shows what each process of Paddle's launcher prints, and "
    "--keep DIR keeps it, in logs/<namespace>/<pod>/<container>.workerlog.<local rank>"
)
PASSED_OVER_IN_PODS = ("nodeSelector", "affinity", "schedulerName", "runtimeClassName", "securityContext")
PASSED_OVER_IN_CONTAINERS = (
    "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "securityContext",
)  # fmt: skip


@dataclass(frozen=True)
class Host:
    """What the verdict depends on, besides the job."""

    machine: Machine
    images: Images
    has_paddle: bool
    config_maps: Mapping[str, Collection[str]]
    """Those in the user's files, in the job's namespace: names, with their keys."""
    secrets: Mapping[str, Collection[str]]


def claims(job: PaddleJob) -> list[str]:
    """Names of the persistent volume claims that its pods mount."""
    volumes = [
        volume
        for role in job.roles.values()
        for volume in read_template(role.template)["spec"].get("volumes") or ()
    ]
    return [
        volume["persistentVolumeClaim"]["claimName"]
        for volume in volumes
        if "persistentVolumeClaim" in volume
    ]


def unused_images(named: Iterable[str], jobs: Iterable[PaddleJob]) -> dict[str, set[str]]:
    """Images that no container has, each with those that there are."""
    there_are = {
        container["image"]
        for job in jobs
        for role in job.roles.values()
        for _, container in _containers(read_template(role.template)["spec"])
    }
    return {name: there_are for name in named if name not in there_are}


def paddle_is_installed() -> bool:
    return importlib.util.find_spec("paddle") is not None


def refusals(job: PaddleJob, host: Host) -> list[Problem]:
    found = [
        Problem(f"spec.{role}.template.spec.{problem.field}", problem.message)
        for role, spec in job.roles.items()
        for problem in _pod_refusals(read_template(spec.template)["spec"], host)
    ]
    if job.found_by_name and not host.machine.isolates:
        message = (
            f"{NO_MOUNT_NAMESPACE}, so pods have no hosts file of their own; {ALLOW_NAMESPACES}, or use PodIP"
        )
        found.append(Problem("spec.intranet", message))
    if job.run_policy.suspend:
        found.append(Problem("spec.runPolicy.suspend", SUSPENDED))
    if path := job.metadata.annotations.get(ANNOTATION_HOSTFILE):
        found += _hostfile_refusals(path, job, host)
    return found


def _hostfile_refusals(path: str, job: PaddleJob, host: Host) -> Iterator[Problem]:
    field = f"metadata.annotations[{ANNOTATION_HOSTFILE}]"
    if not host.machine.isolates:
        yield Problem(field, f"{NO_MOUNT_NAMESPACE}, so no file can be put there; {ALLOW_NAMESPACES}")
    training = training_container_of(read_template(job.spec.worker.template)["spec"])
    yield from _hiding_refusals(field, path, host.images.invocation(training).folder, "touch")


def warnings(job: PaddleJob, machine: Machine) -> list[Problem]:
    found = [
        Problem(f"spec.{role}.template.spec.{problem.field}", problem.message)
        for role, spec in job.roles.items()
        for problem in _passed_over(read_template(spec.template)["spec"])
    ]
    if job.run_policy.force_delete_after_seconds is not None:
        message = "is passed over: the one node, this machine, always answers"
        found.append(Problem("spec.runPolicy.forceDeleteAfterSeconds", message))
    if answer_to(ANNOTATION_ACCELERATOR, job.metadata.annotations) and not machine.has_gpu:
        message = "is passed over: this machine has none, and Paddle is told so"
        found.append(Problem(f"metadata.annotations[{ANNOTATION_ACCELERATOR}]", message))
    return [*found, *_overloads(job, machine)]


def _pod_refusals(pod: Manifest, host: Host) -> Iterator[Problem]:
    volumes = {volume["name"]: volume for volume in pod.get("volumes") or ()}
    for name, volume in volumes.items():
        yield from _volume_refusals(f"volumes[{name}]", volume)
    for field, reference in _references(pod):
        is_secret = field.rpartition(".")[2].startswith("secret")
        kind, known = ("Secret", host.secrets) if is_secret else ("ConfigMap", host.config_maps)
        name = reference.get("name") or reference.get("secretName") or ""
        if not name:
            yield Problem(field, f"names no {kind}; write which")
        elif name not in known and not reference.get("optional"):
            yield Problem(field, f"there is no {kind} {name!r}; add the document to the file")
        elif not reference.get("optional") and reference.get("key", "") not in {"", *known[name]}:
            keys = ", ".join(sorted(known[name])) or "none"
            yield Problem(f"{field}.key", f"{kind} {name!r} has no key {reference['key']!r}; it has {keys}")
    for field, container in _containers(pod):
        yield from _command_refusals(field, container, host)
        for mount in container.get("volumeMounts") or ():
            place = f"{field}.volumeMounts[{mount['name']}]"
            yield from _mount_refusals(place, mount, volumes, host)
            folder = host.images.invocation(container).folder
            yield from _hiding_refusals(f"{place}.mountPath", mount["mountPath"], folder)
        for variable in container.get("env") or ():
            path = ((variable.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath")
            if path is not None and not is_field(path):
                yield Problem(
                    f"{field}.env[{variable['name']}].valueFrom.fieldRef.fieldPath", f"{path!r} {NO_FIELD}"
                )
        if field.startswith("init") and container.get("restartPolicy"):
            yield Problem(
                f"{field}.restartPolicy",
                "sidecars among init containers do not run on this machine; move it to containers",
            )


def _volume_refusals(field: str, volume: Manifest) -> Iterator[Problem]:
    for kind in volume:
        if kind not in {"name", *MAKERS}:
            yield Problem(f"{field}.{kind}", f"is not played on this machine; {', '.join(MAKERS)} are")
    on_host = volume.get("hostPath") or {}
    is_made = (on_host.get("type") or "").endswith("OrCreate") and not Path(on_host["path"]).exists()
    if on_host and not is_made and (problem := host_path_problem(on_host)):
        yield Problem(
            f"{field}.hostPath", f"{problem}; make it, or change the type (`DirectoryOrCreate`, say)"
        )
    for part, path in _paths_within(volume):
        if leaves_its_folder(path):
            yield Problem(f"{field}.{part}", f"{path!r} {LEADS_OUT}")


def _paths_within(volume: Manifest) -> Iterator[tuple[str, str]]:
    yield "name", volume["name"]
    yield "persistentVolumeClaim.claimName", (volume.get("persistentVolumeClaim") or {}).get("claimName", "")
    for kind in COPIES:
        for position, item in enumerate((volume.get(kind) or {}).get("items") or ()):
            yield f"{kind}.items[{position}].path", item["path"]


def _command_refusals(field: str, container: Manifest, host: Host) -> Iterator[Problem]:
    image, wanted = container["image"], host.images.invocation(container)
    if not wanted.command:
        yield Problem(
            f"{field}.image",
            f"{image!r} cannot be pulled without a cluster, and the container names no command; "
            f"add --image '{image}=COMMAND@FOLDER'",
        )
    elif not host.has_paddle and _speaks_of_paddle(wanted.command):
        yield Problem(
            f"{field}.command", f"needs PaddlePaddle, which is not installed here; {INSTALL_PADDLE}"
        )
    targets = [Path("/", mount["mountPath"]) for mount in container.get("volumeMounts") or ()]
    if not wanted.folder.is_dir() and not any(wanted.folder.is_relative_to(target) for target in targets):
        yield Problem(
            f"{field}.workingDir",
            f"there is no folder {wanted.folder} on this machine; "
            f"add --image '{image}=@FOLDER' to say where the image's files are",
        )


def _speaks_of_paddle(command: tuple[str, ...]) -> bool:
    return any(word == "paddle" or word.startswith("paddle.") for word in command)


def _mount_refusals(
    field: str, mount: Manifest, volumes: dict[str, Manifest], host: Host
) -> Iterator[Problem]:
    volume = volumes.get(mount["name"])
    if volume is None:
        yield Problem(field, f"there is no volume of that name; volumes has {', '.join(volumes) or 'none'}")
        return
    if leaves_its_folder(mount.get("subPath") or ""):
        yield Problem(f"{field}.subPath", f"{mount['subPath']!r} {LEADS_OUT}")
    if mount.get("subPathExpr"):
        yield Problem(f"{field}.subPathExpr", "is not played on this machine; use subPath")
    target = Path("/", mount["mountPath"])
    already_there = "hostPath" in volume and Path(volume["hostPath"]["path"]) == target
    shared_memory = in_memory(volume) and target == Path(SHARED_MEMORY)
    if not host.machine.isolates and not already_there and not shared_memory:
        yield Problem(
            f"{field}.mountPath",
            f"{NO_MOUNT_NAMESPACE}, so nothing can be mounted; {ALLOW_NAMESPACES}, or use a hostPath with "
            "the same path inside and outside",
        )


def is_extended(resource: str) -> bool:
    """nvidia.com/gpu and the like."""
    return "/" in resource


def without_accelerators(job: PaddleJob) -> PaddleJob:
    """As for a machine that has none, so that Paddle is told to use the CPU."""
    annotations = job.metadata.annotations | {ANNOTATION_ACCELERATOR: "false"}
    return replace(job, metadata=replace(job.metadata, annotations=annotations))


def _hiding_refusals(field: str, path: str, folder: Path, make: str = "mkdir -p") -> Iterator[Problem]:
    """A mount point that has to be made hides its parent; not if that is where the script writes."""
    target = Path("/", path)
    nearest = next(parent for parent in (target, *target.parents) if parent.exists())
    if nearest != target and nearest.is_relative_to(folder):
        yield Problem(field, f"lies in the working folder and is not there; {make} {target}")


def _passed_over(pod: Manifest) -> Iterator[Problem]:
    for name in PASSED_OVER_IN_PODS:
        if pod.get(name):
            yield Problem(name, "is passed over: there is one node, this machine")
    for field, container in _containers(pod):
        for name in PASSED_OVER_IN_CONTAINERS:
            if container.get(name):
                yield Problem(f"{field}.{name}", "is passed over on this machine")
        yield from _own_logs(field, container)
        for name in sorted(filter(is_extended, _amounts(container))):
            yield Problem(f"{field}.resources", f"{name} is passed over: processes see what this machine has")


def _own_logs(field: str, container: Manifest) -> Iterator[Problem]:
    """Pods share this machine's folders, so each has one of its own for what its processes print."""
    for part in ("command", "args"):
        if any("--log_dir" in word for word in container.get(part) or ()):
            yield Problem(f"{field}.{part}", f"--log_dir {LOGS_ARE_OURS}")
    if any(variable["name"] == "PADDLE_LOG_DIR" for variable in container.get("env") or ()):
        yield Problem(f"{field}.env[PADDLE_LOG_DIR]", LOGS_ARE_OURS)


def _overloads(job: PaddleJob, machine: Machine) -> Iterator[Problem]:
    for name, here in machine.capacity.items():
        asked = sum(
            (
                role.replicas * _asked_by(read_template(role.template)["spec"], name)
                for role in job.roles.values()
            ),
            Fraction(0),
        )
        if asked > quantity(here):
            yield Problem(
                "spec",
                f"the pods ask for {_amount(name, asked)} together, this machine has "
                f"{_amount(name, quantity(here))}; they run all the same, but slower or not at all",
            )


def _asked_by(pod: Manifest, name: str) -> Fraction:
    """Init containers run one after the other, and before the rest."""
    first, rest = (
        [quantity(_amounts(container).get(name, "0")) for container in pod.get(field) or ()]
        for field in ("initContainers", "containers")
    )
    return max(*first, sum(rest, Fraction(0)), Fraction(0))


def _amount(name: str, amount: Fraction) -> str:
    return f"{float(amount):g} CPUs" if name == "cpu" else f"{float(amount / 2**30):.1f} GiB of memory"


def _amounts(container: Manifest) -> dict[str, str]:
    resources = container.get("resources") or {}
    return {**(resources.get("limits") or {}), **(resources.get("requests") or {})}


def _references(pod: Manifest) -> Iterator[tuple[str, Manifest]]:
    """All that names a config map or a secret."""
    for volume in pod.get("volumes") or ():
        for kind in ("configMap", "secret"):
            if kind in volume:
                yield f"volumes[{volume['name']}].{kind}", volume[kind]
    for field, container in _containers(pod):
        for position, source in enumerate(container.get("envFrom") or ()):
            for kind, reference in source.items():
                if kind.endswith("Ref"):
                    yield f"{field}.envFrom[{position}].{kind}", reference
        for variable in container.get("env") or ():
            for kind, reference in (variable.get("valueFrom") or {}).items():
                if kind.endswith("KeyRef"):
                    yield f"{field}.env[{variable['name']}].valueFrom.{kind}", reference


def _containers(pod: Manifest) -> Iterator[tuple[str, Manifest]]:
    for field in ("initContainers", "containers"):
        for position, container in enumerate(pod.get(field) or ()):
            yield f"{field}[{position}]", container
