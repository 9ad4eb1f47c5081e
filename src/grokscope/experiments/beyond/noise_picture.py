"""Pictures of networks that were trained with different kinds of wrong labels."""

from collections.abc import Mapping

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from grokscope.plots.files import STYLE
from grokscope.plots.palette import ACCURACIES, LABEL_COLOR, TRUTH_COLOR
from grokscope.result import RunResult

_ANSWERS = {"truth": TRUTH_COLOR, "truth + 1": LABEL_COLOR, "another": "0.75"}
_SHORT = {"Partial Inversion": "Partial Inv.", "Full Inversion": "Full Inv.", "Memorization": "Memoriz."}


def draw_noise(
    results: Mapping[str, Mapping[str, RunResult]], answers: Mapping[str, Mapping[str, Mapping[str, float]]]
) -> Figure:
    """A column for each noise, a group of bars for each weight decay: accuracies, and answers on test pairs."""
    with style.context(STYLE):
        figure = Figure(figsize=(0.8 + 3.2 * len(results), 6.6))
        grid = figure.subplots(2, len(results), squeeze=False, sharey="row")
        for (above, below), (noise, by_decay) in zip(grid.T, results.items(), strict=True):
            _draw_accuracies(above, by_decay)
            _draw_answers(below, answers[noise])
            above.set_title(noise)
        grid[0, 0].set_ylabel("accuracy")
        grid[1, 0].set_ylabel("answers on test pairs\nof noisy operands")
        for axes in grid[1]:
            axes.set_xlabel("weight decay")
        above, below = (axes.get_legend_handles_labels() for axes in grid[:, 0])
        handles, labels = ([*first, *second] for first, second in zip(above, below, strict=True))
        figure.legend(handles, labels, loc="outside lower center", ncols=len(handles))
    return figure


def _draw_accuracies(axes: Axes, results: Mapping[str, RunResult]) -> None:
    places = np.arange(len(results))
    width = 0.8 / len(ACCURACIES)
    for i, (column, (label, color, _)) in enumerate(ACCURACIES.items()):
        values = [getattr(result.final, column) for result in results.values()]
        axes.bar(places + (i - 1.5) * width, values, 0.9 * width, color=color, label=label)
    clean = 1 - next(iter(results.values())).dataset().corruption
    axes.axhline(clean, color="0.4", linewidth=0.8, linestyle=":", zorder=3)
    # Beside the panel, where no bar is.
    axes.text(1.01, clean, "1 − ξ", transform=axes.get_yaxis_transform(), va="center", color="0.4", fontsize=8.5)
    phases = [result.outcome for result in results.values()]
    labels = [f"{decay}\n{_SHORT.get(phase, phase)}" for decay, phase in zip(results, phases, strict=True)]
    axes.set_xticks(places, labels)
    axes.set_ylim(0, 1.03)
    axes.grid(visible=False, axis="x")


def _draw_answers(axes: Axes, answers: Mapping[str, Mapping[str, float]]) -> None:
    bottom = np.zeros(len(answers))
    for answer, color in _ANSWERS.items():
        shares = np.array([said[answer] for said in answers.values()])
        axes.bar(np.arange(len(answers)), shares, 0.7, bottom=bottom, color=color, label=answer)
        bottom += shares
    axes.set_xticks(np.arange(len(answers)), list(answers))
    axes.set_ylim(0, 1.03)
    axes.grid(visible=False, axis="x")
