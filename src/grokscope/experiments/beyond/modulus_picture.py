"""Pictures of networks with different moduli."""

from collections.abc import Mapping, Sequence

from matplotlib import style
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from grokscope.phases import Phase
from grokscope.plots.files import STYLE
from grokscope.result import RunResult
from grokscope.tasks import is_prime

_ROWS = {"test_accuracy": "test accuracy", "train_accuracy": "train accuracy", "mean_ipr": "mean IPR"}
_LINES = {"left": ("-", -0.17), "right": (":", 0.17)}  # of a series, and how far beside the modulus it is


def draw_moduli(results: Mapping[str, Mapping[str, Sequence[RunResult]]]) -> Figure:
    """A column for each title, a line for each series of networks; marks have the colours of the phases.

    The moduli are evenly spaced, and the series side by side: some moduli are so near to each other that marks would
    hide others.
    """
    every = [network for series in results.values() for networks in series.values() for network in networks]
    moduli = sorted({network.spec.task.modulus for network in every})
    with style.context(STYLE):
        figure = Figure(figsize=(1 + 3.7 * len(results), 7.6))
        grid = figure.subplots(len(_ROWS), len(results), squeeze=False, sharex=True, sharey="row")
        for column, (title, series) in enumerate(results.items()):
            grid[0, column].set_title(title)
            grid[-1, column].set_xlabel("modulus p, in even steps")
            for axes, quantity in zip(grid[:, column], _ROWS, strict=True):
                for (line, aside), networks in zip(_LINES.values(), series.values(), strict=True):
                    places = [moduli.index(network.spec.task.modulus) + aside for network in networks]
                    _draw_series(axes, places, networks, quantity, line)
                axes.set_xticks(range(len(moduli)), list(map(str, moduli)))
                axes.set(xlim=(-0.6, len(moduli) - 0.4), ylim=(-0.04, 1.06))
        for axes, label in zip(grid[:, 0], _ROWS.values(), strict=True):
            axes.set_ylabel(label)
        figure.legend(handles=_handles(list(next(iter(results.values()))), every), loc="outside lower center", ncols=4)
    return figure


def _draw_series(axes: Axes, places: Sequence[float], networks: Sequence[RunResult], quantity: str, line: str) -> None:
    values = [getattr(network.final, quantity) for network in networks]
    axes.plot(places, values, line, color="0.5", linewidth=1.2, zorder=1)
    for place, value, network in zip(places, values, networks, strict=True):
        marker = "o" if is_prime(network.spec.task.modulus) else "s"
        color = network.phase.color if network.phase else "black"
        axes.plot(place, value, marker, color=color, markeredgecolor="black", markersize=6.5)


def _handles(series: Sequence[str], networks: Sequence[RunResult]) -> list[Artist]:
    """What marks and lines mean, as far as it occurs."""
    lines = [
        Line2D([], [], color="0.5", ls=line, label=f"{side}: {name}")
        for name, (side, (line, _)) in zip(series, _LINES.items(), strict=True)
    ]
    found = {network.phase for network in networks}
    phases = {phase.label: ("o", phase.color) for phase in Phase if phase in found}
    kinds = {"prime": ("o", "white"), "composite": ("s", "white")}
    if len({is_prime(network.spec.task.modulus) for network in networks}) == 1:
        kinds = {}  # there is nothing to tell apart
    marks = kinds | phases
    return [
        *lines,
        *(
            Line2D([], [], ls="", marker=marker, color=color, markeredgecolor="black", label=name)
            for name, (marker, color) in marks.items()
        ),
    ]
