"""Panels of Figure 2: accuracies with the mean IPR, and weights and IPRs before and after training."""

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from grokscope.measure import NeuronSpectra
from grokscope.plots.palette import BAR_EDGE, BLUE, INPUT_COLOR, SKY, VERMILION
from grokscope.plots.runs import count_neurons, draw_columns
from grokscope.result import RunResult

_CURVES = {
    "train_accuracy": ("train accuracy", BLUE, "-"),
    "test_accuracy": ("test accuracy", VERMILION, "-"),
    "mean_ipr": ("mean IPR", SKY, "--"),
}
_BEFORE_COLOR, _AFTER_COLOR = "0.55", SKY


def draw_grokking(axes: Axes, result: RunResult) -> None:
    """Accuracies and mean IPR against the step, which is not logarithmic: a jump should look like one."""
    draw_columns(axes, result.curve, _CURVES, "accuracy, mean IPR")
    axes.set(xlabel="optimisation step", ylim=(-0.03, 1.03))
    axes.legend(loc="lower right")


def draw_row_before_and_after(axes: Axes, before: npt.ArrayLike, after: npt.ArrayLike, title: str) -> None:
    """The weights of one neuron [p] at the start and in the end."""
    for weights, name, color, width in ((before, "before", _BEFORE_COLOR, 1.0), (after, "after", _AFTER_COLOR, 1.5)):
        axes.plot(np.asarray(weights), color=color, linewidth=width, label=name)
    axes.set(title=title, xlabel="index", ylabel="weight")
    axes.margins(x=0.01, y=0.2)  # room for the legend
    axes.legend(loc="upper right", ncols=2)


def draw_iprs_before_and_after(axes: Axes, before: NeuronSpectra, after: NeuronSpectra) -> None:
    """How many neurons have which IPR, at the start and in the end; the dead have none."""
    bins = np.linspace(0, 1, 41).tolist()
    axes.hist(before.neuron_ipr[~before.dead], bins, color=_BEFORE_COLOR, alpha=0.7, label="before")
    axes.hist(after.neuron_ipr[~after.dead], bins, color=INPUT_COLOR, edgecolor=BAR_EDGE, label="after")
    axes.set(title="IPR of the neurons", xlabel="IPR of a neuron", ylabel="neurons", xlim=(0, 1))
    axes.legend(loc="upper right")
    count_neurons(axes, room=True)
