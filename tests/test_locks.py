"""The lock files fit pyproject.toml. Needs no network: it compares with the metadata of what is installed.

What it cannot see: whether newer versions exist, and whether pins for other platforms are complete.
"""

import importlib.metadata
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
RUNTIME: list[str] = PROJECT["project"]["dependencies"]
LOCAL: list[str] = PROJECT["project"]["optional-dependencies"]["local"]
GROUPS: dict[str, list[str]] = PROJECT["dependency-groups"]

DIRECT = {
    "requirements.lock": RUNTIME,
    "requirements-build.lock": PROJECT["build-system"]["requires"],
    "requirements-dev.lock": [*RUNTIME, *LOCAL, *GROUPS["dev"]],
    "requirements-go.lock": GROUPS["go"],
    "requirements-paddle.lock": LOCAL,
    **{
        f"requirements-paddle-{version}.lock": GROUPS[f"paddle-{version.replace('.', '-')}"]
        for version in ("2.6.2", "3.1.0", "3.3.1")
    },
}
# The others are installed into the cache and not here, so their metadata cannot be walked.
TESTED = "requirements-dev.lock"
INSTALLED = ("requirements.lock", "requirements-build.lock", TESTED, "requirements-paddle.lock")
HINT = "run make lock"


class Pin(NamedTuple):
    version: Version
    holds_here: bool
    """Its marker is true for this Python on this platform."""
    hashes: int


Lock = dict[NormalizedName, Pin]
RequirementsOf = Callable[[NormalizedName], Iterable[str]]


def parse_lock(text: str) -> Lock:
    lines = text.replace("\\\n", " ").splitlines()
    pins = [parse_pin(line) for line in lines if line and not line.lstrip().startswith("#")]
    # A universal lock may pin one package twice, under markers of which at most one holds.
    return dict(sorted(pins, key=lambda named_pin: named_pin[1].holds_here))


def parse_pin(line: str) -> tuple[NormalizedName, Pin]:
    words, *hashes = line.split(" --hash=sha256:")
    requirement = Requirement(words.strip())
    (specifier,) = requirement.specifier
    assert specifier.operator == "==", f"not a pin: {line}"
    holds_here = requirement.marker is None or requirement.marker.evaluate()
    good_hashes = [digest for digest in hashes if re.fullmatch(r"[0-9a-f]{64}", digest.strip())]
    return canonicalize_name(requirement.name), Pin(Version(specifier.version), holds_here, len(good_hashes))


def problems_of_direct(lock: Lock, direct: Iterable[str]) -> Iterator[str]:
    for text in direct:
        yield from problems_of_requirement(lock, Requirement(text), "pyproject.toml")


def problems_of_requirement(lock: Lock, requirement: Requirement, wanted_by: str) -> Iterator[str]:
    pin = lock.get(canonicalize_name(requirement.name))
    if pin is None or not pin.holds_here:
        yield f"{wanted_by} wants {requirement}, which is not pinned: {HINT}"
    elif not requirement.specifier.contains(pin.version, prereleases=True):
        yield f"{wanted_by} wants {requirement}, but {pin.version} is pinned: {HINT}"


def problems_of_walk(lock: Lock, direct: Iterable[str], requirements_of: RequirementsOf) -> Iterator[str]:
    """Follow every requirement from pyproject.toml on; all of them are pinned, and nothing else is."""
    reached: set[tuple[NormalizedName, str]] = set()
    waiting = [Requirement(text) for text in direct]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        for extra in {"", *requirement.extras}:
            if (name, extra) in reached or name not in lock:
                continue  # what is not pinned was reported where it was wanted
            reached.add((name, extra))
            for wanted in needed_here(requirements_of(name), extra):
                yield from problems_of_requirement(lock, wanted, name)
                waiting.append(wanted)
    reached_names = {name for name, _ in reached}
    for name, pin in lock.items():
        if pin.holds_here and name not in reached_names:
            yield f"{name} is pinned, but nothing wants it: {HINT}"


def needed_here(texts: Iterable[str], extra: str) -> Iterator[Requirement]:
    for requirement in map(Requirement, texts):
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield requirement


def lines_with_address(text: str) -> list[int]:
    return [number for number, line in enumerate(text.splitlines(), start=1) if "://" in line]


def installed_requirements(name: NormalizedName) -> list[str]:
    return importlib.metadata.requires(name) or []


def installed_version(name: NormalizedName) -> Version | None:
    try:
        return Version(importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return None


def read_text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def check(problems: Iterable[str]) -> None:
    found = list(problems)
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("name", DIRECT)
def test_each_requirement_of_the_project_is_pinned(name: str) -> None:
    check(problems_of_direct(parse_lock(read_text(name)), DIRECT[name]))


@pytest.mark.parametrize("name", INSTALLED)
def test_what_is_installed_is_what_is_pinned(name: str) -> None:
    pins = {package: pin for package, pin in parse_lock(read_text(name)).items() if pin.holds_here}
    check(
        f"{package} {pin.version} is pinned, {installed_version(package)} installed: run make environment"
        for package, pin in pins.items()
        if installed_version(package) != pin.version
    )


@pytest.mark.parametrize("name", INSTALLED)
def test_the_pins_are_complete_and_none_is_left_over(name: str) -> None:
    check(problems_of_walk(parse_lock(read_text(name)), DIRECT[name], installed_requirements))


@pytest.mark.parametrize("name", DIRECT)
def test_each_pin_has_a_hash(name: str) -> None:
    pins = parse_lock(read_text(name))
    check(f"{package} has no sha256 hash: {HINT}" for package, pin in pins.items() if not pin.hashes)


@pytest.mark.parametrize("name", DIRECT)
def test_a_lock_names_no_address(name: str) -> None:
    check(f"{name}:{number}: an address in a lock: {HINT}" for number in lines_with_address(read_text(name)))


@pytest.mark.parametrize("name", [name for name in INSTALLED if name != TESTED])
def test_what_runs_and_what_is_tested_are_the_same_versions(name: str) -> None:
    runtime, tested = parse_lock(read_text(name)), parse_lock(read_text(TESTED))
    check(
        f"{package} {pin.version} of {name} is not what {TESTED} pins: {HINT}"
        for package, pin in runtime.items()
        if package not in tested or pin.version != tested[package].version
    )


# The same checks on locks that are wrong: they have to see it.

DIGEST = "0" * 64
FRESH = f"""\
# a comment
Top-Level==2.0 \\
    --hash=sha256:{DIGEST} \\
    --hash=sha256:{DIGEST}
    # via project
below==1.5 \\
    --hash=sha256:{DIGEST}
elsewhere==1.0 ; sys_platform == 'nowhere' \\
    --hash=sha256:{DIGEST}
"""
METADATA = {
    "top-level": ["below>=1", "elsewhere; sys_platform == 'nowhere'", "optional; extra == 'more'"],
    "below": [],
}


def walk(lock: str, *direct: str) -> list[str]:
    return [*problems_of_walk(parse_lock(lock), direct, lambda name: METADATA[name])]


def test_a_lock_is_read() -> None:
    assert parse_lock(FRESH) == {
        "top-level": Pin(Version("2.0"), holds_here=True, hashes=2),
        "below": Pin(Version("1.5"), holds_here=True, hashes=1),
        "elsewhere": Pin(Version("1.0"), holds_here=False, hashes=1),
    }


def test_a_fresh_lock_has_no_problems() -> None:
    assert not [*problems_of_direct(parse_lock(FRESH), ["top_level>=2"])]
    assert not walk(FRESH, "top.level>=2")


def test_a_requirement_added_or_raised_since_is_found() -> None:
    stale = parse_lock(FRESH)
    assert [*problems_of_direct(stale, ["added"])] == [
        "pyproject.toml wants added, which is not pinned: run make lock"
    ]
    assert [*problems_of_direct(stale, ["top-level>=3"])] == [
        "pyproject.toml wants top-level>=3, but 2.0 is pinned: run make lock"
    ]
    assert [*problems_of_direct(stale, ["elsewhere"])], "its marker does not hold here"


def test_a_requirement_removed_since_is_found() -> None:
    assert walk(FRESH, "below") == ["top-level is pinned, but nothing wants it: run make lock"]


def test_a_missing_transitive_pin_is_found() -> None:
    assert walk(FRESH.replace("below==", "other=="), "top-level")[0] == (
        "top-level wants below>=1, which is not pinned: run make lock"
    )
    assert walk(FRESH.replace("below==1.5", "below==0.9"), "top-level") == [
        "top-level wants below>=1, but 0.9 is pinned: run make lock"
    ]


def test_the_requirements_of_an_extra_are_followed() -> None:
    assert walk(FRESH, "top-level[more]") == [
        'top-level wants optional; extra == "more", which is not pinned: run make lock'
    ]


def test_a_pin_without_a_good_hash_is_found() -> None:
    (pin,) = parse_lock(f"bare==1.0 --hash=sha256:{DIGEST[1:]}").values()
    assert pin.hashes == 0


def test_an_address_is_found() -> None:
    assert lines_with_address(f"aiohttp==1.0\n--some-option https://example.com\n{FRESH}") == [2]


def test_a_range_is_no_pin() -> None:
    with pytest.raises(AssertionError, match="not a pin"):
        parse_lock("loose>=1.0")
