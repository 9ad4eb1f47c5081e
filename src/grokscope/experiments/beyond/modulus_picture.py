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
_LINES = ("-", ":")


def draw_moduli(results: Mapping[str, Mapping[str, Sequence[RunResult]]]) -> Figure:
    """A column for each title, a line for each series of networks; marks have the colours of the phases."""
    with style.context(STYLE):
        figure = Figure(figsize=(1 + 3.7 * len(results), 7.6))
        grid = figure.subplots(len(_ROWS), len(results), squeeze=False, sharex=True, sharey="row")
        for column, (title, series) in enumerate(results.items()):
            grid[0, column].set_title(title)
            grid[-1, column].set_xlabel("modulus p")
            for axes, quantity in zip(grid[:, column], _ROWS, strict=True):
                for line, networks in zip(_LINES, series.values(), strict=False):
                    _draw_series(axes, networks, quantity, line)
                axes.set_ylim(-0.04, 1.06)
        for axes, label in zip(grid[:, 0], _ROWS.values(), strict=True):
            axes.set_ylabel(label)
        figure.legend(handles=_handles(list(next(iter(results.values())))), loc="outside lower center", ncols=5)
    return figure


def _draw_series(axes: Axes, networks: Sequence[RunResult], quantity: str, line: str) -> None:
    points = [(network.spec.task.modulus, getattr(network.final, quantity), network.phase) for network in networks]
    axes.plot([p for p, _, _ in points], [value for _, value, _ in points], line, color="0.5", linewidth=1.2, zorder=1)
    for p, value, phase in points:
        color = phase.color if phase else "black"
        axes.plot(p, value, "o" if is_prime(p) else "s", color=color, markeredgecolor="black", markersize=6.5)


def _handles(series: Sequence[str]) -> list[Artist]:
    lines = [Line2D([], [], color="0.5", ls=line, label=name) for name, line in zip(series, _LINES, strict=False)]
    phases = {phase.label: ("o", phase.color) for phase in Phase}
    marks = {"prime": ("o", "white"), "composite": ("s", "white")} | phases
    return [
        *lines,
        *(
            Line2D([], [], ls="", marker=marker, color=color, markeredgecolor="black", label=name)
            for name, (marker, color) in marks.items()
        ),
    ]
