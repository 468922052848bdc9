"""From the structs to the CustomResourceDefinition: one walk, so that types and schema cannot drift apart."""

import functools
import importlib.resources
import json
from typing import Any

from msgspec import inspect

from .crd_rules import OF_A_JOB, OF_A_ROLE, OF_A_SPEC, ROLES, tighten
from .names import GROUP
from .paddlejob import PaddleJobSpec, PaddleJobStatus
from .resources import PADDLE_JOBS

Schema = dict[str, Any]

COLUMNS = (
    {"name": "Status", "type": "string", "jsonPath": ".status.phase"},
    {"name": "Mode", "type": "string", "jsonPath": ".status.mode"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    # With -o wide.
    {"name": "Restarts", "type": "integer", "jsonPath": ".status.restarts", "priority": 1},
    {"name": "Failure", "type": "string", "jsonPath": ".status.failure.class", "priority": 1},
)


# `kubectl scale`. The number of workers changes only while a job is suspended.
SCALE = {
    "specReplicasPath": ".spec.worker.replicas",
    "statusReplicasPath": ".status.worker.replicas",
}


@functools.cache
def pod_template_schema() -> Schema:
    """The published schema of a pod template, inlined (by dev/pod_template.py), and a few rules more."""
    text = importlib.resources.files(__package__).joinpath("pod_template.json").read_text()
    schema: Schema = json.loads(text)
    tighten(schema)
    return schema


def schema_of(node: inspect.Type) -> Schema:
    """The structural schema of one type."""
    match node:
        case inspect.Metadata(type=inner, extra_json_schema=extra):
            return {**schema_of(inner), **(extra or {})}
        case inspect.RawType():
            return pod_template_schema()
        case inspect.StructType(fields=fields):
            return _object_schema(fields)
        case inspect.UnionType(types=types):
            return _union_schema([one for one in types if not isinstance(one, inspect.NoneType)])
        case inspect.EnumType(cls=cls):
            return {"type": "string", "enum": [member.value for member in cls]}
        case inspect.VarTupleType(item_type=item):
            return {"type": "array", "items": schema_of(item)}
        case inspect.DictType(value_type=value):
            return {"type": "object", "additionalProperties": schema_of(value)}
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.IntType(ge=low, le=high):
            bounds = {"minimum": low, "maximum": high}
            return {"type": "integer", **{name: value for name, value in bounds.items() if value is not None}}
        case inspect.StrType(min_length=low, max_length=high):
            bounds = {"minLength": low, "maxLength": high}
            return {"type": "string", **{name: value for name, value in bounds.items() if value is not None}}
        case inspect.DateTimeType():
            return {"type": "string", "format": "date-time"}
    raise TypeError(f"no structural schema for {node}")


def _object_schema(fields: tuple[inspect.Field, ...]) -> Schema:
    schema: Schema = {
        "type": "object",
        "properties": {field.encode_name: schema_of(field.type) for field in fields},
    }
    if required := [field.encode_name for field in fields if field.required]:
        schema["required"] = required
    return schema


def _union_schema(types: list[inspect.Type]) -> Schema:
    if len(types) == 1:
        return schema_of(types[0])
    return {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}


@functools.cache
def paddle_job_schema() -> Schema:
    spec = schema_of(inspect.type_info(PaddleJobSpec))
    status = schema_of(inspect.type_info(PaddleJobStatus))
    for role in ROLES:
        properties = spec["properties"][role]["properties"]
        # One worker at least; the struct shares its bounds with the roles that may be empty.
        least = {"minimum": 1} if role == "worker" else {}
        properties["replicas"] = {**properties["replicas"], **least, "default": 1}
        spec["properties"][role]["x-kubernetes-validations"] = OF_A_ROLE
    status["properties"]["conditions"] |= {
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    }
    return {
        "type": "object",
        "description": "One training job of PaddlePaddle.",
        "required": ["spec"],
        "x-kubernetes-validations": OF_A_JOB,
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            # The bound is the server's own; a rule about a text without one counts as too dear.
            "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 253}}},
            "spec": {
                **spec,
                "description": "What to train, and with how many pods.",
                "x-kubernetes-validations": OF_A_SPEC,
            },
            "status": {**status, "description": "How far it is. Written by the operator."},
        },
    }


def paddle_job_crd() -> Schema:
    resource = PADDLE_JOBS
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                "plural": resource.plural,
                "singular": resource.kind.lower(),
                "shortNames": ["pdj"],
            },
            "versions": [
                {
                    "name": resource.version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}, "scale": SCALE},
                    "additionalPrinterColumns": list(COLUMNS),
                    "schema": {"openAPIV3Schema": paddle_job_schema()},
                }
            ],
        },
    }
