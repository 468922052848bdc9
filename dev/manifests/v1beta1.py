"""The same for Kubernetes 1.11 to 1.15, where kubectl refuses fields that the server does not know.

1.11 is the first that keeps the status of a custom kind apart, on which the operator relies. Nothing newer is
used here: no rule in CEL, no default, no nullable. What the schema cannot say, the operator says itself, as a
condition of the job.
"""

from typing import Any

from dev.manifests.objects import deployment, pod
from dev.manifests.text import COMMENT
from paddle_operator.api.crd import Schema, paddle_job_crd
from paddle_operator.api.meta import Manifest

SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
LEFT_OUT = {"default", "nullable"}


def crd() -> Manifest:
    modern = paddle_job_crd()
    spec = modern["spec"]
    (version,) = spec["versions"]
    columns = [
        {("JSONPath" if field == "jsonPath" else field): value for field, value in column.items()}
        for column in version["additionalPrinterColumns"]
    ]
    schema = version["schema"]["openAPIV3Schema"]
    return {
        "apiVersion": "apiextensions.k8s.io/v1beta1",
        "kind": modern["kind"],
        "metadata": modern["metadata"],
        "spec": {
            **{field: value for field, value in spec.items() if field != "versions"},
            "version": version["name"],
            "versions": [{field: version[field] for field in ("name", "served", "storage")}],
            "subresources": version["subresources"],
            "additionalPrinterColumns": columns,
            "validation": {"openAPIV3Schema": plain(schema)},
        },
    }


def plain(schema: Schema) -> Schema:
    """The schema with the keywords of 1.11 only. It may then say less, never more."""
    if schema.get("nullable"):
        # A type would refuse null.
        return {}
    return {
        keyword: _plain(keyword, value)
        for keyword, value in schema.items()
        if keyword not in LEFT_OUT and not keyword.startswith("x-kubernetes-")
    }


def _plain(keyword: str, value: Any) -> Any:
    match keyword:
        case "properties":
            return {name: plain(inner) for name, inner in value.items()}
        case "items" | "additionalProperties":
            return plain(value)
    return value


def old_deployment(image: str, args: list[str]) -> Manifest:
    """One at a time, without a lease: as the operator asks for them, 1.14 is the first to serve them."""
    spec = pod(image, args)
    # Kubernetes has these since 1.19 and 1.16.
    del spec["securityContext"]["seccompProfile"], spec["topologySpreadConstraints"]
    whole = deployment(spec)
    template = whole["spec"]["template"]
    template["metadata"]["annotations"] = {SECCOMP: "runtime/default"}
    whole["spec"] = {
        "replicas": 1,
        "strategy": {COMMENT: "The old one is gone before the new one starts.", "type": "Recreate"},
        "selector": whole["spec"]["selector"],
        "template": template,
    }
    return whole
