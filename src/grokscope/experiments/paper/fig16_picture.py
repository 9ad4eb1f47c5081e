"""Pictures of accuracies over a regularisation."""

from collections.abc import Mapping

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from grokscope.phases import Phase
from grokscope.plots.files import STYLE
from grokscope.plots.palette import ACCURACIES, CLEAN_COLOR
from grokscope.result import RunResult

_LINES = {**ACCURACIES, "clean_accuracy": ("clean", CLEAN_COLOR, ":")}


def draw_digits(series: Mapping[str, Mapping[float, RunResult]]) -> Figure:
    """A panel for each regularisation; its values are evenly spaced."""
    with style.context(STYLE):
        figure = Figure(figsize=(1 + 4.6 * len(series), 4.4))
        panels = figure.subplots(1, len(series), squeeze=False, sharey=True)[0]
        for axes, (name, results) in zip(panels, series.items(), strict=True):
            _draw_series(axes, results)
            axes.set_xlabel(name)
        panels[0].set_ylabel("accuracy")
        found = {result.phase for results in series.values() for result in results.values()}
        phases = [
            Line2D([], [], ls="", marker="o", color=phase.color, markeredgecolor="black", label=phase.label)
            for phase in Phase
            if phase in found
        ]
        figure.legend(handles=[*panels[0].get_lines()[: len(_LINES)], *phases], loc="outside lower center", ncols=4)
    return figure


def _draw_series(axes: Axes, results: Mapping[float, RunResult]) -> None:
    places = range(len(results))
    for column, (label, color, line) in _LINES.items():
        axes.plot(places, [result.final[column] for result in results.values()], line, color=color, label=label)
    for place, result in zip(places, results.values(), strict=True):
        color = result.phase.color if result.phase else "black"
        axes.plot(place, result.final.test_accuracy, "o", color=color, markeredgecolor="black", zorder=3)
    axes.set_xticks(list(places), [f"{value:g}" for value in results])
    axes.set_ylim(-0.03, 1.03)
