"""From the user's files to what is run: everything is checked before anything is made."""

import sys
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from paddle_operator.api.documents import BadDocument
from paddle_operator.api.lines import Lines
from paddle_operator.api.load import METADATA, NO_JOB, Contents, load_file
from paddle_operator.api.meta import Key, Manifest
from paddle_operator.api.paddlejob import PaddleJob
from paddle_operator.api.schema_check import Problem, Schema, check
from paddle_operator.paddlejob.pods import dropped_variables_of

DROPPED = "the operator decides about these; the values in the template are not used"
ENCODED = {"ConfigMap": "binaryData", "Secret": "data"}
PLAIN = {"binaryData": "data", "data": "stringData"}
SUFFIXES = {".yaml", ".yml", ".json"}
_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "object", "additionalProperties": _TEXT}
_SUPPLIES: Schema = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("apiVersion", "kind", "type"), _TEXT),
        "immutable": {"type": "boolean"},
        "metadata": METADATA,
        **dict.fromkeys(("data", "stringData", "binaryData"), _TEXTS),
    },
    "required": ["metadata"],
}


class Refused(Exception):  # noqa: N818 (reads as what it is)
    """Nothing is run; ``lines`` say what is wrong, where, and what to do."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = tuple(lines)
        super().__init__("; ".join(self.lines))


@dataclass(frozen=True)
class Source:
    """A file of the user's, and the folder in which its commands run."""

    name: str
    text: str
    folder: Path
    document: int = 1
    """Of a job: which document of the file it is."""


@dataclass(frozen=True)
class Request:
    jobs: tuple[tuple[Source, PaddleJob], ...]
    config_maps: dict[Key, Manifest]
    secrets: dict[Key, Manifest]
    passed_over: tuple[str, ...]
    """Documents of kinds that have no meaning here."""


def read_sources(names: Iterable[str]) -> list[Source]:
    return [source for name in names for source in _read(name)]


def load(
    sources: list[Source], namespace: str, edit: Callable[[Manifest], Manifest] = lambda document: document
) -> Request:
    """``edit`` changes each PaddleJob before it is checked."""
    contents: list[tuple[Source, Contents]] = []
    wrong: list[str] = []
    for source in sources:
        try:
            contents.append((source, load_file(source.text, namespace, edit)))
        except BadDocument as bad:
            wrong += [f"{source.name}: {problem}" for problem in bad.problems]
    jobs = tuple(
        (replace(source, document=number), job)
        for source, found in contents
        for number, job in zip(found.numbers, found.jobs, strict=True)
    )
    others = [(source, document) for source, found in contents for document in found.others]
    wrong += [*_namesakes(jobs), *_faults(others)]
    if not jobs and not wrong:
        wrong = [f"{', '.join(source.name for source in sources)}: {NO_JOB}"]
    if wrong:
        raise Refused(wrong)
    by_kind = _by_kind([document for _, document in others], namespace)
    return Request(
        jobs,
        config_maps=by_kind.pop("ConfigMap", {}),
        secrets=by_kind.pop("Secret", {}),
        passed_over=tuple(
            f"{kind} {key.name} is passed over: it has no meaning without a cluster"
            for kind, found in by_kind.items()
            if kind != "PersistentVolumeClaim"
            for key in found
        ),
    )


def refuse_where(request: Request, find: Callable[[PaddleJob], Iterable[Problem]]) -> None:
    wrong = []
    for source, job in request.jobs:
        if found := tuple(find(job)):
            lines = Lines(source.text, source.document)
            wrong += [f"{source.name}: line {lines.of(one.field)}: {_of(job)}: {one}" for one in found]
    if wrong:
        raise Refused(wrong)


def dropped_variables_in(request: Request) -> list[str]:
    return [
        complaint(source, job, Problem(", ".join(names), DROPPED))
        for source, job in request.jobs
        if (names := dropped_variables_of(job))
    ]


def complaint(source: Source, job: PaddleJob, problem: Problem) -> str:
    return f"{source.name}: {_of(job)}: {problem}"


def _of(job: PaddleJob) -> str:
    return f"job {job.metadata.name}"


def _read(name: str) -> Iterator[Source]:
    path = Path(name)
    if name == "-":
        if sys.stdin is None:
            raise Refused(["standard input is closed; name a file"])
        yield Source("standard input", _decoded("standard input", sys.stdin.buffer.read()), Path.cwd())
    elif path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES and file.is_file())
        if not files:
            raise Refused([f"{name}: the folder has no file that ends in {', '.join(sorted(SUFFIXES))}"])
        yield from (_file(str(file)) for file in files)
    else:
        yield _file(name)


def _file(name: str) -> Source:
    try:
        content = Path(name).read_bytes()
    except OSError as error:
        advice = "name a YAML file, a folder of them, or - for standard input"
        raise Refused([f"{name}: cannot be read: {error.strerror or error}; {advice}"]) from None
    return Source(name, _decoded(name, content), Path(name).resolve().parent)


def _decoded(name: str, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise Refused([f"{name}: byte {error.start + 1} is not UTF-8 text; save the file as UTF-8"]) from None


def _namesakes(jobs: Iterable[tuple[Source, PaddleJob]]) -> Iterator[str]:
    first: dict[Key, Source] = {}
    for source, job in jobs:
        if other := first.get(job.metadata.key):
            yield f"{source.name}: job {job.metadata.name}: {other.name} has one of that name; rename one"
        first[job.metadata.key] = source


def _faults(documents: Iterable[tuple[Source, Manifest]]) -> Iterator[str]:
    """Of the config maps and secrets, which no schema of ours describes."""
    for source, document in documents:
        kind = document["kind"]
        if kind in ENCODED:
            problems = [*check(document, _SUPPLIES, "")] or _not_base64(document, ENCODED[kind])
            yield from (f"{source.name}: {kind}: {problem}" for problem in problems)


def _not_base64(document: Manifest, field: str) -> Iterator[Problem]:
    for name, text in (document.get(field) or {}).items():
        try:
            b64decode("".join(text.split()), validate=True)
        except ValueError:
            yield Problem(
                f"{field}.{name}", f"is no base64; encode it, or write it as it is under {PLAIN[field]}"
            )


def _by_kind(documents: list[Manifest], namespace: str) -> dict[str, dict[Key, Manifest]]:
    found: dict[str, dict[Key, Manifest]] = {}
    for document in documents:
        metadata = {**(document.get("metadata") or {})}
        metadata["namespace"] = metadata.get("namespace") or namespace
        key = Key(metadata["namespace"], metadata.get("name") or "")
        found.setdefault(document["kind"], {})[key] = {**document, "metadata": metadata}
    return found
