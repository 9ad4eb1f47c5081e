"""Pictures of how much of a network can be pruned."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from grokscope.plots.files import STYLE
from grokscope.plots.palette import BLACK, BLUE, ORANGE
from grokscope.plots.phase_diagram import field_label

if TYPE_CHECKING:
    from grokscope.experiments.beyond.prunable import Prunable

_COLORS, _MARKERS = (BLUE, ORANGE, BLACK), ("o", "s", "^")  # one for each weight decay
_ASIDE = 0.2  # how far apart weight decays are at one kind


def draw_prunable(found: "Mapping[str, Mapping[float, Mapping[object, Prunable]]]") -> Figure:
    """A panel for each field, a line for each weight decay, over the values of the field.

    Numbers are where they are, and widths on a logarithmic axis; kinds are side by side, and no line joins them.
    """
    with style.context(STYLE):
        figure = Figure(figsize=(0.9 + 3.2 * len(found), 3.9))
        panels = figure.subplots(1, len(found), squeeze=False, sharey=True)[0]
        for axes, (path, by_decay) in zip(panels, found.items(), strict=True):
            values = list(next(iter(by_decay.values())))
            numbers = [float(value) for value in values if isinstance(value, int | float)]
            for line, (decay, by_value) in enumerate(by_decay.items()):
                aside = _ASIDE * (line - (len(by_decay) - 1) / 2)
                places = numbers or [place + aside for place in range(len(values))]
                _draw_values(axes, places, list(by_value.values()), decay, line, joined=bool(numbers))
            if path == "model.width":
                axes.set_xscale("log", base=2)
                axes.xaxis.set_minor_locator(NullLocator())
            axes.set_xticks(numbers or range(len(values)), list(map(_shown, values)))
            axes.margins(x=0.1)
            axes.set(xlabel=field_label(path), ylim=(-0.03, 1.03))
        panels[0].set_ylabel("fraction of the neurons")
        handles, _ = panels[0].get_legend_handles_labels()
        every = [one for by_decay in found.values() for by_value in by_decay.values() for one in by_value.values()]
        if any(math.isnan(one.fraction) for one in every):
            handles.append(Line2D([], [], ls="", marker="x", markersize=7, color="0.3", label="does not generalise"))
        figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).replace("x2+y2", "x² + y²")


def _draw_values(
    axes: Axes, places: Sequence[float], networks: "Sequence[Prunable]", decay: float, line: int, *, joined: bool
) -> None:
    color, marker = _COLORS[line], _MARKERS[line]
    name = f"weight decay {decay:g}"
    axes.plot(
        places,
        [network.fraction for network in networks],
        linestyle="-" if joined else "",
        color=color,
        marker=marker,
        label=f"prunable, {name}",
    )
    axes.plot(
        places,
        [network.low_ipr for network in networks],
        linestyle=":" if joined else "",
        color=color,
        marker=marker,
        markerfacecolor="white",
        markersize=4.5,
        label=f"IPR below 0.5, {name}",
    )
    lost = [place for place, network in zip(places, networks, strict=True) if math.isnan(network.fraction)]
    # One above the other, so that none hides another.
    axes.plot(lost, [0.05 * line] * len(lost), "x", color=color, markersize=7)
