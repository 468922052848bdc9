"""Writes the files; see __init__.py."""

import tomllib
from pathlib import Path

from dev.manifests.files import POLICY, files

TOP = Path(__file__).resolve().parents[2]


def current_files(top: Path = TOP) -> dict[str, str]:
    """What the files should be, by path, for the present version and admission policy."""
    project = tomllib.loads((top / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return files(project["version"], policy=(top / POLICY).read_text(encoding="utf-8"))


def main() -> None:
    for name, text in current_files().items():
        file = TOP / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
