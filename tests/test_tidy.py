"""House rules that no other tool checks. Each rule is one test; each detector is shown to catch something."""

import ast
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CODE_FOLDERS = ("src", "module", "testbed", "tests", "benchmarks", "dev")
PACKAGE = "src/paddle_operator"
PURE = tuple(
    f"{PACKAGE}/{name}"
    for name in ("api/", "plan.py", "cluster.py", "paddlejob/", "sampleset/", "samplejob/", "legacy/")
)
PROTOCOL = f"{PACKAGE}/cluster.py"  # declares the verbs of a cluster, which are async; it runs none of them

FUNCTION_LINES = 70
FILE_LINES = 500

OUTSIDE_WORLD = {
    "http",
    "io",
    "logging",
    "os",
    "pathlib",
    "shutil",
    "socket",
    "ssl",
    "sys",
    "tempfile",
    "urllib",
}
CONCURRENCY = {"asyncio", "multiprocessing", "signal", "subprocess", "threading"}
IMPURE_MODULES = OUTSIDE_WORLD | CONCURRENCY | {"aiohttp", "random", "secrets", "structlog"}
CLOCKS = {
    f"time.{name}" for name in ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "sleep")
}
CALENDARS = {
    f"datetime.{name}" for name in ("datetime.now", "datetime.utcnow", "datetime.today", "date.today")
}
IMPURE_NAMES = CLOCKS | CALENDARS | {"uuid.uuid1", "uuid.uuid4", "open", "input", "print"}
ASYNC_WORK = (ast.Await, ast.AsyncFor, ast.AsyncWith)

# In parts, so that this file does not break its own rule.
REGISTRIES = (
    "pypi" + ".org",
    "python" + "hosted",
    "pypi" + ".tuna",
    "index" + "-url",
    "proxy." + "golang",
    "go" + "proxy.",
    "registry." + "npmjs",
    "conda." + "anaconda",
)
REGISTRY = re.compile("|".join(map(re.escape, REGISTRIES)), re.IGNORECASE)
# A slash after a letter, digit or dot is the middle of a longer path or of an address.
MACHINE_PATH = re.compile(r"(?<![\w.}~-])/(?:home|Users|root|work)/\w")

Finding = str  # "file:line: what is wrong"
Detector = Callable[[str, str], Iterator[Finding]]  # of a file's name and text


def find_long_functions(name: str, source: str) -> Iterator[Finding]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = lines_of(node) - docstring_lines(node)
            if length > FUNCTION_LINES:
                yield f"{name}:{node.lineno}: {node.name} has {length} lines; the limit is {FUNCTION_LINES}"


def lines_of(node: ast.stmt) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def docstring_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    has_docstring = ast.get_docstring(function, clean=False) is not None
    return lines_of(function.body[0]) if has_docstring else 0


def find_long_file(name: str, source: str) -> Iterator[Finding]:
    length = len(source.splitlines())
    if length > FILE_LINES:
        yield f"{name}:{FILE_LINES}: the file has {length} lines; the limit is {FILE_LINES}"


def find_impurity(name: str, source: str) -> Iterator[Finding]:
    """Report clocks, chance, concurrency and I/O: a decision looks at its argument and at nothing else.

    This sees what is imported and named in the file itself. What a pure file reaches through a module of
    ours, the import contracts in pyproject.toml see.
    """
    tree = ast.parse(source)
    known = imported_names(tree)
    for node in ast.walk(tree):
        for used in [*modules_imported_by(node), *dotted_names(node, known)]:
            if used in IMPURE_NAMES or used.partition(".")[0] in IMPURE_MODULES:
                yield f"{name}:{line_of(node)}: `{used}` in a pure layer (no clock, no chance, no I/O)"
        if isinstance(node, ASYNC_WORK) or (isinstance(node, ast.AsyncFunctionDef) and name != PROTOCOL):
            yield f"{name}:{line_of(node)}: {type(node).__name__} in a pure layer (nothing waits there)"


def imported_names(tree: ast.AST) -> dict[str, str]:
    """What an imported name stands for: `day` for datetime.date after `from datetime import date as day`."""
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            known |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            known |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return known


def modules_imported_by(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and not node.level:
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def dotted_names(node: ast.AST, known: dict[str, str]) -> list[str]:
    """The full name of a use such as `dt.datetime.now`, or of a call of a builtin such as `open(...)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in known:
        return [node.func.id]
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not parts or not isinstance(node, ast.Name):
        return []
    return [".".join([known.get(node.id, node.id), *reversed(parts)])]


def find_debugging(name: str, source: str) -> Iterator[Finding]:
    known: dict[str, str] = {}
    prints_are_welcome = not name.startswith("src/") or name == f"{PACKAGE}/cli.py"
    for node in ast.walk(ast.parse(source)):
        used = [*modules_imported_by(node), *dotted_names(node, known)]
        if any(word == "breakpoint" or word.partition(".")[0] in {"pdb", "ipdb"} for word in used):
            yield f"{name}:{line_of(node)}: leftover of debugging"
        if "print" in used and not prints_are_welcome:
            yield f"{name}:{line_of(node)}: print() in the package; only cli.py speaks to people"


def line_of(node: ast.AST) -> int:
    line: int = getattr(node, "lineno", 0)
    return line


def find_machine_paths(name: str, text: str) -> Iterator[Finding]:
    return find_pattern(name, text, MACHINE_PATH, "path of a home or work folder")


def find_registries(name: str, text: str) -> Iterator[Finding]:
    return find_pattern(name, text, REGISTRY, "address of a package registry")


def find_pattern(name: str, text: str, pattern: re.Pattern[str], rule: str) -> Iterator[Finding]:
    for number, line in enumerate(text.splitlines(), start=1):
        if match := pattern.search(line):
            yield f"{name}:{number}: {rule}: {match[0]}"


def our_files() -> list[str]:
    """What git has or would take; in a copy without git, all but what the tools leave behind."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listing = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return sorted(files_without_git())
    names = listing.decode().split("\0")
    return sorted(name for name in names if name and (ROOT / name).is_file())


def files_without_git() -> Iterator[str]:
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    folders = {pattern.strip("/") for pattern in ignored} | {".git"}
    for path in ROOT.rglob("*"):
        name = path.relative_to(ROOT)
        if path.is_file() and not folders.intersection(name.parts) and ".egg-info" not in str(name):
            yield str(name)


def python_files(*prefixes: str) -> list[str]:
    return [name for name in our_files() if name.endswith(".py") and name.startswith(prefixes)]


def check(detect: Detector, names: Iterable[str]) -> None:
    findings = [finding for name in names for finding in detect(name, text_of(name))]
    assert not findings, "\n" + "\n".join(findings)


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8", errors="replace")


CODE = tuple(f"{folder}/" for folder in CODE_FOLDERS)


def test_functions_are_short() -> None:
    check(find_long_functions, python_files(*CODE))


def test_files_are_short() -> None:
    check(find_long_file, python_files(*CODE))


def test_decisions_are_pure() -> None:
    check(find_impurity, python_files(*PURE))


def test_no_debugging_is_left() -> None:
    check(find_debugging, python_files(*CODE))


def test_no_path_of_a_machine() -> None:
    check(find_machine_paths, our_files())


def test_no_address_of_a_registry() -> None:
    check(find_registries, our_files())


# The rules above pass when they look at nothing, or see nothing. These tests show that they look and see.


def test_the_rules_look_at_our_files() -> None:
    assert {"pyproject.toml", ".ci/run", "Makefile"} <= set(our_files())
    assert {"tests/test_tidy.py", "dev/stages.py", f"{PACKAGE}/__init__.py"} <= set(python_files(*CODE))
    assert {f"{PACKAGE}/plan.py", PROTOCOL} <= set(python_files(*PURE))
    assert any(name.startswith(f"{PACKAGE}/api/") for name in python_files(*PURE))


def test_a_copy_without_git_has_the_same_files() -> None:
    assert set(our_files()) <= set(files_without_git())


def function_of(lines: int, docstring: str = "") -> str:
    statements = [docstring, *["x = 1"] * (lines - 1)] if docstring else ["x = 1"] * (lines - 1)
    return "def f():\n" + "".join(f"    {statement}\n" for statement in statements)


def test_a_function_of_71_lines_is_found_wherever_it_hides() -> None:
    assert not [*find_long_functions("a.py", function_of(70))]
    assert [*find_long_functions("a.py", function_of(71))] == ["a.py:1: f has 71 lines; the limit is 70"]
    assert [*find_long_functions("a.py", "async " + function_of(71))]
    method = "class C:\n" + "".join(f"    {line}\n" for line in function_of(71).splitlines())
    assert [*find_long_functions("a.py", method)]


def test_a_docstring_does_not_make_a_function_long() -> None:
    assert not [*find_long_functions("a.py", function_of(70, '"""One\n    two\n    three."""'))]
    assert [*find_long_functions("a.py", function_of(71, '"""One\n    two\n    three."""'))]


def test_a_file_of_501_lines_is_found() -> None:
    assert not [*find_long_file("a.py", "x = 1\n" * 500)]
    assert [*find_long_file("a.py", "x = 1\n" * 501)]


@pytest.mark.parametrize(
    "source",
    [
        "import asyncio",
        "import os.path",
        "import random as dice",
        "from random import choice",
        "from pathlib import Path",
        "from socket import socket",
        "import time\nnow = time.time()",
        "import time as clock\nnow = clock.monotonic()",
        "from time import time",
        "from time import monotonic as clock",
        "from datetime import datetime\nnow = datetime.now()",
        "from datetime import datetime as moment\nnow = moment.utcnow()",
        "import datetime\nnow = datetime.datetime.today()",
        "import datetime as dt\nread_the_clock = dt.datetime.now",
        "import uuid\nname = uuid.uuid4()",
        "text = open('file').read()",
        "print('hello')",
        "async def decide(): pass",
        "async def decide():\n    await world()",
        "async def decide():\n    async with world(): pass",
        "async def decide():\n    async for change in world(): pass",
    ],
)
def test_impurity_is_found(source: str) -> None:
    findings = [*find_impurity(f"{PACKAGE}/plan.py", source)]
    assert findings
    assert findings[-1].startswith(f"{PACKAGE}/plan.py:{len(source.splitlines())}: ")


@pytest.mark.parametrize(
    "source",
    [
        "from datetime import datetime, timedelta\nday = datetime(2026, 1, 1) + timedelta(days=1)",
        "late = observed.now > deadline",
        "from .time import parse",
        "from ..api import random",
        "reopen = door.open()",
        "import uuid\nname = uuid.uuid5(uuid.NAMESPACE_DNS, 'job')",
    ],
)
def test_purity_is_not_mistaken_for_impurity(source: str) -> None:
    assert not [*find_impurity(f"{PACKAGE}/plan.py", source)]


def test_the_protocol_may_declare_async_verbs_but_not_wait() -> None:
    assert not [*find_impurity(PROTOCOL, "async def get(): ...")]
    assert [*find_impurity(PROTOCOL, "async def get():\n    await answer()")]


@pytest.mark.parametrize(
    "source", ["breakpoint()", "import pdb", "from pdb import set_trace", "pdb.set_trace()"]
)
def test_debugging_is_found(source: str) -> None:
    assert [*find_debugging("tests/test_a.py", source)] == ["tests/test_a.py:1: leftover of debugging"]


def test_print_is_found_in_the_package_only() -> None:
    assert [*find_debugging(f"{PACKAGE}/app.py", "print('here')")]
    assert not [*find_debugging(f"{PACKAGE}/cli.py", "print('hello')")]
    assert not [*find_debugging("testbed/__main__.py", "print('hello')")]


@pytest.mark.parametrize("folder", ["home", "Users", "root", "work"])
def test_a_path_of_a_machine_is_found(folder: str) -> None:
    path = f"/{folder}/somebody/project"
    assert [*find_machine_paths("a.md", f"first line\nsee {path}")] == [
        f"a.md:2: path of a home or work folder: /{folder}/s"
    ]
    assert [*find_machine_paths("a.py", f'open("{path}")')]
    assert not [*find_machine_paths("go.mod", f"require example.com{path} v1")]


@pytest.mark.parametrize("registry", REGISTRIES)
def test_an_address_of_a_registry_is_found(registry: str) -> None:
    assert [*find_registries("a.lock", f"--something https://{registry}/simple")]
    assert not [*find_registries("a.md", "our registry of packages")]
