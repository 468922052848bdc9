"""From objects to YAML that people read and edit: with comments, and with short lists on one line.

A comment is part of the object: the entry "#" of a mapping, or an item of a list that begins with "# ".
"""

import re
import textwrap
from collections.abc import Iterable
from typing import Any

import yaml

from paddle_operator.api.meta import Manifest

COMMENT = "#"
WIDTH = 110

_ENTRY = re.compile(r"(?P<indent> *)(?P<dash>- )?'#': (?P<words>.*)")
_ITEM = re.compile(r"(?P<indent> *)- '# (?P<words>.*)'")


class Inline(list[Any]):
    """A list that is written on one line."""


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True

    def represent_inline(self, data: Inline) -> yaml.Node:
        return self.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=True)


_Dumper.add_representer(Inline, _Dumper.represent_inline)


def write(objects: Iterable[Manifest], *, heading: str = "") -> str:
    """One document each."""
    documents = [_uncover(yaml.dump(one, Dumper=_Dumper, sort_keys=False, width=10_000)) for one in objects]
    return comment(heading) + "---\n".join(documents)


def comment(words: str, indent: str = "") -> str:
    paragraphs = words.splitlines()
    lines = [line for one in paragraphs for line in textwrap.wrap(one, WIDTH - len(indent) - 2)]
    return "".join(f"{indent}# {line}\n" for line in lines)


def _uncover(text: str) -> str:
    """Comments as comments, where the dumper has made entries and items of them."""
    result, begins_item = "", False
    for line in text.splitlines():
        if entry := _ENTRY.fullmatch(line):
            result += comment(_unquoted(entry["words"]), entry["indent"])
            # The dash of the list goes to the next entry.
            begins_item = entry["dash"] is not None
        elif item := _ITEM.fullmatch(line):
            result += comment(_unquoted(item["words"]), item["indent"])
        else:
            result += (re.sub(r"  (?=\S)", "- ", line, count=1) if begins_item else line) + "\n"
            begins_item = False
    return result


def _unquoted(words: str) -> str:
    quoted = words[:1] == words[-1:] == "'"
    return (words[1:-1] if quoted else words).replace("''", "'")
