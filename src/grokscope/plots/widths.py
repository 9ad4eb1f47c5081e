"""Quantities against the width of a network, over seeds."""

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

from grokscope.plots.palette import BLUE

_MOST_TICKS = 6  # whose labels fit side by side


def draw_against_width(
    axes: Axes,
    widths: npt.NDArray[np.int64],
    values: npt.NDArray[np.float64],
    label: str,
    *,
    name: str = "",
    color: str = BLUE,
) -> None:
    """The mean over seeds at each width, a band of a standard error around it, on a logarithmic axis.

    Both arrays have one entry for each network; networks of one width are its seeds.
    """
    places = np.unique(widths)
    groups = [values[widths == width] for width in places]
    means = np.array([group.mean() for group in groups])
    errors = np.array([group.std(ddof=1) / np.sqrt(len(group)) if len(group) > 1 else 0 for group in groups])
    axes.fill_between(places, means - errors, means + errors, color=color, alpha=0.25, linewidth=0)
    axes.plot(places, means, "o-", color=color, markersize=4, label=name or None)
    axes.set(xscale="log", xlabel="width N", ylabel=label)
    shown = places if len(places) <= _MOST_TICKS else places[::-2]  # with the widest
    axes.xaxis.set_major_locator(FixedLocator(shown.tolist()))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(ScalarFormatter())
