"""Prints src/paddle_operator/api/pod_template.json: the schema of a pod template, for the CRD.

    kubectl get --raw /openapi/v3/api/v1 | python dev/pod_template.py

The published schema is inlined (a CRD knows no references) and stripped of what a CRD may not have or users
would pay for: descriptions, defaults, merge keys. `make generate` does this against the testbed's server.
"""

import json
import sys
from typing import Any

Schema = dict[str, Any]

INT_OR_STRING: Schema = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
_NUMBER = r"(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
QUANTITY_PATTERN = rf"^{_NUMBER}(([KMGTPE]i)|[numkMGTPE]|([eE]{_NUMBER}))?$"
STRINGS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
# What a template's metadata may hold; the server would otherwise drop labels and annotations in silence.
# Names, owners and finalizers of pods are the operator's: those of a template are refused, not ignored.
# creationTimestamp is there because Go programs print it as null; with a format, servers take a list too.
EMBEDDED_METADATA: Schema = {
    "type": "object",
    "properties": {
        "annotations": STRINGS,
        "creationTimestamp": {"type": "string", "nullable": True},
        "labels": STRINGS,
    },
}
SPECIAL: dict[str, Schema] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {**INT_OR_STRING, "pattern": QUANTITY_PATTERN},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": INT_OR_STRING,
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": EMBEDDED_METADATA,
}
# No enums: a pod may have imagePullPolicy "", and newer servers know more words. The pod is checked.
KEPT = ("type", "format", "required", "nullable")
# A pod that is being created may not have these: they are added to live pods.
LEFT_OUT = {"io.k8s.api.core.v1.PodSpec": {"ephemeralContainers"}}


def inline(schema: Schema, schemas: dict[str, Schema], name: str = "") -> Schema:
    """The schema with every reference replaced by what it names."""
    reference = schema.get("$ref") or next((part.get("$ref") for part in schema.get("allOf", ())), None)
    if reference:
        name = reference.rpartition("/")[2]
        return SPECIAL.get(name) or inline(schemas[name], schemas, name)
    result = {key: schema[key] for key in KEPT if key in schema}
    if properties := schema.get("properties"):
        kept = {key: value for key, value in properties.items() if key not in LEFT_OUT.get(name, ())}
        result["properties"] = {key: inline(value, schemas) for key, value in kept.items()}
    for key in ("items", "additionalProperties"):
        if key in schema:
            result[key] = inline(schema[key], schemas)
    return result


def pod_template_schema(openapi: Schema) -> Schema:
    schemas = openapi["components"]["schemas"]
    template = inline({"$ref": "#/components/schemas/io.k8s.api.core.v1.PodTemplateSpec"}, schemas)
    return {**template, "required": ["spec"]}


def main() -> None:
    json.dump(pod_template_schema(json.load(sys.stdin)), sys.stdout, sort_keys=True, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
