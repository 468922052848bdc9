"""Prints the shapes of the kinds that deploy/v1beta1 uses, as a release of Kubernetes published them.

    python -m dev.manifests.published SWAGGER > tests/manifests/kubernetes-1.11.json

SWAGGER is api/openapi-spec/swagger.json of that release, part of the Go module k8s.io/kubernetes v1.11.10.
Descriptions are left out, and so is what none of the kinds needs.
"""

import json
import sys
from pathlib import Path
from typing import Any

Definitions = dict[str, Any]

CRD = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1beta1."
ROOTS = (
    f"{CRD}CustomResourceDefinition",
    "io.k8s.api.apps.v1.Deployment",
    "io.k8s.api.core.v1.Namespace",
    "io.k8s.api.core.v1.ServiceAccount",
    "io.k8s.api.rbac.v1.Role",
    "io.k8s.api.rbac.v1.RoleBinding",
)
# Published without any shape; of the ways to write them we use only this one.
SHAPELESS = {f"{CRD}JSONSchemaPropsOr{other}": f"{CRD}JSONSchemaProps" for other in ("Array", "Bool")}
KEPT = ("type", "format", "required", "properties", "items", "additionalProperties")


def shapes(swagger: dict[str, Any]) -> Definitions:
    """The kinds by name, such as apps.v1.Deployment, and all that they are made of."""
    known, wanted, found = swagger["definitions"], [*ROOTS], Definitions()
    while wanted:
        name = wanted.pop()
        if short(name) not in found:
            found[short(name)] = _trimmed(known[name], wanted)
    return dict(sorted(found.items()))


def short(name: str) -> str:
    return ".".join(name.split(".")[-3:])


def _trimmed(schema: Any, wanted: list[str]) -> Any:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        wanted.append(SHAPELESS.get(name, name))
        return {"$ref": short(wanted[-1])}
    trimmed = {keyword: schema[keyword] for keyword in KEPT if keyword in schema}
    for keyword in ("items", "additionalProperties"):
        if keyword in trimmed:
            trimmed[keyword] = _trimmed(trimmed[keyword], wanted)
    if "properties" in trimmed:
        trimmed["properties"] = {
            name: _trimmed(inner, wanted) for name, inner in trimmed["properties"].items()
        }
    return trimmed


def main() -> None:
    swagger = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    # A line a shape.
    lines = [f"{json.dumps(name)}: {json.dumps(shape)}" for name, shape in shapes(swagger).items()]
    print("{\n" + ",\n".join(lines) + "\n}")


if __name__ == "__main__":
    main()
