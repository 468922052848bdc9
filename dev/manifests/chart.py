"""The generated files of the Helm chart: the objects of deploy/v1, with holes for its values.

A hole is the value of a field, or an item of a list: `@value EXPRESSION` is written in its place, `@block
EXPRESSION` below it as YAML, and `@with EXPRESSION` likewise, but the field is left out if there is nothing.
"""

import re
from collections.abc import Iterable

from dev.manifests.objects import account, deployment, lease_rights, manager_rights, pod
from dev.manifests.text import write
from paddle_operator.api.crd import paddle_job_crd
from paddle_operator.api.documents import write_documents
from paddle_operator.api.meta import Manifest

HOME = "https://github.com/PaddleFlow/paddle-operator"
OWN_NAMESPACE = "@value .Release.Namespace | quote"
# Of those that are followed; a role is rendered for each of them.
FOLLOWED_NAMESPACE = "@value $namespace | quote"
ACCOUNT_NAME = '@value include "paddle-operator.account" $ | quote'
IMAGE = '@value include "paddle-operator.image" .'
NEEDED_BY_POLICY = "1.30"
WRITTEN_BY = "{{- /* Written by `make generate` from dev/manifests. */}}\n"

_HOLE = re.compile(r"(?P<indent> *)(?P<field>- |\S+: )'@(?P<kind>value|block|with) (?P<expression>.*)'")


def files(version: str, *, policy: str) -> dict[str, str]:
    """By path in the chart's folder."""
    return {
        "Chart.yaml": chart_yaml(version),
        "templates/crd.yaml": _crd(),
        "templates/admission-policy.yaml": _policy(policy),
        "templates/account.yaml": _account(),
        "templates/rights.yaml": _rights(),
        "templates/deployment.yaml": WRITTEN_BY + _template([_deployment()]),
    }


def chart_yaml(version: str) -> str:
    # The first with seccompProfile.
    return write(
        [
            {
                "apiVersion": "v2",
                "name": "paddle-operator",
                "description": "Runs PaddlePaddle training jobs (PaddleJob) on Kubernetes.",
                "type": "application",
                "version": semantic(version),
                "appVersion": version,
                "kubeVersion": ">=1.19.0-0",
                "home": HOME,
            }
        ],
        heading="Written by `make generate` from dev/manifests.",
    )


def semantic(version: str) -> str:
    """A version of Python's as Helm wants it: 0.1.0.dev0 is 0.1.0-dev.0, and 1.0rc1 is 1.0.0-rc.1."""
    parts = re.fullmatch(r"(\d+(?:\.\d+)*)(?:\.?(a|b|rc|dev)(\d+))?", version)
    if parts is None:
        raise ValueError(f"no version that Helm would understand: {version}")
    numbers = [*parts[1].split("."), "0", "0"][:3]
    return ".".join(numbers) + (f"-{parts[2]}.{parts[3]}" if parts[2] else "")


def escaped(text: str) -> str:
    """As Helm prints it unchanged."""
    return text.replace("{{", '{{ "{{" }}')


def _crd() -> str:
    crd = paddle_job_crd()
    crd["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
    return _when(".Values.crd.create", escaped(write_documents([crd]).decode()))


def _policy(text: str) -> str:
    """Without this an older server would only say that it does not know the kind."""
    complaint = f"admissionPolicy needs Kubernetes {NEEDED_BY_POLICY}, and this is %s"
    return _when(
        ".Values.admissionPolicy",
        f'{{{{- if semverCompare "<{NEEDED_BY_POLICY}.0-0" .Capabilities.KubeVersion.Version }}}}\n'
        f'{{{{- fail (printf "{complaint}" .Capabilities.KubeVersion.Version) }}}}\n'
        "{{- end }}\n"
        f"{escaped(text)}",
    )


def _account() -> str:
    one = account(OWN_NAMESPACE, ACCOUNT_NAME)
    one["metadata"]["annotations"] = "@with .Values.serviceAccount.annotations"
    return _when(".Values.serviceAccount.create", _template([one]))


def _rights() -> str:
    of_lease = lease_rights(OWN_NAMESPACE, account_name=ACCOUNT_NAME)
    of_one, of_all = (
        manager_rights(
            namespace, account_namespace="@value $.Release.Namespace | quote", account_name=ACCOUNT_NAME
        )
        for namespace in (FOLLOWED_NAMESPACE, "")
    )
    return _when(
        ".Values.rbac.create",
        '{{- $followed := include "paddle-operator.followed" . | fromJsonArray }}\n'
        f"{_template(of_lease)}"
        "{{- range $namespace := $followed }}\n"
        f"---\n{_template(of_one)}"
        "{{- else }}\n"
        f"---\n{_template(of_all)}"
        "{{- end }}\n",
    )


def _deployment() -> Manifest:
    spec = pod(IMAGE, (), account_name=ACCOUNT_NAME)
    (manager,) = spec["containers"]
    manager |= {
        "imagePullPolicy": "@value .Values.image.pullPolicy",
        "args": '@block include "paddle-operator.args" . | fromYamlArray',
        "resources": "@block .Values.resources",
    }
    spec |= {
        "imagePullSecrets": "@with .Values.image.pullSecrets",
        "priorityClassName": "@with .Values.priorityClassName",
        "nodeSelector": "@with .Values.nodeSelector",
        "tolerations": "@with .Values.tolerations",
        "affinity": "@with .Values.affinity",
    }
    whole = deployment(spec, namespace=OWN_NAMESPACE)
    whole["spec"]["replicas"] = "@value .Values.replicas"
    whole["spec"]["template"]["metadata"]["annotations"] = "@with .Values.podAnnotations"
    return whole


def _template(objects: Iterable[Manifest]) -> str:
    return "".join(f"{_filled(line)}\n" for line in write(objects).splitlines())


def _filled(line: str) -> str:
    hole = _HOLE.fullmatch(line)
    if hole is None:
        return line
    indent, field, expression = hole["indent"], hole["field"], hole["expression"].replace("''", "'")
    deeper = len(indent) + 2
    match hole["kind"]:
        case "value":
            return f"{indent}{field}{{{{ {expression} }}}}"
        case "block":
            return f"{indent}{field.strip()}\n{indent}  {{{{- {expression} | toYaml | nindent {deeper} }}}}"
    return (
        f"{indent}{{{{- with {expression} }}}}\n"
        f"{indent}{field.strip()}\n{indent}  {{{{- toYaml . | nindent {deeper} }}}}\n"
        f"{indent}{{{{- end }}}}"
    )


def _when(condition: str, text: str) -> str:
    return f"{WRITTEN_BY}{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n"
