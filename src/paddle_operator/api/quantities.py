"""Kubernetes' way to write amounts: `500m` cores, `2Gi` bytes."""

import re
from fractions import Fraction
from math import ceil

_SCALES = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1),
    "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9),
    "T": Fraction(10**12), "P": Fraction(10**15), "E": Fraction(10**18),
    "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30),
    "Ti": Fraction(2**40), "Pi": Fraction(2**50), "Ei": Fraction(2**60),
}  # fmt: skip
# An exponent or a suffix, not both; an exponent of many digits would be worked out for minutes.
_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))([eE][+-]?[0-9]{1,3}|[KMGTPE]i|[numkMGTPE])?")


def quantity(text: str | float) -> Fraction:
    """ValueError for what is none."""
    found = _QUANTITY.fullmatch(str(text).strip())
    if not found:
        raise ValueError(f"{text!r} is no quantity; write for example 2, 500m or 4Gi")
    number, scale = found.groups(default="")
    return Fraction(number) * _SCALES[scale] if scale in _SCALES else Fraction(number + scale)


def shown(amount: Fraction, divisor: Fraction | int) -> str:
    """As a whole number of the divisor, rounded up, which is how a container is told."""
    return str(ceil(amount / divisor))
