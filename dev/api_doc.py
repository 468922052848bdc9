"""Prints docs/en/api_doc.md: every field of a PaddleJob, by the schema that the server checks.

    python dev/api_doc.py > docs/en/api_doc.md

`make generate` does this. Descriptions and bounds stand with the types (src/paddle_operator/api); what a job
is taken for that leaves a field out, and what is not served yet, is asked of the code that decides it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from paddle_operator.api.crd import Schema, paddle_job_crd
from paddle_operator.api.paddlejob import Mode, PaddleJob, Phase, Role
from paddle_operator.api.validate import not_served
from paddle_operator.paddlejob.endpoints import Endpoint
from paddle_operator.paddlejob.ends import table
from paddle_operator.paddlejob.environment import shared_variables
from paddle_operator.paddlejob.limits import backoff_limit, max_disruptions

POD_TEMPLATE = (
    "https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-template-v1/#PodTemplateSpec"
)
SPEC_COLUMNS = ("field", "type", "default", "allowed", "meaning")
STATUS_COLUMNS = ("field", "type", "values", "meaning")
RULES = "x-kubernetes-validations"
# What the operator writes, where the schema leaves room for the words of other versions.
WRITTEN = {
    "status.phase": tuple(Phase),
    "status.mode": tuple(Mode),
    "status.failure.class": table().blame,
}

INTRODUCTION = """\
# The PaddleJob API

<!-- Written by `make generate` from src/paddle_operator/api and dev/api_doc.py: do not edit it here. -->

Every field, what it may be, and what it means. This page is generated from the types of the operator, as is
the CustomResourceDefinition, from which `kubectl explain pdj.spec` tells the same. How the fields work
together is told in [paddlejob.md](paddlejob.md).

"""

COLUMNS = """
Columns of `kubectl get pdj`, and those that `-o wide` adds:

"""

METADATA = """
## metadata

As of any object of Kubernetes. The name becomes part of the names of the pods.
"""

TEMPLATE = f"""
### Pod templates

The `template` of a role is a pod template of Kubernetes, with all of its fields:
[PodTemplateSpec]({POD_TEMPLATE}).

The server checks it when the job is applied, and asks for a little more than of a pod: there is at least one
container, each has an image, and names of containers and of volumes are DNS labels that occur once.
"""

STATUS = """
## status

The operator writes it; nobody else should. Numbers that are 0, and texts and lists that are empty, are left
out.
"""


@dataclass(frozen=True)
class Section:
    """Fields of one object, or of several that are alike."""

    paths: tuple[str, ...]
    schema: Schema

    @property
    def fields(self) -> dict[str, Schema]:
        found: dict[str, Schema] = self.schema["properties"]
        return found


def page() -> str:
    crd = paddle_job_crd()["spec"]
    (version,) = crd["versions"]
    kind = version["schema"]["openAPIV3Schema"]
    spec, status = (sections((name,), kind["properties"][name]) for name in ("spec", "status"))
    parts = (
        INTRODUCTION,
        _table(("of the kind", ""), _facts(crd, version)),
        COLUMNS,
        _table(("column", "shows", "with"), map(_column_row, version["additionalPrinterColumns"])),
        METADATA + _rules(kind),
        "\n## spec\n",
        *map(_spec_section, spec),
        TEMPLATE,
        STATUS,
        *map(_status_section, status),
    )
    return "".join(parts)


def sections(paths: tuple[str, ...], schema: Schema) -> Iterator[Section]:
    """The object itself, then those in it, depth first; siblings that are alike are one section."""
    yield Section(paths, schema)
    alike: dict[str, tuple[list[str], Schema]] = {}
    for name, field in schema["properties"].items():
        inner = _object_in(field)
        if inner is not None and name != "template":
            names, _ = alike.setdefault(str(inner["properties"]), ([], inner))
            names.append(f"{name}[]" if "items" in field else name)
    for names, inner in alike.values():
        yield from sections(tuple(f"{path}.{name}" for path in paths for name in names), inner)


def _object_in(field: Schema) -> Schema | None:
    inner = field.get("items", field)
    return inner if "properties" in inner else None


def _facts(crd: Schema, version: Schema) -> Iterator[tuple[str, str]]:
    names, scale = crd["names"], version["subresources"]["scale"]
    yield "apiVersion", f"`{crd['group']}/{version['name']}`"
    yield "kind", f"`{names['kind']}`"
    yield "names for kubectl", _listed([names["plural"], names["singular"], *names["shortNames"]])
    yield "scope", crd["scope"].lower()
    yield "sub-resource `status`", "written apart from the spec, by the operator"
    replicas = f"`{scale['specReplicasPath']}`, seen in `{scale['statusReplicasPath']}`"
    yield "sub-resource `scale`", f"`kubectl scale` sets {replicas}"


def _column_row(column: Schema) -> tuple[str, ...]:
    wide = "`-o wide`" if column.get("priority") else "always"
    return column["name"], f"`{column['jsonPath']}`", wide


def _spec_section(section: Section) -> str:
    required = section.schema.get("required", ())
    rows = (
        (
            f"`{name}`",
            _type(name, field),
            _default(section.paths[0], name, field, required),
            _allowed(field),
            _meaning(f"{section.paths[0]}.{name}", field),
        )
        for name, field in section.fields.items()
    )
    text = f"\n{_table(SPEC_COLUMNS, rows)}{_rules(section.schema)}"
    return text if section.paths == ("spec",) else f"\n### {_listed(section.paths)}\n{text}"


def _status_section(section: Section) -> str:
    path = section.paths[0]
    rows = (
        (f"`{name}`", _type(name, field), _written(f"{path}.{name}", field), _escaped(field["description"]))
        for name, field in section.fields.items()
    )
    text = f"\n{_table(STATUS_COLUMNS, rows)}"
    return text if section.paths == ("status",) else f"\n### {_listed(section.paths)}\n{text}"


def _type(name: str, field: Schema) -> str:
    if name == "template":
        return f"[PodTemplateSpec]({POD_TEMPLATE})"
    if field.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if "items" in field:
        return f"list of {_type('', field['items'])}s"
    if "additionalProperties" in field:
        return f"map to {_type('', field['additionalProperties'])}"
    return "time (RFC 3339)" if field.get("format") == "date-time" else str(field["type"])


def _default(path: str, name: str, field: Schema, required: Iterable[str]) -> str:
    if name in required:
        return "required"
    value = field.get("default", defaults().get(f"{path}.{name}"))
    return "" if value is None else _listed([str(value).lower() if value is False else str(value)])


def _allowed(field: Schema) -> str:
    if "enum" in field:
        return _listed(word or '""' for word in field["enum"])
    if "minimum" in field:
        return (
            f"{field['minimum']} to {field['maximum']}" if "maximum" in field else f"from {field['minimum']}"
        )
    if "maxLength" in field:
        least = f"{field['minLength']} to" if "minLength" in field else "at most"
        return f"{least} {field['maxLength']} characters"
    return _listed(["true", "false"]) if field["type"] == "boolean" else ""


def _written(path: str, field: Schema) -> str:
    return _listed(WRITTEN[path]) if path in WRITTEN else _allowed(field)


def _meaning(path: str, field: Schema) -> str:
    return _escaped(field["description"]) + (" **Not served by this version.**" if path in unserved() else "")


def _escaped(text: str) -> str:
    """Plain words, for Markdown: no column ends in them, and no tag of HTML begins."""
    return text.replace("|", "\\|").replace("<", "&lt;")


def _rules(schema: Schema) -> str:
    """What no keyword of a schema can say, in the words of the refusal."""
    told = (f"- {_refused_field(rule)}{_escaped(rule['message'])}.\n" for rule in schema.get(RULES, ()))
    return "".join(["\nAlso refused, with these words:\n\n", *told]) if RULES in schema else ""


def _refused_field(rule: dict[str, str]) -> str:
    """None, where the message itself begins with it."""
    return f"`{rule['fieldPath'].removeprefix('.')}`: " if "fieldPath" in rule else ""


def defaults() -> dict[str, Any]:
    """What a job is taken for that leaves these out."""
    job = _job({"worker": _role(), "ps": _role()})
    peers = {role: [Endpoint("peer", 1)] for role in Role}
    return {
        "spec.cleanPodPolicy": job.spec.effective_clean_pod_policy,
        "spec.intranet": job.spec.effective_intranet,
        "spec.withGloo": int(shared_variables(job, peers)["PADDLE_WITH_GLOO"]),
        "spec.runPolicy.backoffLimit": backoff_limit(job),
        "spec.runPolicy.maxDisruptions": max_disruptions(job),
        "spec.runPolicy.suspend": job.run_policy.suspend,
    }


def unserved() -> set[str]:
    """Fields that this version refuses with a condition, asked with a job that has all of them."""
    everything = {"heter": _role(), "elastic": 1, "schedulingPolicy": {}, "sampleSetRef": {"name": "data"}}
    return {problem.field for problem in not_served(_job({"worker": _role(), **everything}))}


def _job(spec: dict[str, Any]) -> PaddleJob:
    return msgspec.convert({"metadata": {"name": "job"}, "spec": spec}, PaddleJob)


def _role() -> dict[str, Any]:
    return {"template": msgspec.Raw(b'{"spec": {}}')}


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [columns, ("---",) * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    print(page(), end="")


if __name__ == "__main__":
    main()
