"""Reads a results file, or says in one line what is wrong with it."""

import sys
from pathlib import Path

import msgspec

from benchmarks.results import parsed

REMEDY = "make one with make bench"


def read(file: Path) -> list[bytes]:
    """Its lines, each a measurement or about the run; but not a last one that was cut off by a kill."""
    try:
        text = file.read_bytes()
    except OSError as error:
        sys.exit(f"{file} cannot be read: {error.strerror}; {REMEDY}")
    *lines, rest = text.split(b"\n")
    if rest and not is_cut_off(rest):
        lines.append(rest)
    for number, line in enumerate(lines, start=1):
        try:
            parsed(line)
        except ValueError as error:
            sys.exit(f"{file}:{number} is no measurement: {error}; {REMEDY}")
    return lines


def is_cut_off(rest: bytes) -> bool:
    """What has no end of line is the beginning of an object, and not a whole one.

    Nothing else is forgiven: whoever goes on with the wrong file shall not lose its last line.
    """
    try:
        msgspec.json.decode(rest)
    except ValueError:
        return rest.startswith(b"{")
    return False
