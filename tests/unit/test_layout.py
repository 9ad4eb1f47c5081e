"""Panels across a page: no row is too long, and rows are as equal as they can be."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grokscope.plots.layout import columns_for, figure_of_blocks


@given(count=st.integers(1, 60), most=st.integers(1, 8))
def test_rows_are_as_few_and_as_equal_as_they_can_be(count: int, most: int) -> None:
    abreast = columns_for(count, most)
    rows = math.ceil(count / abreast)
    assert abreast <= most
    assert rows == math.ceil(count / most)
    assert (abreast - 1) * rows < count  # with fewer in a row, there would be more rows


def test_blocks_stand_below_each_other_in_the_order_of_reading() -> None:
    figure, (first, second) = figure_of_blocks([6, 4], most=4, panel=(2, 3), margin=(0.5, 1))
    assert tuple(figure.get_size_inches()) == (8.5, 10)
    assert (len(first), len(second)) == (6, 4)
    boxes = [axes.get_position() for axes in figure.axes]
    places = [(-round(box.y0, 6), round(box.x0, 6)) for box in boxes]
    assert places == sorted(places)
    assert list(Counter(row for row, _ in places).values()) == [3, 3, 4]
    ends = {max(box.x1 for box in boxes if box.y0 == pytest.approx(-row)) for row, _ in places}
    assert max(ends) == pytest.approx(min(ends))  # no hole beside a row
