"""Files that are refused, by family: the field that must be named, and a word of the remedy."""

import copy
import json
from dataclasses import dataclass, replace
from typing import Any

import make

POD = "spec.worker.template.spec"
CONTAINER = f"{POD}.containers[0]"


@dataclass(frozen=True)
class BadJob:
    title: str
    text: str
    field: str
    remedy: str
    server_refuses: bool = True
    """The API server, with the CRD and strict field validation, refuses it too. It knows less of pods."""


def job_with(field: str, value: Any) -> str:
    """A good job as JSON with one field set, such as spec.worker.template.spec.containers.0.image."""
    document = copy.deepcopy(make.manifest())
    *path, last = field.split(".")
    place: Any = document
    for part in path:
        place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
    place[last] = value
    return json.dumps(document, indent=2)


def job_without(field: str) -> str:
    document = copy.deepcopy(make.manifest())
    *path, last = field.split(".")
    place: Any = document
    for part in path:
        place = place[int(part)] if isinstance(place, list) else place[part]
    del place[last]
    return json.dumps(document, indent=2)


def job_in_yaml(*, replicas: str = "2", value: str = "text", selector: str = "{}", more: str = "") -> str:
    """A good job as YAML, with words put in as they are."""
    return f"""\
apiVersion: batch.paddlepaddle.org/v1
kind: PaddleJob
metadata:
  name: resnet
spec:
  worker:
    replicas: {replicas}
    template:
      spec:
        nodeSelector: {selector}
        containers:
        - name: paddle
          image: image
          env:
          - name: WORD
            value: {value}
{more}"""


def _bad(field: str, value: Any, remedy: str, *, named: str = "", title: str = "") -> BadJob:
    written = json.dumps(value)
    short = written if len(written) < 60 else f"{written[:20]}... of {len(written)} characters"
    shown = title or f"{field} is {short}"
    return BadJob(shown, job_with(field, value), named or field, remedy)


def _only_ours(bad: BadJob) -> BadJob:
    return replace(bad, server_refuses=False)


IMAGE = f"{POD}.containers.0.image"
LIMITS = f"{POD}.containers.0.resources.limits"
VALUE = f"{CONTAINER}.env[0].value"

REPLICAS = [
    _bad("spec.worker.replicas", 0, "at least 1"),
    _bad("spec.worker.replicas", -1, "at least 1"),
    _bad("spec.worker.replicas", 10**9, "at most 6000"),
    _bad("spec.worker.replicas", 10**30, "64 bits"),
    _bad("spec.worker.replicas", 2.5, "whole number"),
    _bad("spec.worker.replicas", "2", "whole number"),
    _bad("spec.worker.replicas", "two", "whole number"),
    _bad("spec.worker.replicas", value=True, remedy="whole number"),
    _bad("spec.worker.replicas", [2], "whole number"),
    _bad("spec.ps", {"replicas": -1, "template": make.template()}, "at least 0", named="spec.ps.replicas"),
]

ROLES = [
    BadJob("no worker", job_without("spec.worker"), "spec.worker", "add it"),
    BadJob("no spec", job_without("spec"), "spec", "add it"),
    BadJob("no template", job_without("spec.worker.template"), "spec.worker.template", "add it"),
    _bad("spec", None, "add it"),
    _bad("spec", [], "object"),
    _bad("spec.worker", None, "add it"),
    _bad("spec.worker", 2, "object"),
    _bad("spec.worker.template", "pod", "object"),
    _bad("spec.trainer", {"replicas": 2}, "remove it or correct"),
    _bad("spec.workers", {"replicas": 2}, "did you mean worker?"),
    _bad("spec.pserver", {"replicas": 2}, "remove it or correct"),
    _bad("spec.ps", [], "object"),
    _bad("spec.ps", {"replicas": 1}, "add it", named="spec.ps.template"),
]

WORDS = [
    _bad("spec.cleanPodPolicy", "Sometimes", "'OnCompletion'"),
    _bad("spec.cleanPodPolicy", "never", "'Never'"),
    _bad("spec.cleanPodPolicy", 1, "quotes"),
    _bad("spec.cleanPolicy", "Sometimes", "'OnCompletion'"),
    _bad("spec.cleanPodPolcy", "Never", "did you mean cleanPodPolicy?"),
    _bad("spec.intranet", "podip", "'PodIP'"),
    _bad("spec.intranet", "Bridge", "'HostNetwork'"),
    _bad("spec.withGloo", 3, "at most 2"),
    _bad("spec.withGloo", -1, "at least 0"),
    _bad("spec.withGloo", "1", "whole number"),
    _bad("spec.elastic", 2, "at most 1"),
    _bad("spec.elastic", value=True, remedy="whole number"),
    _bad("spec.schedulingPolicy.minAvailable", 0, "at least 1"),
    _bad("spec.schedulingPolicy.queue", "q" * 254, "at most 253"),
    _bad("spec.schedulingPolicy.minResources", {"cpu": 1.5}, "quotes", named="minResources.cpu"),
    _bad("spec.sampleSetRef", {}, "add it", named="spec.sampleSetRef.name"),
    _bad("spec.sampleSetRef.name", "", "must not be empty"),
]

PODS = [
    _only_ours(_bad(f"{POD}.containers", [], "add one")),
    _only_ours(_bad(IMAGE, "", "name the image", named=f"{CONTAINER}.image")),
    _bad(f"{POD}.containers", None, "add it"),
    _bad(f"{POD}.containers", {}, "a list"),
    _bad(f"{POD}.containers", [None], "object", named=CONTAINER),
    _bad(f"{POD}.containers", ["paddle"], "object", named=CONTAINER),
    _bad(f"{POD}.containers", [{"image": "image"}], "add it", named=f"{CONTAINER}.name"),
    _bad(f"{POD}.container", [], "did you mean containers?"),
    _bad(f"{POD}.restartPolicy", "Always", "Never"),
    _bad(f"{POD}.restartPolicy", "Sometimes", "Never"),
    _bad(f"{POD}.restartPolicy", "never", "Never"),
    _bad(f"{POD}.restartPolicy", 5, "quotes"),
    _bad(f"{POD}.hostNetwork", "true", "true or false"),
    _bad(f"{POD}.terminationGracePeriodSeconds", 2**63, "64 bits"),
    _bad(f"{POD}.ephemeralContainers", [], "remove it or correct"),
    _bad(f"{POD}.nodeSelector", {"gpu": True}, "quotes", named=f"{POD}.nodeSelector.gpu"),
    _bad(f"{POD}.nodeSelector", {"a.b/c": 1}, "quotes", named=f"{POD}.nodeSelector[a.b/c]"),
    _bad(f"{POD}.containers.0.command", "python", "a list", named=f"{CONTAINER}.command"),
    _bad(f"{POD}.containers.0.args", ["-n", 2], "quotes", named=f"{CONTAINER}.args[1]"),
    _bad(f"{POD}.containers.0.env", {"A": "b"}, "a list", named=f"{CONTAINER}.env"),
    _bad(f"{POD}.containers.0.env", [{"name": "A", "value": 1}], "quotes", named=VALUE),
    _bad(f"{POD}.containers.0.env", [{"value": "1"}], "add it", named=f"{CONTAINER}.env[0].name"),
    _bad(f"{POD}.containers.0.imagePullPolice", "Always", "imagePullPolicy?", named=f"{CONTAINER}."),
    _bad(f"{POD}.containers.0.ports", [{"containerPort": "http"}], "whole", named="ports[0].containerPort"),
    _bad(IMAGE, 3.11, "quotes", named=f"{CONTAINER}.image"),
    _bad(IMAGE, {"name": "image"}, "text", named=f"{CONTAINER}.image"),
    _bad(LIMITS, {"cpu": 0.5}, "quotes", named="limits.cpu"),
    _bad(LIMITS, {"memory": "4 GB"}, "4Gi", named="limits.memory"),
    _bad(LIMITS, {"memory": "four"}, "4Gi", named="limits.memory"),
    _bad(LIMITS, {"memory": "4Gi\n"}, "4Gi", named="limits.memory"),
    _bad(LIMITS, {"nvidia.com/gpu": True}, "quotes", named="limits[nvidia.com/gpu]"),
    _bad("spec.worker.template.metadata", {"labels": {"a": 1}}, "quotes", named="metadata.labels.a"),
    _bad("spec.worker.template.metadata", {"creationTimestamp": "noon"}, "for example", named="Timestamp"),
    _bad("spec.worker.template.kind", "Pod", "remove it"),
]

NAMES = [
    BadJob("no metadata", job_without("metadata"), "metadata", "add it"),
    BadJob("no name", job_without("metadata.name"), "metadata.name", "add it"),
    _bad("metadata", "resnet", "object"),
    _bad("metadata.name", None, "add it"),
    _bad("metadata.name", "", "lower-case"),
    _bad("metadata.name", 2026, "quotes"),
    _bad("metadata.name", "ResNet", "lower-case"),
    _bad("metadata.name", "res_net", "lower-case"),
    _bad("metadata.name", "-resnet", "lower-case"),
    _bad("metadata.name", "resnet\n", "lower-case"),
    _bad("metadata.name", "r" * 254, "shorten it by 200"),
    _only_ours(_bad("metadata.name", "res.net", "dashes")),
    _only_ours(_bad("metadata.name", "r" * 55, "shorten it by 1")),
    _only_ours(_bad("metadata.name", "r" * 63, "shorten it by 9")),
    _bad("metadata.namespace", 7, "quotes"),
    _bad("metadata.namespace", "My Team", "lower-case"),
    _bad("metadata.labels", {"a": 1}, "quotes", named="metadata.labels.a"),
    _bad("metadata.labels", {"a": "two words"}, "letters, digits", named="metadata.labels[a]"),
    _bad("metadata.labels", {"a": "v" * 64}, "at most 63", named="metadata.labels[a]"),
    _bad("metadata.labels", {"two words": "a"}, "letters, digits"),
    _bad("metadata.labels", {"/a": "b"}, "letters, digits"),
    _bad("metadata.annotations", [], "object"),
    _bad("metadata.label", {"a": "b"}, "did you mean labels?"),
    _bad("metadata.creationTimestamp", "yesterday", "for example"),
    _bad("metadata.ownerReferences", [{"kind": "Pod"}], "add it", named="metadata.ownerReferences[0].uid"),
    _bad("status2", {}, "did you mean status?"),
]

KINDS = [
    BadJob("no kind", job_without("kind"), "kind", "PaddleJob"),
    BadJob("no apiVersion", job_without("apiVersion"), "apiVersion", "batch.paddlepaddle.org/v1"),
    _bad("kind", "PaddleJobs", "use PaddleJob"),
    _bad("kind", ["PaddleJob"], "PaddleJob"),
    _bad("apiVersion", 1, "batch.paddlepaddle.org/v1"),
    _bad("apiVersion", "v1", "use batch.paddlepaddle.org/v1"),
    _bad("apiVersion", "batch.paddlepaddle.org/v2", "use batch.paddlepaddle.org/v1"),
    _bad("apiVersion", "paddlepaddle.org/v1", "use batch.paddlepaddle.org/v1", title="the one of 2018"),
]

_TEN_TIMES = "".join(f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip(
    "abcdefghi", "bcdefghij", strict=True))  # fmt: skip

TEXTS = [
    BadJob("empty file", "", "file", "PaddleJob"),
    BadJob("only comments", "# nothing\n---\n# here\n", "file", "PaddleJob"),
    BadJob("only other kinds", "apiVersion: v1\nkind: Pod\n", "file", "PaddleJob", server_refuses=False),
    BadJob("a word", "PaddleJob", "document", "object"),
    BadJob("a number", "42", "document", "object"),
    BadJob("a date", "2026-11-18", "document", "object"),
    BadJob("a list of jobs", f"[{job_with('kind', 'PaddleJob')}]", "document", "object"),
    BadJob("an open bracket", '{"apiVersion": ', "line 1", "expected"),
    BadJob("a tab", job_in_yaml(more="\tps: {}\n"), "line 17", "spaces"),
    BadJob("a NUL", job_in_yaml(value="a\0b"), "file", "not allowed"),
    BadJob("an escape character", job_in_yaml(value="\x1b[2J"), "file", "not allowed"),
    BadJob("half a character", job_in_yaml(value='"\\ud800"'), "line 16", "remove it"),
    BadJob("bad indentation", job_in_yaml(more="   ps: {}\n"), "line 17", "expected"),
    BadJob("an unknown alias", job_in_yaml(value="*word"), "line 16", "undefined alias"),
    BadJob("a name given twice", job_in_yaml(more="  cleanPodPolicy: Never\n" * 2), "line 18", "keep one"),
    BadJob("a name given twice inside", job_in_yaml(selector="{a: b, a: c}"), "line 10", "keep one"),
    BadJob("a list as a name", job_in_yaml(selector="{[a]: b}"), "line 10", "quotes"),
    BadJob("null as a name", job_in_yaml(selector="{~: b}"), "line 10", "quotes"),
    BadJob("infinity", job_in_yaml(value=".inf"), "line 16", "quotes"),
    BadJob("not a number", job_in_yaml(value=".NaN"), "line 16", "quotes"),
    _only_ours(
        BadJob("a Python object", job_in_yaml(value="!!python/object:os.system x"), "line 16", "correct it")
    ),
    BadJob("a number that is none", job_in_yaml(value="!!int many"), "line 16", "correct it"),
    BadJob("a merge of text", job_in_yaml(selector="{<<: text}"), "line 10", "alias"),
    BadJob("5,000 digits", job_in_yaml(replicas="9" * 5000), "line 7", "too large"),
    BadJob("a list that contains itself", job_in_yaml(selector="&a [*a]"), "line 10", "write it out"),
    BadJob("metadata that contains itself", "metadata: &a {b: *a}", "line 1", "write it out"),
    BadJob("a bomb of lists", f"a: &a [lol, lol]\n{_TEN_TIMES}", "line 1", "shorten"),
    BadJob("a bomb of text", f"a: &a {'x' * 100_000}\nb: [{'*a, ' * 100}]", "line 1", "shorten"),
    BadJob("1,000 brackets", "[" * 1_000, "file", "bracket"),
    BadJob("1,000 dashes", "- " * 1_000, "file", "bracket"),
]

# Words that are no text to kubectl: each has to be in quotes.
SCALARS = [
    BadJob(f"the word {word}", job_in_yaml(value=word), VALUE, "quotes")
    for word in ("1", "-1", "+12", "1.5", ".5", "5.", "1e3", "1E+5", "1_000", "017", "08", "0o17", "0x1F",
                 "0b11", "yes", "No", "ON", "off", "y", "N", "true", "False",
                 "123456789012345678901234567890")
]  # fmt: skip

BAD_JOBS = [*REPLICAS, *ROLES, *WORDS, *PODS, *NAMES, *KINDS, *TEXTS, *SCALARS]

GOOD_JOBS = {
    "as JSON": job_with("kind", "PaddleJob"),
    "as YAML": job_in_yaml(),
    "2.0 is a whole number": job_in_yaml(replicas="2.0"),
    "1e0 is a whole number": job_in_yaml(replicas="1e0"),
    "octal digits": job_in_yaml(replicas="017"),
    "null counts as left out": job_in_yaml(replicas="null", value="~", selector="", more="  ps: null\n"),
    "null for a word": job_in_yaml(more="  cleanPodPolicy:\n"),
    "null in a map": job_in_yaml(selector="{a: null}"),
    "an empty word": job_in_yaml(more='  cleanPodPolicy: ""\n  intranet: ""\n'),
    "numbers as names": job_in_yaml(selector="{1: a, true: b, 1.5: c}"),
    "an alias": job_in_yaml(value="&word text", more="          - {name: B, value: *word}\n"),
    "empty words of a pod": job_with(f"{POD}.restartPolicy", ""),
    "a quantity without unit": job_with(LIMITS, {"cpu": 1}),
    "quantities": job_with(LIMITS, {"cpu": "0.5", "memory": "1e3", "nvidia.com/gpu": "1", "x": "-1Ki"}),
    "the status of somebody": job_with("status", {"phase": "Completed", "attempt": "seven"}),
    "what kubectl get adds": job_with("metadata", {
        "name": "resnet", "uid": "a", "resourceVersion": "5", "generation": 1, "selfLink": "/a",
        "creationTimestamp": "2026-11-18T12:00:00Z", "finalizers": ["paddlepaddle.org/a"],
        "managedFields": [{"manager": "kubectl", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}}}],
    }),
    "what Go programs print": job_with("spec.worker.template.metadata", {"creationTimestamp": None}),
    "an emoji in two halves": job_with(f"{POD}.containers.0.args", ["\N{PARTY POPPER}", "飞桨"]),
    "labels": job_with("metadata.labels", {"a.b/c": "V_1.x-y", "d": ""}),
    "2,000 variables": job_with(
        f"{POD}.containers.0.env", [{"name": f"V{number}", "value": ""} for number in range(2_000)]
    ),
    **{f"the text {word}": job_in_yaml(value=word)
       for word in ("2026-11-18", "2026-13-45", "2001-12-14 21:59:43.10 -5", "1:30", "=", "0x_", "1e", "0xAG",
                    "1.2.3", "yEs", "nULL", '"\\0"', "!!str 12", "飞桨")},
}  # fmt: skip
