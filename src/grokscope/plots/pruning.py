"""Pictures of pruned networks: accuracies or losses against the fraction of neurons that are gone."""

import math
from collections.abc import Mapping

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from grokscope.measure import ORDERS, Pruning, PruningCurve
from grokscope.plots.files import STYLE
from grokscope.plots.palette import ACCURACIES, CLEAN_COLOR, TEST, TRAIN, Style

Dash = str | tuple[float, tuple[float, ...]]

_MOST_ABREAST = 3
PRUNED_ACCURACIES: dict[str, tuple[str, str, Dash]] = {  # label, colour, line: each has a dash of its own
    "train_accuracy": ACCURACIES["train_accuracy"],
    "test_accuracy": (*TEST[:2], (0, (8, 1.3))),
    "clean_accuracy": ("clean training", CLEAN_COLOR, (0, (1, 1))),
    "corrupted_accuracy": ACCURACIES["corrupted_accuracy"],
    "recovered_accuracy": ACCURACIES["recovered_accuracy"],
}
LOSSES: dict[str, Style] = {"train_loss": TRAIN, "test_loss": (*TEST[:2], "--")}


def draw_pruning(pruning: Pruning, corruption: float, title: str) -> Figure:
    """One panel for each order; of random orders the mean, and a band from the 5th to the 95th percentile."""
    rows = math.ceil(len(pruning.orders) / _MOST_ABREAST)
    columns = math.ceil(len(pruning.orders) / rows)
    with style.context(STYLE):
        figure = Figure(figsize=(0.8 + 3.5 * columns, 0.9 + 3 * rows))
        panels = figure.subplots(rows, columns, sharey=True, squeeze=False)
        clean = clean_share(corruption)
        for axes, (name, curve) in zip(panels.flat, pruning.orders.items(), strict=False):
            if name == "random":
                _draw_band(axes, pruning.random_low, pruning.random_high)
            _draw_curve(axes, curve)
            _mark(axes, *clean)
            axes.set_title(ORDERS[name][0].upper() + ORDERS[name][1:])
        for unused in panels.flat[len(pruning.orders) :]:
            unused.remove()
        for axes in panels[:, 0]:
            axes.set_ylabel("accuracy")
        figure.suptitle(title, fontsize=10)
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(handles))
    return figure


def draw_prunings(
    networks: Mapping[str, Mapping[str, PruningCurve]],
    marked: tuple[str, float],
    *,
    losses: bool = False,
    until: Mapping[str, float] | None = None,
) -> Figure:
    """One row for each network, one column for each order: networks are title → order → curve.

    A level that curves are compared with is marked. `until` says at which fraction of pruned neurons the axis of an
    order ends; at all of them if it does not.
    """
    orders = list(dict.fromkeys(name for curves in networks.values() for name in curves))
    with style.context(STYLE):
        figure = Figure(figsize=(1.0 + 4.2 * len(orders), 0.7 + 2.8 * len(networks)))
        grid = figure.subplots(len(networks), len(orders), sharey="row", sharex="col", squeeze=False)
        for row, (title, curves) in zip(grid, networks.items(), strict=True):
            for axes, name in zip(row, orders, strict=True):
                _draw_curve(axes, curves[name], LOSSES if losses else PRUNED_ACCURACIES)
                axes.set(xlim=(0, (until or {}).get(name, 1)), xlabel="")
                _mark(axes, *marked)
            row[0].set_ylabel(f"{title}\n{'loss' if losses else 'accuracy'}")
        for axes, name in zip(grid[0], orders, strict=True):
            axes.set_title(ORDERS[name][0].upper() + ORDERS[name][1:])
        for axes in grid[-1]:
            axes.set_xlabel("fraction of neurons pruned")
        handles, labels = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(handles))
    return figure


def _draw_curve(
    axes: Axes, curve: PruningCurve, quantities: Mapping[str, tuple[str, str, Dash]] = PRUNED_ACCURACIES
) -> None:
    for quantity, (label, color, line) in quantities.items():
        values = getattr(curve, quantity)
        if not np.isnan(values).any():
            axes.plot(curve.fraction_pruned, values, linestyle=line, color=color, label=label)
    axes.set(xlabel="fraction of neurons pruned", xlim=(0, 1))
    if quantities is PRUNED_ACCURACIES:
        axes.set_ylim(-0.03, 1.03)


def _draw_band(axes: Axes, low: PruningCurve, high: PruningCurve) -> None:
    for quantity, (_, color, _) in PRUNED_ACCURACIES.items():
        lower, upper = getattr(low, quantity), getattr(high, quantity)
        if not np.isnan(lower).any():
            axes.fill_between(low.fraction_pruned, lower, upper, color=color, alpha=0.18, linewidth=0)


def clean_share(corruption: float) -> tuple[str, float]:
    """What is left of the training accuracy if no corrupted label is memorised."""
    return "1 − ξ", 1 - corruption


def _mark(axes: Axes, name: str, level: float) -> None:
    axes.axhline(level, color="0.4", linewidth=0.8, linestyle=":")
    # Beside the panel, where no curve runs.
    axes.annotate(
        name,
        (1, level),
        xycoords=("axes fraction", "data"),
        xytext=(3, 0),
        textcoords="offset points",
        va="center",
        color="0.4",
        fontsize=8.5,
    )
