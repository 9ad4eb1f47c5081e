"""Pictures of how two kinds of neurons separate during training."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from grokscope.plots.files import STYLE
from grokscope.plots.palette import BLACK, BLUE, LABEL_COLOR, ORANGE, TRUTH_COLOR, VERMILION

_FEATURES = ((BLUE, "o"), (ORANGE, "s"), (VERMILION, "^"), (BLACK, "D"))
_KINDS = {True: ("will generalise", TRUTH_COLOR, "-"), False: ("will memorise", LABEL_COLOR, "--")}
_BAND = (10, 90)  # percentiles


def draw_fate(
    aurocs: Sequence[Mapping[str, Mapping[int, float]]],
    neurons: Mapping[int, Mapping[str, npt.NDArray[np.float64]]],
    generalising: npt.NDArray[np.bool_],
) -> Figure:
    """AUROC of each feature against the step, for each seed; then a panel for each feature of the neurons.

    `neurons` has the values [N] of the features at each step, and `generalising` [N] the kind that they end as.
    """
    shown = list(next(iter(neurons.values())))
    with style.context(STYLE):
        figure = Figure(figsize=(4.9 + 3.9 * len(shown), 4.4))
        first, *others = figure.subplots(1, 1 + len(shown), width_ratios=[1.25] + [1] * len(shown))
        _draw_aurocs(first, aurocs)
        for axes, name in zip(others, shown, strict=True):
            _draw_kinds(axes, {step: values[name] for step, values in neurons.items()}, generalising)
            axes.set_ylabel(name)
            axes.legend(loc="upper left")
        for axes in (first, *others):
            axes.set_xscale("symlog", linthresh=1, linscale=0.5)  # step 0 as well
            axes.set(xlabel="optimisation step", xlim=(-0.1, 1.3 * max(neurons)))
            axes.minorticks_off()
    return figure


def _draw_aurocs(axes: Axes, aurocs: Sequence[Mapping[str, Mapping[int, float]]]) -> None:
    """The mean over seeds, and a bar from the least to the most."""
    for name, (color, marker) in zip(aurocs[0], _FEATURES, strict=True):
        steps = list(aurocs[0][name])
        values = np.array([list(of_seed[name].values()) for of_seed in aurocs])  # [seeds, steps]
        mean = values.mean(axis=0)
        span = np.abs([mean - values.min(axis=0), values.max(axis=0) - mean])
        axes.errorbar(
            steps, mean, yerr=span, color=color, elinewidth=0.8, marker=marker, markersize=4, markevery=3, label=name
        )
    axes.axhline(0.5, color="0.4", linewidth=0.8, linestyle=":")
    axes.set(ylabel="AUROC for neurons that will generalise", ylim=(0.3, 1.03))
    axes.legend(loc="lower right")


def _draw_kinds(
    axes: Axes, by_step: Mapping[int, npt.NDArray[np.float64]], generalising: npt.NDArray[np.bool_]
) -> None:
    steps = list(by_step)
    values = np.stack(list(by_step.values()))  # [steps, N]
    for kind, (label, color, line) in _KINDS.items():
        own = values[:, generalising == kind]
        if own.shape[1]:
            low, high = np.percentile(own, _BAND, axis=1)
            axes.fill_between(steps, low, high, color=color, alpha=0.25, linewidth=0)
            axes.plot(steps, np.median(own, axis=1), line, color=color, label=f"{label}: {own.shape[1]}")
    axes.set_ylim(bottom=0)
