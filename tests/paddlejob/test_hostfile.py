"""The file of addresses: written by an init container from the list of peers, before training begins."""

import subprocess
from pathlib import Path
from typing import Any

import make
import pytest

from paddle_operator.api.names import HOSTFILE
from paddle_operator.api.paddlejob import Role
from paddle_operator.paddlejob.endpoints import Slot
from paddle_operator.paddlejob.pods import build_pod

WANTED = {"annotations": {"paddlepaddle.org/hostfile": "/workspace/hostfile"}}


def spec_of(pod: Any = None, **spec: Any) -> dict[str, Any]:
    job = make.paddlejob(workers=2, metadata=WANTED, pod=pod or make.template(), **spec)
    built: dict[str, Any] = build_pod(job, Slot(Role.WORKER, 1))["spec"]
    return built


def test_training_sees_the_file_and_begins_after_it_is_whole() -> None:
    """The init container needs the config map, as training does: neither begins before all have addresses."""
    spec = spec_of()
    (writer,) = spec["initContainers"]
    assert writer["env"] == [
        {
            "name": "TRAINER_IP_LIST",
            "valueFrom": {"configMapKeyRef": {"name": "resnet", "key": "TRAINER_IP_LIST"}},
        }
    ]
    assert {"name": HOSTFILE, "emptyDir": {}} in spec["volumes"]
    mount = {"name": HOSTFILE, "mountPath": "/workspace/hostfile", "subPath": "hostfile", "readOnly": True}
    assert mount in spec["containers"][0]["volumeMounts"]


def test_the_writer_runs_what_training_runs_with_the_same_rights() -> None:
    rights = {"runAsNonRoot": True, "capabilities": {"drop": ["ALL"]}}
    training = make.container(image="team/model:7", imagePullPolicy="Never", securityContext=rights)
    (writer,) = spec_of(make.template(training))["initContainers"]
    assert (writer["image"], writer["imagePullPolicy"], writer["securityContext"]) == (
        "team/model:7",
        "Never",
        rights,
    )


def test_a_job_that_does_not_ask_for_it_has_none() -> None:
    spec = build_pod(make.paddlejob(workers=2), Slot(Role.WORKER, 0))["spec"]
    assert "initContainers" not in spec
    assert "volumes" not in spec


@pytest.mark.parametrize("hosts", ["198.18.0.1", "198.18.0.1,198.18.0.2,198.18.0.1", "a.team.svc,b.team.svc"])
def test_the_script_writes_one_address_a_line_in_the_order_of_ranks(hosts: str, tmp_path: Path) -> None:
    (writer,) = spec_of()["initContainers"]
    *shell, script = writer["command"]
    moved = script.replace(f"/{HOSTFILE}/", f"{tmp_path}/")
    subprocess.run([*shell, moved], env={"TRAINER_IP_LIST": hosts}, check=True, timeout=10)
    assert (tmp_path / "hostfile").read_text().splitlines() == hosts.split(",")


def test_the_writer_has_the_amounts_of_training_and_none_of_its_devices_or_additional_rights() -> None:
    """Small limits would keep some shells from starting, and quotas ask for the same of all containers."""
    amounts = {"limits": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": 8}, "requests": {"cpu": "8"}}
    rights = {"privileged": True, "capabilities": {"add": ["IPC_LOCK"], "drop": ["ALL"]}, "runAsUser": 7}
    training = make.container(resources=amounts, securityContext=rights)
    (writer,) = spec_of(make.template(training))["initContainers"]
    assert writer["resources"] == {"limits": {"cpu": "8", "memory": "64Gi"}, "requests": {"cpu": "8"}}
    assert writer["securityContext"] == {"capabilities": {"drop": ["ALL"]}, "runAsUser": 7}
