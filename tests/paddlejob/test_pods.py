"""The pods that a job becomes, and what their containers are told."""

from typing import Any

import make
import pytest

from paddle_operator.api.meta import Manifest
from paddle_operator.api.paddlejob import Role
from paddle_operator.paddlejob.endpoints import Slot
from paddle_operator.paddlejob.environment import OURS
from paddle_operator.paddlejob.pods import build_pod, dropped_variables_of


def built(pod: Manifest | None = None, rank: int = 0, **fields: Any) -> Manifest:
    return build_pod(make.paddlejob(pod=pod, **fields), Slot(Role.WORKER, rank))


def environment(pod: Manifest, container: int = 0) -> dict[str, Any]:
    variables = pod["spec"]["containers"][container].get("env", [])
    assert len({variable["name"] for variable in variables}) == len(variables)
    return {variable["name"]: variable.get("value", variable.get("valueFrom")) for variable in variables}


def test_the_worker_of_the_design_document() -> None:
    """Seed 002 shows this pod; the order of the first four variables is its own."""
    pod = built()
    owner = pod["metadata"]["ownerReferences"][0]
    assert owner == {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "name": "resnet",
        "uid": make.UID,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    container = pod["spec"]["containers"][0]
    assert container["env"][:4] == [
        {"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}},
        {"name": "PADDLE_TRAINER_ID", "value": "0"},
        {"name": "TRAINING_ROLE", "value": "TRAINER"},
        {"name": "PADDLE_TRAINING_ROLE", "value": "TRAINER"},
    ]
    assert container["envFrom"] == [{"configMapRef": {"name": "resnet"}}]


def test_names_labels_and_annotations() -> None:
    metadata = built(rank=1)["metadata"]
    assert metadata["name"] == "resnet-worker-1"
    assert metadata["labels"] == {
        "paddle-res-name": "resnet-worker-1",
        "paddle-res-type": "worker",
        "paddlepaddle.org/job-uid": make.UID,
        "paddlepaddle.org/role": "worker",
        "paddlepaddle.org/index": "1",
        "paddlepaddle.org/attempt": "0",
    }
    assert metadata["annotations"] == {"paddle-resource": "worker"}


def test_a_template_passes_through_untouched_but_for_what_we_add() -> None:
    spec: Manifest = {
        "nodeSelector": {"accelerator": "nvidia-tesla-p100"},
        "schedulerName": "volcano",
        "volumes": [{"name": "dshm", "emptyDir": {"medium": "Memory"}}],
        "restartPolicy": "OnFailure",
        "tolerations": [{"operator": "Exists"}],
    }
    sidecar = make.container(name="logger", env=[{"name": "PADDLE_TRAINER_ID", "value": "mine"}])
    pod = built(make.template(make.container(), sidecar, **spec))
    rest = {name: value for name, value in pod["spec"].items() if name != "containers"}
    assert rest == spec
    assert pod["spec"]["containers"][1] == sidecar


def test_training_runs_in_the_container_named_paddle_else_in_the_first() -> None:
    pod = built(make.template(make.container(name="logger"), make.container()))
    assert environment(pod, 0) == {}
    assert environment(pod, 1)["PADDLE_TRAINER_ID"] == "0"
    pod = built(make.template(make.container(name="trainer"), make.container(name="logger")))
    assert environment(pod, 0)["PADDLE_TRAINER_ID"] == "0"


def test_the_users_variables_come_after_ours_and_may_refer_to_them() -> None:
    user = [{"name": "OUT", "value": "/out/$(PADDLE_TRAINER_ID)"}, {"name": "FLAGS_v", "value": "1"}]
    pod = built(make.template(make.container(env=user)))
    assert pod["spec"]["containers"][0]["env"][-2:] == user


@pytest.mark.parametrize("name", sorted(OURS))
def test_a_user_cannot_change_who_a_process_is(name: str) -> None:
    pod_template = make.template(make.container(env=[{"name": name, "value": "mine"}]))
    assert environment(built(pod_template)).get(name) != "mine"
    assert dropped_variables_of(make.paddlejob(pod=pod_template)) == [name]


def test_the_users_backend_and_flags_win() -> None:
    user = [{"name": "PADDLE_DISTRI_BACKEND", "value": "nccl"}]
    pod_template = make.template(make.container(env=user))
    assert environment(built(pod_template))["PADDLE_DISTRI_BACKEND"] == "nccl"
    assert dropped_variables_of(make.paddlejob(pod=pod_template)) == []


@pytest.mark.parametrize(
    ("resources", "backend"),
    [
        ({}, "gloo"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "gloo"),
        ({"limits": {"nvidia.com/gpu": 1}}, None),
        ({"limits": {"nvidia.com/gpu": 0}}, "gloo"),
        ({"requests": {"huawei.com/Ascend910": 8}}, None),
        ({"limits": {"hugepages-2Mi": "1Gi", "ephemeral-storage": "1Gi"}}, "gloo"),
        (None, "gloo"),
    ],
    ids=str,
)
def test_gloo_is_asked_for_only_without_an_accelerator(
    resources: Manifest | None, backend: str | None
) -> None:
    pod = built(make.template(make.container(resources=resources)))
    assert environment(pod).get("PADDLE_DISTRI_BACKEND") == backend


def test_our_config_map_is_the_last_source_so_that_it_wins() -> None:
    source = {"configMapRef": {"name": "mine"}}
    pod = built(make.template(make.container(envFrom=[source])))
    assert pod["spec"]["containers"][0]["envFrom"] == [source, {"configMapRef": {"name": "resnet"}}]


def test_metadata_of_a_template_is_filtered() -> None:
    metadata = {
        "name": "mine",
        "namespace": "other",
        "finalizers": ["example.com/never"],
        "labels": {"paddle-research": "x", "paddlepaddle.org/index": "7", "paddle-res-name": "x"},
        "annotations": {"note": "kept", "paddlepaddle.org/nudge": "9"},
    }
    made = built(make.template(metadata=metadata))["metadata"]
    assert (made["name"], made["namespace"]) == ("resnet-worker-0", "team")
    assert "finalizers" not in made
    assert made["labels"]["paddle-research"] == "x"
    assert made["labels"]["paddlepaddle.org/index"] == "0"
    assert made["labels"]["paddle-res-name"] == "resnet-worker-0"
    assert made["annotations"] == {"note": "kept", "paddle-resource": "worker"}


def test_two_pods_share_nothing_that_one_could_change() -> None:
    job = make.paddlejob()
    first, second = build_pod(job, Slot(Role.WORKER, 0)), build_pod(job, Slot(Role.WORKER, 1))
    first["spec"]["containers"][0]["env"].clear()
    assert second["spec"]["containers"][0]["env"]


def test_restart_policy_is_never_unless_the_user_says_otherwise() -> None:
    assert built()["spec"]["restartPolicy"] == "Never"
