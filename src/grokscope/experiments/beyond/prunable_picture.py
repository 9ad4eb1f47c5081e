"""Pictures of how much of a network can be pruned."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from grokscope.plots.files import STYLE
from grokscope.plots.palette import BLACK, BLUE, ORANGE
from grokscope.plots.phase_diagram import field_label

if TYPE_CHECKING:
    from grokscope.experiments.beyond.prunable import Prunable

_COLORS, _MARKERS = (BLUE, ORANGE, BLACK), ("o", "s", "^")  # one for each weight decay


def draw_prunable(found: "Mapping[str, Mapping[float, Mapping[object, Prunable]]]") -> Figure:
    """A panel for each field, a line for each weight decay, over the values of the field in even steps."""
    with style.context(STYLE):
        figure = Figure(figsize=(0.9 + 3.2 * len(found), 3.9))
        panels = figure.subplots(1, len(found), squeeze=False, sharey=True)[0]
        for axes, (path, by_decay) in zip(panels, found.items(), strict=True):
            for line, (decay, by_value) in enumerate(by_decay.items()):
                _draw_values(axes, list(by_value.values()), decay, line)
            values = list(next(iter(by_decay.values())))
            axes.set_xticks(range(len(values)), [f"{v:g}" if isinstance(v, float) else str(v) for v in values])
            axes.set(xlabel=field_label(path), xlim=(-0.4, len(values) - 0.6), ylim=(-0.03, 1.03))
        panels[0].set_ylabel("fraction of the neurons")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def _draw_values(axes: Axes, networks: "list[Prunable]", decay: float, line: int) -> None:
    color, marker = _COLORS[line], _MARKERS[line]
    fractions = [network.fraction for network in networks]
    name = f"weight decay {decay:g}"
    axes.plot(fractions, "-", color=color, marker=marker, label=f"prunable, {name}")
    axes.plot([network.low_ipr for network in networks], ":", color=color, label=f"IPR below 0.5, {name}")
    lost = [place for place, fraction in enumerate(fractions) if math.isnan(fraction)]
    # One above the other, so that none hides another.
    axes.plot(lost, [0.05 * line] * len(lost), "x", color=color, markersize=7, label=f"does not generalise, {name}")
