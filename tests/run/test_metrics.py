"""Which lines of a training script count as a measurement."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddle_operator.run.metrics import EXAMPLE, LONGEST_LINE, BadMetric, Metric, readable
from paddle_operator.run.scene import Measurement

DEFAULT = Metric.of(None)
LOSSES = st.floats(allow_nan=False)


@pytest.mark.parametrize(
    ("line", "step", "loss"),
    [
        ("step=12 loss=0.1234", 12, 0.1234),
        ("step: 12, loss: 0.12", 12, 0.12),
        ("step 12 loss 0.12", 12, 0.12),
        ("STEP=3 lr=0.1, took 5 s, Loss = 2", 3, 2.0),
        ("loss=0.5 at step=7", 7, 0.5),
        ("loss=0.5", None, 0.5),
        ("loss: .5", None, 0.5),
        ("loss: 5.", None, 5.0),
        ("loss is low: loss=-1.5e-3,", None, -0.0015),
        ("loss=1E+2; next", None, 100.0),
        ("loss=inf", None, float("inf")),
        ("loss: -Infinity", None, float("-inf")),
        ("loss=0.5.", None, 0.5),
        ("step 10/100 - loss: 0.3123 - acc: 0.9 - 5ms/step", 10, 0.3123),
        ("Step [10/100], Loss: [0.25]", 10, 0.25),
        ("global step 10, epoch: 1, batch: 9, loss: 0.6, speed: 1.2 step/s", 10, 0.6),
        ("{'loss': 2.5, 'global_step': 10}", 10, 2.5),
        ('{"step": 4, "loss": 0.25}', 4, 0.25),
        ("[Iter: 0/30]lr: 0.01, top1: 0.1, CELoss: 4.6, loss: 4.5", None, 4.5),
        ("val_loss=9 loss=1", None, 1.0),
        ("损失loss=0.5", None, 0.5),
        ("steps=3 loss=1", None, 1.0),
        ("step=0.01 loss=1", None, 1.0),
        ("step=1234567890123456789012 loss=1", None, 1.0),
        ("\x1b[32mstep\x1b[0m=1 \x1b[1mloss\x1b[0m=0.5", 1, 0.5),
        ("step=1 loss=9\rstep=2 loss=8\r\n", 2, 8.0),
    ],
)
def test_a_line_with_a_loss_is_measured(line: str, step: int | None, loss: float) -> None:
    assert DEFAULT.measure(line) == Measurement(step, loss)


def test_a_loss_that_is_no_number_is_still_a_loss() -> None:
    measurement = DEFAULT.measure("step=3 loss=nan")
    assert measurement is not None
    assert measurement.step == 3
    assert measurement.loss != measurement.loss


@pytest.mark.parametrize(
    "line",
    [
        "",
        "step=12",
        "loss",
        "loss=",
        "loss function is ready",
        "loss info follows",
        "a lossless 3",
        "val_loss=0.5",
        "packet loss 0.5%",
        "loss=0x1f",
        "x" * LONGEST_LINE + " loss=1",
    ],
)
def test_a_line_without_one_is_not(line: str) -> None:
    assert DEFAULT.measure(line) is None


@given(st.integers(0, 10**18 - 1), LOSSES, st.text("abc ,;[]()", max_size=20))
def test_what_python_prints_is_read_back(step: int, loss: float, between: str) -> None:
    assert DEFAULT.measure(f"step={step} {between} loss={loss!r}") == Measurement(step, loss)


PIECES = st.sampled_from(
    ["loss", "step", "=", ": ", " ", "1", "9" * 400, ".", "e", "-", "nan", "\x1b[1m", "\r"]
)


@given(st.lists(PIECES | st.text(max_size=3), max_size=20))
def test_no_line_is_too_strange(pieces: list[str]) -> None:
    measurement = DEFAULT.measure("".join(pieces))
    assert measurement is None or "loss" in readable("".join(pieces)).lower()


@pytest.mark.parametrize(
    "piece", ["loss ", "loss", "loss=1", "step=", "step 1", " ", "1", "\x1b[", "\x1b]", "\r"]
)
def test_a_long_line_takes_no_long_time(piece: str) -> None:
    line = piece * (1_000_000 // len(piece))
    start = time.perf_counter()
    DEFAULT.measure(line)
    # Some milliseconds; a pattern that goes back over its line would take many seconds.
    assert time.perf_counter() - start < 0.5


@pytest.mark.parametrize(
    ("pattern", "line", "measurement"),
    [
        (r"cost (?P<loss>\S+)", "iter 5 cost 0.5", Measurement(None, 0.5)),
        (r"iter (?P<step>\d+).* cost (?P<loss>\S+)", "iter 5, cost 0.5", Measurement(5, 0.5)),
        (r"iter (?P<step>\S+) cost (?P<loss>\S+)", "iter five cost 0.5", Measurement(None, 0.5)),
        (r"cost (?P<loss>\S+)(?P<step>!\d)?", "cost 0.5", Measurement(None, 0.5)),
        (r"cost (?P<loss>\S+)", "cost unknown", None),
        (r"cost( (?P<loss>\S+))?", "cost", None),
        (r"cost (?P<loss>\S+)", "step=1 loss=1", None),
    ],
)
def test_a_pattern_of_the_user_takes_the_place_of_ours(
    pattern: str, line: str, measurement: Measurement | None
) -> None:
    assert Metric.of(pattern).measure(line) == measurement


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("loss (", "is no regular expression: missing ), unterminated subpattern at position 5"),
        ("a{99999999999999999999}", "is no regular expression: the repetition number is too large"),
        (r"loss=(\S+)", "has no group named loss"),
        (r"(?P<step>\d+)", "has no group named loss"),
        ("", "has no group named loss"),
    ],
)
def test_a_pattern_that_cannot_work_is_refused_with_one_that_does(pattern: str, problem: str) -> None:
    with pytest.raises(BadMetric, match=re.escape(f"--metric {pattern!r} {problem}")) as refusal:
        Metric.of(pattern)
    assert EXAMPLE in str(refusal.value)


def test_the_example_in_the_message_is_a_good_one() -> None:
    pattern = EXAMPLE.removeprefix("--metric '").removesuffix("'")
    assert Metric.of(pattern).measure("iter 7, cost 0.5") == Measurement(7, 0.5)


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("as it is [bold]", "as it is [bold]"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b", ""),
        ("10%\r50%\r90%\r\n", "90%"),
        ("a\tb\u3000c\nd", "a b c d"),
        ("bell\x07 \u202eback\u200b", "bell back"),
        ("half \ud800 sign", "half  sign"),
        ("进度", "进度"),
    ],
)
def test_only_what_can_be_seen_of_a_line_is_left(line: str, seen: str) -> None:
    assert readable(line) == seen


@given(st.text(st.characters(exclude_categories=[]) | st.sampled_from("\x1b[];m\r\n\x07")))
def test_what_is_left_is_one_printable_row(line: str) -> None:
    assert readable(line).isprintable()
