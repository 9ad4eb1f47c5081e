"""Pictures of pruned networks: accuracies against the fraction of neurons that are gone, as in Figure 6."""

import math

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from grokscope.measure import ORDERS, Pruning, PruningCurve
from grokscope.plots.files import STYLE

_MOST_ABREAST = 3
_ACCURACIES = {  # quantity → label, colour, line; those with the same meaning in a run's curves look the same there
    "train_accuracy": ("train", "#0072B2", "-"),
    "test_accuracy": ("test", "#D55E00", "-"),
    "clean_accuracy": ("clean training", "#56B4E9", "--"),
    "corrupted_accuracy": ("corrupted: as trained", "#CC79A7", "--"),
    "recovered_accuracy": ("corrupted: recovered", "#009E73", "--"),
}


def draw_pruning(pruning: Pruning, corruption: float, title: str) -> Figure:
    """One panel for each order; of random orders the mean, and a band from the 5th to the 95th percentile."""
    rows = math.ceil(len(pruning.orders) / _MOST_ABREAST)
    columns = math.ceil(len(pruning.orders) / rows)
    with style.context(STYLE):
        figure = Figure(figsize=(0.8 + 3.5 * columns, 0.9 + 3 * rows))
        panels = figure.subplots(rows, columns, sharey=True, squeeze=False)
        for axes, (name, curve) in zip(panels.flat, pruning.orders.items(), strict=False):
            if name == "random":
                _draw_band(axes, pruning.random_low, pruning.random_high)
            _draw_curve(axes, curve)
            _mark_clean_fraction(axes, corruption)
            axes.set_title(ORDERS[name][0].upper() + ORDERS[name][1:])
        for unused in panels.flat[len(pruning.orders) :]:
            unused.remove()
        for axes in panels[:, 0]:
            axes.set_ylabel("accuracy")
        figure.suptitle(title, fontsize=10)
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(handles))
    return figure


def _draw_curve(axes: Axes, curve: PruningCurve) -> None:
    for quantity, (label, color, line) in _ACCURACIES.items():
        values = getattr(curve, quantity)
        if not np.isnan(values).any():
            axes.plot(curve.fraction_pruned, values, line, color=color, label=label)
    axes.set(xlabel="fraction of neurons pruned", xlim=(0, 1), ylim=(-0.03, 1.03))


def _draw_band(axes: Axes, low: PruningCurve, high: PruningCurve) -> None:
    for quantity, (_, color, _) in _ACCURACIES.items():
        lower, upper = getattr(low, quantity), getattr(high, quantity)
        if not np.isnan(lower).any():
            axes.fill_between(low.fraction_pruned, lower, upper, color=color, alpha=0.18, linewidth=0)


def _mark_clean_fraction(axes: Axes, corruption: float) -> None:
    """1 − ξ: what is left of the training accuracy if no corrupted label is memorised."""
    axes.axhline(1 - corruption, color="0.4", linewidth=0.8, linestyle=":")
    # Beside the panel, where no curve runs.
    axes.annotate(
        "1 − ξ", (1, 1 - corruption), xytext=(3, 0), textcoords="offset points", va="center", color="0.4", fontsize=8.5
    )
