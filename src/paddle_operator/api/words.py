"""The words that Kubernetes takes for names: DNS labels, and the names and values of labels."""

import re
from collections.abc import Iterator

from .schema_check import Problem, join

LONGEST_LABEL = 63
# As text too, for the CRD.
DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
MOST_BYTES_OF_ANNOTATIONS = 256 * 1024

_DNS_LABEL = re.compile(DNS_LABEL)
_DNS_NAME = re.compile(rf"(?=.{{1,253}}\Z){DNS_LABEL}(\.{DNS_LABEL})*")
_LABEL_WORD = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_ADVICE = "use at most 63 letters, digits, dashes, dots and underscores, with a letter or digit at each end"


def is_dns_label(name: str) -> bool:
    return len(name) <= LONGEST_LABEL and _DNS_LABEL.fullmatch(name) is not None


def label_problems(labels: dict[str, str], field: str) -> Iterator[Problem]:
    for name, value in labels.items():
        if not _is_qualified(name):
            yield Problem(field, f"{name!r} is no name of a label; {_ADVICE}")
        if value and not _LABEL_WORD.fullmatch(value):
            yield Problem(join(field, name), f"{value!r} is no value of a label; {_ADVICE}")


def annotation_problems(annotations: dict[str, str], field: str) -> Iterator[Problem]:
    for name in annotations:
        # Other than in labels, the case of the domain does not matter.
        if not _is_qualified(name.lower()):
            yield Problem(field, f"{name!r} is no name of an annotation; {_ADVICE}")
    size = sum(len(name.encode()) + len(value.encode()) for name, value in annotations.items())
    if size > MOST_BYTES_OF_ANNOTATIONS:
        yield Problem(
            field, f"are {size} bytes in all and may be {MOST_BYTES_OF_ANNOTATIONS}; use a config map"
        )


def _is_qualified(name: str) -> bool:
    """A word, or a domain and a word."""
    domain, slash, word = name.rpartition("/")
    return _LABEL_WORD.fullmatch(word) is not None and (not slash or _DNS_NAME.fullmatch(domain) is not None)
