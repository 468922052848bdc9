"""The corpus: jobs that are odd or bad, each with the verdict that it must get.

A file in tests/corpus says in its first lines who refuses it: the API server when it is applied (`run` and
`render` say the same), the operator alone (the server stores it; `run` and `render` refuse it, and on a
cluster a condition names the field), or nobody. The line of the field that must be named ends in `# here`.
What no file should hold, because of its size or its bytes, is made below.
"""

import copy
import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import make

FOLDER = Path(__file__).parent / "corpus"
HERE = "# here"
POD = "spec.worker.template.spec"
CONTAINER = f"{POD}.containers[0]"


class Verdict(StrEnum):
    SERVER = "server"
    OPERATOR = "operator"
    NOBODY = "nobody"


@dataclass(frozen=True)
class Case:
    title: str
    text: str
    verdict: Verdict
    field: str = ""
    """As the message names it; `line` and `file` are for what is no YAML."""
    remedy: str = ""

    @property
    def line(self) -> int:
        """The one that must be named, from 1; 0 if any will do."""
        marked = [number for number, line in enumerate(self.text.splitlines(), 1) if HERE in line]
        return marked[0] if marked else 0

    def is_said(self, field: str, message: str, line: int) -> bool:
        if self.field == "line":
            return field == (f"line {self.line}" if self.line else field) and self.remedy in message
        return field == self.field and self.remedy in message and line == (self.line or line)


def job_with(field: str, value: Any) -> str:
    """A good job as JSON with one field set, such as spec.worker.template.spec.containers.0.image."""
    document = copy.deepcopy(make.manifest())
    *path, last = field.split(".")
    place: Any = document
    for part in path:
        place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
    place[last] = value
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


def from_file(file: Path) -> Case:
    text = file.read_text(encoding="utf-8")
    said = dict(line[2:].split(": ", 1) for line in text.splitlines() if line.startswith("# "))
    title = str(file.relative_to(FOLDER).with_suffix(""))
    return Case(title, text, Verdict(said["verdict"]), said.get("field", ""), said.get("remedy", ""))


FILES = [from_file(file) for file in sorted(FOLDER.glob("*/*.yaml"))]


def _bad(title: str, text: str, field: str, remedy: str) -> Case:
    return Case(f"made/{title}", text, Verdict.SERVER, field, remedy)


def _good(title: str, text: str) -> Case:
    return Case(f"made/{title}", text, Verdict.NOBODY)


_TEN_TIMES = "".join(f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip(
    "abcdefghi", "bcdefghij", strict=True))  # fmt: skip

TEXTS = [
    _bad("a word", "PaddleJob", "document", "object"),
    _bad("a number", "42", "document", "object"),
    _bad("a date", "2026-11-18", "document", "object"),
    _bad("a list of jobs", f"[{job_with('kind', 'PaddleJob')}]", "document", "object"),
    _bad("an open bracket", '{"apiVersion": ', "line", "expected"),
    _bad("a tab", job_in_yaml(more=f"\tps: {{}} {HERE}\n"), "line", "spaces"),
    _bad("a NUL", job_in_yaml(value="a\0b"), "file", "not allowed"),
    _bad("an escape character", job_in_yaml(value="\x1b[2J"), "file", "not allowed"),
    _bad("5,000 digits", job_in_yaml(replicas=f"{'9' * 5000} {HERE}"), "line", "too large"),
    _bad("metadata that contains itself", f"metadata: &a {{b: *a}} {HERE}", "line", "write it out"),
    _bad("a bomb of lists", f"a: &a [lol, lol] {HERE}\n{_TEN_TIMES}", "line", "shorten"),
    _bad("a bomb of text", f"a: &a {'x' * 100_000}\nb: [{'*a, ' * 100}]", "line", "shorten"),
    _bad("1,000 brackets", "[" * 1_000, "file", "bracket"),
    _bad("1,000 dashes", "- " * 1_000, "file", "bracket"),
    _bad("a name that ends its line", job_with("metadata.name", "resnet\n"), "metadata.name", "lower-case"),
    _bad(
        "a quantity that ends its line",
        job_with(f"{POD}.containers.0.resources.limits", {"memory": "4Gi\n"}),
        f"{CONTAINER}.resources.limits.memory",
        "4Gi",
    ),
    _bad(
        "300 KiB of annotations",
        job_with("metadata.annotations", {f"a{number}": "x" * 100_000 for number in range(3)}),
        "metadata.annotations",
        "use a config map",
    ),
]

# Words that are no text to kubectl: each has to be in quotes.
UNQUOTED = [
    _bad(f"the word {word}", job_in_yaml(value=f"{word} {HERE}"), f"{CONTAINER}.env[0].value", "quotes")
    for word in ("1", "-1", "+12", "1.5", ".5", "5.", "1e3", "1E+5", "1_000", "017", "08", "0o17", "0x1F",
                 "0b11", "yes", "No", "ON", "off", "y", "N", "true", "False",
                 "123456789012345678901234567890")
]  # fmt: skip

GOOD = [
    _good("as JSON", job_with("kind", "PaddleJob")),
    _good("as YAML", job_in_yaml()),
    _good("1e0 is a whole number", job_in_yaml(replicas="1e0")),
    _good("octal digits", job_in_yaml(replicas="017")),
    _good("nulls", job_in_yaml(replicas="null", value="~", selector="", more="  ps: null\n")),
    _good("empty words of a pod", job_with(f"{POD}.restartPolicy", "")),
    _good("what kubectl get adds", job_with("metadata", {
        "name": "resnet", "uid": "a", "resourceVersion": "5", "generation": 1, "selfLink": "/a",
        "creationTimestamp": "2026-11-18T12:00:00Z", "finalizers": ["paddlepaddle.org/a"],
        "managedFields": [{"manager": "kubectl", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}}}],
    })),
    _good("an emoji in two halves", job_with(f"{POD}.containers.0.args", ["\N{PARTY POPPER}", "飞桨"])),
    _good("10,000 variables", job_with(
        f"{POD}.containers.0.env", [{"name": f"V{number}", "value": ""} for number in range(10_000)]
    )),
    _good("a template of a million bytes", job_with(f"{POD}.containers.0.args", ["x" * 1_000_000])),
    *(_good(f"the text {word}", job_in_yaml(value=word))
      for word in ("2026-11-18", "2026-13-45", "2001-12-14 21:59:43.10 -5", "1:30", "=", "0x_", "1e", "0xAG",
                   "1.2.3", "yEs", "nULL", '"\\0"', "!!str 12", "飞桨")),
]  # fmt: skip

CASES = [*FILES, *TEXTS, *UNQUOTED, *GOOD]
REFUSED = [case for case in CASES if case.verdict is not Verdict.NOBODY]
ACCEPTED = [case for case in CASES if case.verdict is Verdict.NOBODY]
