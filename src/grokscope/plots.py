"""Pictures of single runs: curves, IPR histograms, and both on one page."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from grokscope.errors import GrokscopeError
from grokscope.result import RunResult

STYLE = Path(__file__).with_name("grokscope.mplstyle")

_ACCURACIES = {  # column of the curve → label, colour, line
    "train_accuracy": ("train", "#0072B2", "-"),
    "test_accuracy": ("test", "#D55E00", "-"),
    "corrupted_accuracy": ("corrupted: as trained", "#CC79A7", "--"),
    "recovered_accuracy": ("corrupted: recovered", "#009E73", "--"),
}
_IPR_BINS = np.linspace(0, 1, 41)


def draw_runs(results: Sequence[RunResult], titles: Sequence[str]) -> Figure:
    """One column for each run: its accuracies above, the IPR histogram of its neurons below."""
    with plt.style.context(STYLE):
        figure = Figure(figsize=(1.2 + 3.9 * len(results), 6.5))
        axes = figure.subplots(2, len(results), squeeze=False, sharey="row")
        for column, (result, title) in enumerate(zip(results, titles, strict=True)):
            draw_accuracies(axes[0, column], result)
            draw_ipr_histogram(axes[1, column], result)
            axes[0, column].set_title(f"{title}\n{result.phase.label if result.phase else 'Diverged'}")
        axes[0, 0].set_ylabel("accuracy")
        axes[1, 0].set_ylabel("neurons")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(handles) if len(results) > 1 else 2)
    return figure


def draw_accuracies(axes: Axes, result: RunResult) -> None:
    """Accuracies against the step, on a logarithmic axis: what happens early is over within tens of steps."""
    steps = [row.step for row in result.curve]
    for column, (label, color, line) in _ACCURACIES.items():
        values = np.array([getattr(row, column) for row in result.curve])
        if not np.isnan(values).all():
            axes.plot(steps, values, line, color=color, label=label)
    clean = 1 - result.dataset().corruption
    axes.axhline(clean, color="0.4", linewidth=0.8, linestyle=":")
    axes.annotate("1 − ξ", (1, clean), xytext=(2, 2), textcoords="offset points", color="0.4", fontsize=8.5)
    axes.set(xscale="log", xlabel="optimisation step", ylim=(-0.03, 1.03))


def draw_ipr_histogram(axes: Axes, result: RunResult) -> None:
    """How many neurons have which IPR; the dead have none and are counted in words."""
    axes.set(xlabel="IPR of a neuron", xlim=(0, 1))
    if result.neurons is None:
        axes.annotate("no network to measure", (0.5, 0.5), xycoords="axes fraction", ha="center")
        return
    dead = result.neurons.dead
    axes.hist(result.neurons.neuron_ipr[~dead], bins=_IPR_BINS.tolist(), color="#56B4E9", edgecolor="#1a5276")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    note = f"mean {result.neurons.mean_ipr:.2f}"
    if dead.any():
        note += f"\n{int(dead.sum())} dead"
    axes.annotate(note, (0.97, 0.95), xycoords="axes fraction", ha="right", va="top")


def settings_line(result: RunResult) -> str:
    """The settings that differ most between runs, for a title."""
    spec = result.spec
    parts = [
        f"{spec.task.operation} mod {spec.task.modulus}",
        f"α = {spec.task.data_fraction:g}",
        f"ξ = {spec.task.corruption:g}",
        f"wd = {spec.optimizer.weight_decay:g}",
    ]
    if spec.model.dropout:
        parts.append(f"dropout = {spec.model.dropout:g}")
    if spec.model.norm != "none":
        parts.append(f"{spec.model.norm} norm")
    if spec.training.batch_size:
        parts.append(f"B = {spec.training.batch_size}")
    return ", ".join(parts)


def save_figure(figure: Figure, path: Path) -> Path:
    """Write the figure in the format of the path's ending; the absolute path."""
    check_figure_path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with plt.style.context(STYLE):
            figure.savefig(path)
    except OSError as error:
        raise GrokscopeError(f"cannot write the figure {path}: {error.strerror or error}") from None
    return path.resolve()


def check_figure_path(path: Path) -> None:
    """Refuse a path whose ending names no format, before anything is computed for it."""
    if path.suffix not in (".png", ".pdf", ".svg"):
        raise GrokscopeError(f"--out = {str(path)!r} is not allowed: must end in .png, .pdf or .svg")
