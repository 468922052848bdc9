"""What of a job this machine can play: each verdict names the field and the remedy."""

from pathlib import Path
from typing import Any

import make
import pytest

from paddle_operator.api.accelerators import has_accelerator
from paddle_operator.api.meta import Manifest
from paddle_operator.api.names import ANNOTATION_HOSTFILE
from paddle_operator.api.paddlejob import PaddleJob, read_template
from paddle_operator.local.images import Images
from paddle_operator.local.machine import Machine
from paddle_operator.local.support import (
    INSTALL_PADDLE,
    LOGS_ARE_OURS,
    SUSPENDED,
    Host,
    refusals,
    warnings,
    without_accelerators,
)

SPEC = "spec.worker.template.spec."
FIRST = SPEC + "containers[0]"
GIB = 2**30
MACHINE = Machine(cpus=4, memory=8 * GIB, isolates=True)
GPUS = {"limits": {"nvidia.com/gpu": 1, "cpu": "1"}, "requests": {"nvidia.com/gpu": 1}}


def container(**fields: Any) -> Manifest:
    return {"name": "paddle", "image": "my/image", "command": ["python", "train.py"], **fields}


def job(*containers: Manifest, workers: int = 2, **spec: Any) -> PaddleJob:
    return make.paddlejob(workers=workers, pod=make.template(*(containers or [container()]), **spec))


def governed(**policy: Any) -> PaddleJob:
    return make.paddlejob(pod=make.template(container()), runPolicy=policy)


def mounting(volume: Manifest, **mount: Any) -> PaddleJob:
    mounted = container(volumeMounts=[{"name": "data", "mountPath": "/data", **mount}])
    return job(mounted, volumes=[{"name": "data", **volume}])


def taking(**source: Manifest) -> PaddleJob:
    return job(container(env=[{"name": "A_SECRET_secret", "valueFrom": source}]))


def host(
    home: Path, *, isolates: bool = True, has_paddle: bool = True, entries: tuple[str, ...] = ()
) -> Host:
    machine = Machine(cpus=4, memory=8 * GIB, isolates=isolates)
    return Host(
        machine,
        Images.of(entries, home),
        has_paddle,
        config_maps={"map": {"k"}},
        secrets={"secret": {"k"}},
    )


def said(found: list[Any]) -> list[tuple[str, str]]:
    return [(problem.field, problem.message) for problem in found]


# What is played.


@pytest.mark.parametrize(
    "good",
    [
        job(),
        job(container(image="my/image", command=["python", "-m", "paddle.distributed.launch", "x.py"])),
        job(container(), container(name="second"), initContainers=[container(name="early")]),
        mounting({"emptyDir": {}}),
        mounting({"emptyDir": {"medium": "Memory"}}, readOnly=True),
        mounting({"hostPath": {"path": "/etc"}}),
        mounting({"hostPath": {"path": "/etc", "type": "Directory"}}),
        mounting({"hostPath": {"path": "/no-such-folder", "type": "DirectoryOrCreate"}}),
        mounting({"hostPath": {"path": "/no-such-file", "type": "FileOrCreate"}}),
        mounting({"configMap": {"name": "map", "items": [{"key": "a", "path": "b/c"}]}}, subPath="b/c"),
        mounting({"configMap": {"name": "none", "optional": True}}),
        mounting({"secret": {"secretName": "secret"}}),
        mounting({"secret": {"secretName": "none", "optional": True}}),
        mounting({"persistentVolumeClaim": {"claimName": "models"}}),
        # A word in a name says nothing of the kind.
        job(container(), volumes=[{"name": "secrets", "configMap": {"name": "map"}}]),
        job(container(), volumes=[{"name": "configs", "secret": {"secretName": "secret"}}]),
        job(container(envFrom=[{"prefix": "secretRef", "configMapRef": {"name": "map"}}])),
        job(container(envFrom=[{"secretRef": {"name": "secret"}}, {"configMapRef": {"name": "map"}}])),
        taking(configMapKeyRef={"name": "map", "key": "k"}),
        taking(secretKeyRef={"name": "secret", "key": "k"}),
        taking(secretKeyRef={"name": "none", "key": "k", "optional": True}),
        taking(fieldRef={"fieldPath": "status.podIP"}),
        taking(resourceFieldRef={"resource": "limits.cpu"}),
        job(container(workingDir="src")),
        governed(backoffLimit=3, maxDisruptions=0, ttlSecondsAfterFinished=0, suspend=False),
        governed(activeDeadlineSeconds=60, startDeadlineSeconds=60, forceDeleteAfterSeconds=60),
        # A folder that is mounted need not be there before.
        job(
            container(workingDir="/data/deep", volumeMounts=[{"name": "data", "mountPath": "/data/"}]),
            volumes=[{"name": "data", "emptyDir": {}}],
        ),
    ],
)
def test_what_runs_is_not_refused(tmp_path: Path, good: PaddleJob) -> None:
    (tmp_path / "src").mkdir()
    assert said(refusals(good, host(tmp_path))) == []


# What is not.

NO_COMMAND = (
    "'my/image:v1' cannot be pulled without a cluster, and the container names no command; "
    "add --image 'my/image:v1=COMMAND@FOLDER'"
)
NO_FOLDER = (
    "there is no folder /no-such-folder on this machine; "
    "add --image 'my/image=@FOLDER' to say where the image's files are"
)
MAKE_IT = "make it, or change the type (`DirectoryOrCreate`, say)"


@pytest.mark.parametrize(
    ("bad", "field", "message"),
    [
        (
            job({"name": "paddle", "image": "my/image:v1"}),
            f"{FIRST}.image",
            NO_COMMAND,
        ),
        (
            job({"name": "paddle", "image": "my/image:v1", "args": ["--fast"]}),
            f"{FIRST}.image",
            NO_COMMAND,
        ),
        (
            job(container(workingDir="/no-such-folder")),
            f"{FIRST}.workingDir",
            NO_FOLDER,
        ),
        (
            mounting({"nfs": {"server": "a", "path": "/"}}),
            f"{SPEC}volumes[data].nfs",
            "is not played on this machine; emptyDir, hostPath, configMap, secret, persistentVolumeClaim are",
        ),
        (
            mounting({"hostPath": {"path": "/no-such-folder"}}),
            f"{SPEC}volumes[data].hostPath",
            f"/no-such-folder does not exist on this machine; {MAKE_IT}",
        ),
        (
            mounting({"hostPath": {"path": "/etc/hosts", "type": "DirectoryOrCreate"}}),
            f"{SPEC}volumes[data].hostPath",
            f"/etc/hosts is no DirectoryOrCreate; {MAKE_IT}",
        ),
        (
            job(container(volumeMounts=[{"name": "data", "mountPath": "/data"}])),
            f"{FIRST}.volumeMounts[data]",
            "there is no volume of that name; volumes has none",
        ),
        (
            job(
                container(volumeMounts=[{"name": "data", "mountPath": "/data"}]),
                volumes=[{"name": "dato", "emptyDir": {}}],
            ),
            f"{FIRST}.volumeMounts[data]",
            "there is no volume of that name; volumes has dato",
        ),
        (
            mounting({"emptyDir": {}}, subPathExpr="$(A)"),
            f"{FIRST}.volumeMounts[data].subPathExpr",
            "is not played on this machine; use subPath",
        ),
        (
            mounting({"emptyDir": {}}, subPath="../.."),
            f"{FIRST}.volumeMounts[data].subPath",
            "'../..' leads out of its volume; write a relative path without ..",
        ),
        (
            mounting({"configMap": {"name": "map", "items": [{"key": "a", "path": "/etc/passwd"}]}}),
            f"{SPEC}volumes[data].configMap.items[0].path",
            "'/etc/passwd' leads out of its volume; write a relative path without ..",
        ),
        (
            mounting({"persistentVolumeClaim": {"claimName": "../x"}}),
            f"{SPEC}volumes[data].persistentVolumeClaim.claimName",
            "'../x' leads out of its volume; write a relative path without ..",
        ),
        (
            mounting({"configMap": {"name": "none"}}),
            f"{SPEC}volumes[data].configMap",
            "there is no ConfigMap 'none'; add the document to the file",
        ),
        (
            mounting({"secret": {"secretName": "map"}}),
            f"{SPEC}volumes[data].secret",
            "there is no Secret 'map'; add the document to the file",
        ),
        (
            job(container(envFrom=[{"configMapRef": {"name": "map"}}, {"secretRef": {"name": "none"}}])),
            f"{FIRST}.envFrom[1].secretRef",
            "there is no Secret 'none'; add the document to the file",
        ),
        (
            taking(configMapKeyRef={"name": "secret", "key": "k"}),
            f"{FIRST}.env[A_SECRET_secret].valueFrom.configMapKeyRef",
            "there is no ConfigMap 'secret'; add the document to the file",
        ),
        (
            taking(secretKeyRef={"name": "none", "key": "k"}),
            f"{FIRST}.env[A_SECRET_secret].valueFrom.secretKeyRef",
            "there is no Secret 'none'; add the document to the file",
        ),
        (
            job(container(), initContainers=[container(name="early", restartPolicy="Always")]),
            f"{SPEC}initContainers[0].restartPolicy",
            "sidecars among init containers do not run on this machine; move it to containers",
        ),
        (
            governed(suspend=True),
            "spec.runPolicy.suspend",
            SUSPENDED,
        ),
    ],
)
def test_what_does_not_run_is_refused(tmp_path: Path, bad: PaddleJob, field: str, message: str) -> None:
    assert said(refusals(bad, host(tmp_path))) == [(field, message)]


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    wrong = {"name": "paddle", "image": "x", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    bad = job(wrong, {**wrong, "name": "second"}, volumes=[{"name": "other", "nfs": {}}])
    assert [field for field, _ in said(refusals(bad, host(tmp_path)))] == [
        f"{SPEC}volumes[other].nfs",
        f"{FIRST}.image",
        f"{FIRST}.volumeMounts[data]",
        f"{SPEC}containers[1].image",
        f"{SPEC}containers[1].volumeMounts[data]",
    ]


@pytest.mark.parametrize(
    ("entry", "refused"),
    [
        ("my/image:v1=python train.py", False),
        ("my/image:v1=@.", True),
        ("my/image:v2=python train.py", True),
    ],
)
def test_the_flag_that_a_refusal_names_helps(tmp_path: Path, entry: str, refused: bool) -> None:
    plain = job({"name": "paddle", "image": "my/image:v1"})
    assert bool(refusals(plain, host(tmp_path, entries=(entry,)))) is refused


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        (["python", "-m", "paddle.distributed.launch", "train.py"], True),
        (["python", "-m", "paddle"], True),
        (["paddle", "train"], True),
        (["python", "train.py"], False),
        (["python", "paddle_free.py"], False),
        (["sh", "-c", "echo paddle.nn"], False),
    ],
)
def test_paddle_is_missed_where_the_command_speaks_of_it(
    tmp_path: Path, command: list[str], needed: bool
) -> None:
    wanted = job(container(command=command))
    missing = [(f"{FIRST}.command", f"needs PaddlePaddle, which is not installed here; {INSTALL_PADDLE}")]
    assert said(refusals(wanted, host(tmp_path, has_paddle=False))) == (missing if needed else [])
    assert refusals(wanted, host(tmp_path, has_paddle=True)) == []


@pytest.mark.parametrize(
    ("volume", "mount", "refused"),
    [
        ({"emptyDir": {}}, {}, True),
        ({"configMap": {"name": "map"}}, {}, True),
        ({"persistentVolumeClaim": {"claimName": "c"}}, {}, True),
        ({"hostPath": {"path": "/etc"}}, {}, True),
        ({"hostPath": {"path": "/etc"}}, {"mountPath": "/etc"}, False),
        ({"hostPath": {"path": "/etc/"}}, {"mountPath": "/etc"}, False),
        ({"emptyDir": {"medium": "Memory"}}, {}, True),
        ({"emptyDir": {"medium": "Memory"}}, {"mountPath": "/dev/shm"}, False),
        ({"emptyDir": {}}, {"mountPath": "/dev/shm"}, True),
    ],
)
def test_without_namespaces_only_what_is_there_already_can_be_mounted(
    tmp_path: Path, volume: Manifest, mount: Manifest, refused: bool
) -> None:
    found = said(refusals(mounting(volume, **mount), host(tmp_path, isolates=False)))
    assert [field for field, _ in found] == ([f"{FIRST}.volumeMounts[data].mountPath"] if refused else [])
    assert all("allow user namespaces" in text and "run as root" in text for _, text in found)


def test_a_job_without_mounts_needs_no_namespaces(tmp_path: Path) -> None:
    assert refusals(job(), host(tmp_path, isolates=False)) == []


# What is passed over.

ONE_NODE = "is passed over: there is one node, this machine"


@pytest.mark.parametrize(
    ("odd", "field", "message"),
    [
        (job(nodeSelector={"gpu": "yes"}), f"{SPEC}nodeSelector", ONE_NODE),
        (job(affinity={"nodeAffinity": {}}), f"{SPEC}affinity", ONE_NODE),
        (job(schedulerName="volcano"), f"{SPEC}schedulerName", ONE_NODE),
        (job(runtimeClassName="gvisor"), f"{SPEC}runtimeClassName", ONE_NODE),
        (job(securityContext={"runAsUser": 1}), f"{SPEC}securityContext", ONE_NODE),
        (
            job(container(livenessProbe={"exec": {}})),
            f"{FIRST}.livenessProbe",
            "is passed over on this machine",
        ),
        (
            job(container(lifecycle={"preStop": {}})),
            f"{FIRST}.lifecycle",
            "is passed over on this machine",
        ),
        (
            job(container(resources=GPUS)),
            f"{FIRST}.resources",
            "nvidia.com/gpu is passed over: processes see what this machine has",
        ),
        (
            job(container(command=["sh", "-c", "python -m paddle.distributed.launch --log_dir=/logs t.py"])),
            f"{FIRST}.command",
            f"--log_dir {LOGS_ARE_OURS}",
        ),
        (job(container(args=["--log_dir", "/logs"])), f"{FIRST}.args", f"--log_dir {LOGS_ARE_OURS}"),
        (
            job(container(env=[{"name": "PADDLE_LOG_DIR", "value": "/logs"}])),
            f"{FIRST}.env[PADDLE_LOG_DIR]",
            LOGS_ARE_OURS,
        ),
        (
            governed(forceDeleteAfterSeconds=0),
            "spec.runPolicy.forceDeleteAfterSeconds",
            "is passed over: the one node, this machine, always answers",
        ),
    ],
)
def test_what_is_passed_over_is_said(odd: PaddleJob, field: str, message: str) -> None:
    assert (field, message) in said(warnings(odd, MACHINE))


@pytest.mark.parametrize(
    "plain",
    [
        job(),
        job(nodeSelector={}),
        mounting({"emptyDir": {}}),
        governed(backoffLimit=3, maxDisruptions=3, activeDeadlineSeconds=9, startDeadlineSeconds=9),
        governed(ttlSecondsAfterFinished=0),
    ],
)
def test_there_is_no_warning_without_a_cause(plain: PaddleJob) -> None:
    assert warnings(plain, MACHINE) == []


def asking(**resources: Manifest) -> Manifest:
    return container(resources=resources)


@pytest.mark.parametrize(
    ("big", "words"),
    [
        (job(asking(requests={"cpu": "2"})), None),
        (job(asking(requests={"cpu": "2001m"})), "4.002 CPUs together, this machine has 4 CPUs"),
        (job(asking(limits={"cpu": 3})), "6 CPUs"),
        (job(asking(requests={"cpu": 1}, limits={"cpu": 64})), None),
        (job(asking(requests={"cpu": "1.5"}), asking(requests={"cpu": "1"})), "5 CPUs"),
        (job(asking(requests={"memory": "4Gi"})), None),
        (job(asking(requests={"memory": "5Gi"})), "10.0 GiB of memory together, this machine has 8.0 GiB"),
        # Init containers come first, one by one.
        (job(asking(requests={"cpu": 1}), initContainers=[asking(requests={"cpu": 2})] * 2), None),
        (job(asking(requests={"cpu": 1}), initContainers=[asking(requests={"cpu": 3})]), "6 CPUs"),
    ],
)
def test_more_than_the_machine_has(big: PaddleJob, words: str | None) -> None:
    found = [text for field, text in said(warnings(big, MACHINE)) if field == "spec"]
    assert len(found) == (1 if words else 0)
    assert all(text.startswith(f"the pods ask for {words}") for text in found)


# A file of addresses.


def test_a_file_of_addresses_needs_a_mount_namespace_and_hides_no_script(tmp_path: Path) -> None:
    path = f"{tmp_path}/hostfile"
    annotated = make.paddlejob(
        pod=make.template(container()), metadata={"annotations": {ANNOTATION_HOSTFILE: path}}
    )
    field = f"metadata.annotations[{ANNOTATION_HOSTFILE}]"
    inside = host(tmp_path)
    ((where, words),) = said(refusals(annotated, inside))
    assert (where, words) == (field, f"lies in the working folder and is not there; touch {path}")
    Path(path).touch()
    assert not refusals(annotated, inside)
    ((where, words),) = said(refusals(annotated, host(tmp_path, isolates=False)))
    assert where == field
    assert words.startswith("this kernel gives no mount namespace")


# Accelerators.


def test_without_accelerators_paddle_is_told_so_and_nothing_else_changes() -> None:
    asked = job(container(resources=GPUS))
    left = without_accelerators(asked)
    (training,) = read_template(left.spec.worker.template)["spec"]["containers"]
    assert has_accelerator(training, asked.metadata.annotations)
    assert not has_accelerator(training, left.metadata.annotations)
    assert left.spec == asked.spec
