"""The admission policy knows every field of a pod: each is ordinary, or is left to those who have a right."""

import ast
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddle_operator.api.crd import paddle_job_crd, paddle_job_schema, pod_template_schema
from paddle_operator.api.paddlejob import Intranet, Role

POLICY, BINDING = yaml.safe_load_all(
    (Path(__file__).parents[2] / "deploy" / "v1" / "admission-policy.yaml").read_text(encoding="utf-8")
)
VARIABLES = {one["name"]: one["expression"] for one in POLICY["spec"]["variables"]}
POD = pod_template_schema()["properties"]["spec"]["properties"]
CONTAINER = POD["containers"]["items"]["properties"]

# What the policy leaves to those with the right: a new field of Kubernetes belongs here or into its lists.
EXTRAORDINARY = {
    "ordinaryInPods": {
        "hostIPC",
        "hostPID",
        "nodeName",
        "overhead",
        "preemptionPolicy",
        "priority",
        "priorityClassName",
    },
    "ordinaryInContainers": set[str](),
    "ordinaryInSecurityContexts": {"privileged", "procMount", "seLinuxOptions", "sysctls", "windowsOptions"},
}
FIELDS = {
    "ordinaryInPods": {*POD},
    "ordinaryInContainers": {*CONTAINER, *POD["initContainers"]["items"]["properties"]},
    "ordinaryInSecurityContexts": {
        *POD["securityContext"]["properties"],
        *CONTAINER["securityContext"]["properties"],
    },
}


def listed(name: str) -> set[str]:
    """The lists are written so that Python can read them too."""
    words: list[str] = ast.literal_eval(VARIABLES[name])
    assert len(words) == len({*words})
    return {*words}


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_is_ordinary_or_not(name: str) -> None:
    assert listed(name) | EXTRAORDINARY[name] == FIELDS[name]
    assert not listed(name) & EXTRAORDINARY[name]


def test_ordinary_volumes_are_those_of_pod_security_and_images() -> None:
    restricted = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim"}
    assert listed("ordinaryInVolumes") == {*restricted, "projected", "secret", "image", "name"}
    assert listed("ordinaryInVolumes") < {*POD["volumes"]["items"]["properties"]}


def test_the_policy_looks_into_every_role() -> None:
    properties: dict[str, Any] = paddle_job_schema()["properties"]["spec"]["properties"]
    roles = {name for name, schema in properties.items() if "template" in schema.get("properties", {})}
    assert roles == {*Role}
    texts = {name: VARIABLES[name] for name in ("pods", "annotations")}
    for role in roles:
        assert f"variables.{role}Accounts" in str(POLICY["spec"]["validations"])
        for text in texts.values():
            assert f"'{role}'" in text


def test_every_network_but_these_is_the_host_s() -> None:
    assert "in ['', 'PodIP', 'Service']" in VARIABLES["hostNetwork"]
    assert {*Intranet} - {"", "PodIP", "Service"} == {"Host", "HostNetwork"}


def test_the_policy_is_asked_about_every_way_to_write_a_spec() -> None:
    """The status is the operator's; it has no spec, and says nothing of what pods may do."""
    (rule,) = POLICY["spec"]["matchConstraints"]["resourceRules"]
    (version,) = paddle_job_crd()["spec"]["versions"]
    ways = {"paddlejobs", *(f"paddlejobs/{name}" for name in version["subresources"])}
    assert {*rule["resources"]} == ways - {"paddlejobs/status"}
    assert rule["operations"] == ["CREATE", "UPDATE"]


def test_what_does_not_fit_is_refused_everywhere() -> None:
    assert POLICY["spec"]["failurePolicy"] == "Fail"
    assert BINDING["spec"] == {"policyName": POLICY["metadata"]["name"], "validationActions": ["Deny"]}
