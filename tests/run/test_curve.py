"""The loss as a picture: shapes in tables, limits as properties."""

from math import inf, isfinite, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddle_operator.run.curve import chart, evenly, loss_text, spark
from paddle_operator.run.scene import Measurement

LOSSES = st.lists(st.floats() | st.sampled_from([nan, inf, -inf, 1e308, -1e308, 5e-324, 0.0]), max_size=60)
WIDTHS = st.integers(-2, 60)
HEIGHTS = st.integers(-2, 12)


def curve(*losses: float) -> list[Measurement]:
    return [Measurement(step, loss) for step, loss in enumerate(losses, start=1)]


@pytest.mark.parametrize(
    ("loss", "text"),
    [
        (0.4312, "0.4312"),
        (12.0, "12.0000"),
        (0.0, "0.0000"),
        (0.0001234, "1.234e-04"),
        (-123456.0, "-1.235e+05"),
        (nan, "nan"),
        (-inf, "-inf"),
    ],
)
def test_a_loss_is_written_in_few_characters(loss: float, text: str) -> None:
    assert loss_text(loss) == text


@pytest.mark.parametrize(
    ("values", "width", "drawn"),
    [
        ([], 8, ""),
        ([nan, inf], 8, ""),
        ([1.0], 8, "▁"),
        ([2.0, 2.0, 2.0], 8, "▁▁▁"),
        ([0.0, 1, 2, 3, 4, 5, 6, 7], 8, "▁▂▃▄▅▆▇█"),
        ([7.0, nan, 0.0, inf], 8, "█ ▁ "),
        ([7.0, 7.0, 3.0, 3.0, 0.0, 0.0], 3, "█▄▁"),
        ([0.0, 14.0, nan, 0.0], 2, "█▁"),
        ([1e308, 1e308, -1e308, -1e308], 2, "█▁"),
        ([1.0, 2.0], 0, ""),
    ],
)
def test_a_spark_is_a_row_of_blocks(values: list[float], width: int, drawn: str) -> None:
    assert spark(values, width) == drawn


@pytest.mark.parametrize(
    ("losses", "rows"),
    [
        pytest.param(
            [3.0, 2.0, 1.0],
            [
                "3.0000 ┤⠉⠒⠢⠤⣀⡀",
                "       │     ⠈⠉⠒⠤⠤⣀⡀",
                "1.0000 ┤           ⠈⠉⠒⠢⠤⣀",
                "  loss └ step 1         3",
            ],
            id="few measurements are joined by straight lines across the whole width",
        ),
        pytest.param(
            [3.0, nan, nan, inf, 1.0],
            [
                "3.0000 ┤⠉⠉",
                "       │",
                "1.0000 ┤              ⢀⣀⣀",
                "  loss └ step 1         5",
            ],
            id="what is not finite leaves a gap",
        ),
        pytest.param(
            [2.0, 2.0],
            [
                "       │",
                "       │",
                "2.0000 ┤⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀",
                "  loss └ step 1         2",
            ],
            id="a loss that stays the same is a flat line with one label",
        ),
        pytest.param(
            [3.0],
            [
                "       │",
                "       │",
                "3.0000 ┤⡀",
                "  loss └ step 1",
            ],
            id="one measurement is a dot",
        ),
        pytest.param([nan, inf], [], id="nothing finite, no chart"),
        pytest.param([], [], id="no measurement, no chart"),
    ],
)
def test_a_chart_shows_how_the_loss_went(losses: list[float], rows: list[str]) -> None:
    assert chart(curve(*losses), 30, 4) == rows


def test_steep_falls_are_drawn_without_a_break() -> None:
    falls_and_rises = curve(*[1.0] * 12, *[0.0] * 8, *[1.0] * 12)
    assert chart(falls_and_rises, 16, 2) == ["⠉⠉⠉⠉⠉⠉⡆   ⡏⠉⠉⠉⠉⠉", "      ⣇⣀⣀⣀⠇"]


def test_no_peak_is_lost_where_few_measurements_are_stretched() -> None:
    rows = chart(curve(0.1, 0.1, 0.7, 0.1, 0.1, 0.1), 40, 5)
    assert rows[0].startswith("0.7000 ┤")
    assert rows[0].split("┤")[1].strip()


def test_the_tiniest_numbers_are_drawn_inside_the_chart() -> None:
    tiniest = 5e-324
    assert len(chart(curve(-9 * tiniest, -9 * tiniest, 0.0), 18, 2)) == 2


def test_many_measurements_share_a_column_by_their_mean() -> None:
    columns_in_each_half = (40 - len("-1.234e+100 ┤")) * 2 // 2
    noisy = curve(*[8.0, 0.0] * 10 * columns_in_each_half, *[2.0, 0.0] * 10 * columns_in_each_half)
    rows = chart(noisy, 40, 4)
    assert [row.split(" ┤")[0].strip() for row in (rows[0], rows[2])] == ["4.0000", "1.0000"]


def test_a_script_that_counts_no_steps_has_no_steps_at_the_axis() -> None:
    rows = chart([Measurement(None, 2.0), Measurement(None, 1.0)], 30, 4)
    assert rows[-1] == "  loss └"


def test_a_chart_without_room_for_labels_has_none() -> None:
    narrow = chart(curve(2.0, 1.0), 12, 6)
    low = chart(curve(2.0, 1.0), 60, 2)
    assert (len(narrow), len(low)) == (6, 2)
    assert not {"┤", "└"} & set("".join(narrow + low))


@given(LOSSES, WIDTHS)
def test_a_spark_has_a_column_for_each_value_up_to_its_width(losses: list[float], width: int) -> None:
    drawn = spark(losses, width)
    something_to_draw = width > 0 and any(map(isfinite, losses))
    assert len(drawn) == (min(width, len(losses)) if something_to_draw else 0)


@given(LOSSES, WIDTHS, HEIGHTS)
def test_a_chart_keeps_to_its_size(losses: list[float], width: int, height: int) -> None:
    rows = chart(curve(*losses), width, height)
    something_to_draw = width > 0 and height > 0 and any(map(isfinite, losses))
    assert len(rows) == (height if something_to_draw else 0)
    assert all(len(row) <= width for row in rows)


@given(LOSSES.filter(lambda losses: any(map(isfinite, losses))), st.integers(1, 60), st.integers(1, 12))
def test_a_chart_reaches_its_highest_and_its_lowest(losses: list[float], width: int, height: int) -> None:
    rows = chart(curve(*losses), width, height)
    plot = rows[:-1] if "└" in rows[-1] else rows
    dots = [any("\u2800" < sign <= "\u28ff" for sign in row) for row in plot]
    finite = [loss / 2 for loss in losses if isfinite(loss)]
    is_flat = max(finite) == min(finite)
    assert dots[-1]
    assert dots[0] or is_flat or len(losses) > width


@pytest.mark.parametrize(
    ("count", "most", "places"),
    [
        (0, 8, []),
        (1, 8, [0]),
        (3, 8, [0, 1, 2]),
        (9, 3, [0, 4, 8]),
        (1000, 4, [0, 333, 666, 999]),
        (5, 1, [0, 4]),
    ],
)
def test_places_are_chosen_evenly_with_both_ends(count: int, most: int, places: list[int]) -> None:
    assert evenly(count, most) == places
