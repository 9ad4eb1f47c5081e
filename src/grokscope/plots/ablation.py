"""Pictures of ablations: a panel for each."""

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from grokscope.measure import Ablations
from grokscope.measure.ablation.ablation import KEY_IPR
from grokscope.plots.files import STYLE
from grokscope.plots.layout import round_ticks
from grokscope.plots.palette import INPUT_COLOR
from grokscope.plots.pruning import PRUNED_ACCURACIES

_CURVES = {
    "own_wave": ("each vector its nearest wave", "neurons replaced, from the highest IPR"),
    "shared_wave": ("each neuron one shared frequency", "neurons replaced, from the highest IPR"),
    "analytic_family": ("each neuron as in Equation 2", "neurons replaced, from the highest IPR"),
    "frequencies": ("the strongest frequencies alone", "frequencies kept"),
}
_PROGRESS = {"whole_logits": "whole", "restricted": "restricted", "excluded": "excluded"}


def draw_ablations(ablations: Ablations, title: str) -> Figure:
    """Accuracies along four ablations, distances to the analytic family, restricted and excluded logits."""
    with style.context(STYLE):
        figure = Figure(figsize=(12.6, 7.4))
        panels = list(figure.subplots(2, 3).flat)
        for axes, (name, (heading, xlabel)) in zip(panels, _CURVES.items(), strict=False):
            axes.set_title(heading)
            _draw_curve(axes, ablations, name, xlabel)
        panels[4].set_title("distance to Equation 2")
        _draw_distances(panels[4], ablations)
        panels[5].set_title(f"logits, {len(ablations.key_frequencies) or 'no'} key frequencies")
        _draw_progress(panels[5], ablations)
        for axes in (panels[0], panels[3]):
            axes.set_ylabel("accuracy")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(handles))
        figure.suptitle(title, fontsize=11, fontweight="bold")
    return figure


def _draw_curve(axes: Axes, ablations: Ablations, name: str, xlabel: str) -> None:
    rows = ablations.series(name)
    axes.set(xlabel=xlabel, ylim=(-0.03, 1.03))
    axes.xaxis.set_major_locator(round_ticks())
    if not rows:
        _say(axes, ablations.missing[name])
        return
    for measure, (label, color, line) in PRUNED_ACCURACIES.items():
        values = np.array([getattr(row.behaviour, measure) for row in rows])
        if not np.isnan(values).all():
            axes.plot([row.k for row in rows], values, linestyle=line, color=color, label=label)


def _draw_distances(axes: Axes, ablations: Ablations) -> None:
    axes.set(xlabel="IPR of a neuron", ylabel="relative distance", xlim=(0, 1.02), ylim=(-0.03, 1.03))
    if ablations.distance is None:
        _say(axes, ablations.missing["analytic_family"])
        return
    axes.plot(ablations.ipr, ablations.distance, ".", color=INPUT_COLOR, markersize=3)
    axes.axvline(KEY_IPR, color="0.4", linewidth=0.8, linestyle=":")
    means = []
    for kind, high in (("low", False), ("high", True)):
        mean = ablations.mean_distance(high=high)
        means.append(f"{kind} IPR: " + ("no neuron" if np.isnan(mean) else f"mean {mean:.2f}"))
    axes.annotate("\n".join(means), (0.03, 0.05), xycoords="axes fraction")


def _draw_progress(axes: Axes, ablations: Ablations) -> None:
    """Bars of the accuracies of the whole, the restricted and the excluded logits, with the losses written below."""
    if "progress" in ablations.missing:
        _say(axes, ablations.missing["progress"])
        return
    bars = [measure for measure in PRUNED_ACCURACIES if measure != "clean_accuracy"]
    width = 0.8 / len(bars)
    labels = []
    for place, (name, label) in enumerate(_PROGRESS.items()):
        (row,) = ablations.series(name)
        for i, measure in enumerate(bars):
            value = getattr(row.behaviour, measure)
            axes.bar(place - 0.4 + (i + 0.5) * width, value, width * 0.92, color=PRUNED_ACCURACIES[measure][1])
        labels.append(f"{label}\ntrain loss {row.behaviour.train_loss:.2g}\ntest loss {row.behaviour.test_loss:.2g}")
    axes.set_xticks(range(len(labels)), labels, fontsize=8.5)
    axes.set_ylim(0, 1.03)
    axes.grid(visible=False, axis="x")


def _say(axes: Axes, reason: str) -> None:
    axes.set_xticks([])
    axes.annotate(
        reason.replace(": ", ":\n"), (0.5, 0.5), xycoords="axes fraction", ha="center", va="center", fontsize=8.5
    )
