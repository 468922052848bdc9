"""Errors of the testbed, all meant for a person at a terminal.

RemedyError
├── BuildError          a binary could not be built or Go could not be had
└── ControlPlaneError   a component did not start, or something is not up
"""

from pathlib import Path


class RemedyError(Exception):
    """Says what failed and where, and what to do about it."""

    def __init__(self, problem: str, *, remedy: str) -> None:
        super().__init__(f"{problem}\n  remedy: {remedy}")
        self.remedy = remedy


class BuildError(RemedyError):
    pass


class ControlPlaneError(RemedyError):
    pass


def tail(log: Path, lines: int = 15) -> str:
    """The end of a log for an error message."""
    try:
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) or "(empty)"
    except FileNotFoundError:
        return "(there is none)"
