"""Where panels and ticks stand, so that a figure stays legible across a page."""

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

Size = tuple[float, float]  # width and height in inches


def columns_for(count: int, most: int) -> int:
    """How many of some panels, or entries of a legend, stand in a row if at most so many may; rows are balanced.

    >>> [columns_for(count, most=4) for count in (1, 4, 5, 6, 7, 9)]
    [1, 4, 3, 3, 4, 3]
    """
    return math.ceil(count / math.ceil(count / most))


def round_ticks() -> MaxNLocator:
    """Places of ticks for whole numbers: 100, 200, 300 are read better than 60, 120, 180."""
    return MaxNLocator(7, steps=[1, 2, 5, 10], integer=True)


def figure_of_blocks(counts: Sequence[int], most: int, panel: Size, margin: Size) -> tuple[Figure, list[list[Axes]]]:
    """Blocks of so many panels below each other, each in rows of its own length; all are as wide as the widest."""
    abreast = [columns_for(count, most) for count in counts]
    heights = [math.ceil(count / columns) for count, columns in zip(counts, abreast, strict=True)]
    figure = Figure(figsize=(margin[0] + panel[0] * max(abreast), margin[1] + panel[1] * sum(heights)))
    grid = figure.add_gridspec(sum(heights), math.lcm(*abreast))
    blocks = []
    for block, (count, columns) in enumerate(zip(counts, abreast, strict=True)):
        top, span = sum(heights[:block]), grid.ncols // columns
        places = [divmod(place, columns) for place in range(count)]
        blocks.append([figure.add_subplot(grid[top + row, span * at : span * (at + 1)]) for row, at in places])
    return figure, blocks
