"""Amounts as Kubernetes writes them."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddle_operator.api.quantities import quantity, shown

AMOUNTS = st.fractions(min_value=0, max_value=2**60)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("2", 2),
        (2, 2),
        (0.5, Fraction(1, 2)),
        ("500m", Fraction(1, 2)),
        ("1.5", Fraction(3, 2)),
        ("1.", 1),
        (".5", Fraction(1, 2)),
        ("+3", 3),
        ("-3", -3),
        ("0.1", Fraction(1, 10)),
        ("1n", Fraction(1, 10**9)),
        ("1u", Fraction(1, 10**6)),
        ("1k", 1000),
        ("1Ki", 1024),
        ("1.5Gi", 3 * 2**29),
        ("128Mi", 128 * 2**20),
        ("1M", 10**6),
        ("1E", 10**18),
        ("1Ei", 2**60),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1e-3", Fraction(1, 1000)),
        (" 4Gi ", 4 * 2**30),
    ],
)
def test_an_amount_is_exact(text: str | float, amount: Fraction) -> None:
    assert quantity(text) == amount


@pytest.mark.parametrize(
    "text",
    [
        "", "lots", "4GB", "4 Gi", "1mi", "1ki", "1K", "1.2.3", ".", "1/2", "--1", "1e", "1e3Ki", "1e3m",
        "0x10", "1_000", "nan", "inf", "1e999999999", "\N{ARABIC-INDIC DIGIT FIVE}",
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="is no quantity; write for example 2, 500m or 4Gi"):
        quantity(text)


@given(st.integers(0, 2**62), st.sampled_from(["", "m", "k", "Ki", "M", "Mi", "G", "Gi"]))
def test_a_suffix_scales(count: int, suffix: str) -> None:
    assert quantity(f"{count}{suffix}") == count * quantity(f"1{suffix}")


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**12), max_value=10**12))
def test_decimals_lose_nothing(number: object) -> None:
    assert quantity(str(number)) == Fraction(str(number))


@pytest.mark.parametrize(
    ("amount", "divisor", "text"),
    [
        ("1500m", "1", "2"),
        ("1500m", "1m", "1500"),
        ("1", "1m", "1000"),
        ("100m", "1", "1"),
        ("0", "1", "0"),
        ("1Gi", "1Mi", "1024"),
        ("1Gi", "1M", "1074"),
        ("1G", "1Gi", "1"),
    ],
)
def test_a_container_is_told_whole_numbers_rounded_up(amount: str, divisor: str, text: str) -> None:
    assert shown(quantity(amount), quantity(divisor)) == text


@given(AMOUNTS, st.sampled_from(["1", "1m", "1k", "1Mi"]))
def test_what_is_told_is_never_too_little(amount: Fraction, divisor: str) -> None:
    told, unit = int(shown(amount, quantity(divisor))), quantity(divisor)
    assert (told - 1) * unit < amount <= told * unit
