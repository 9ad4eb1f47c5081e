"""Pictures of what happened during a run: its curve with the events marked, and the fate of the corrupted examples."""

import numpy as np
import numpy.typing as npt
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from grokscope.measure import Ledger, Row, TrainingEvents
from grokscope.measure.ledger import NEVER
from grokscope.plots.files import STYLE
from grokscope.plots.layout import columns_for
from grokscope.plots.palette import BLACK, GREEN, INPUT_COLOR, PINK, SKY, VERMILION, VIOLET
from grokscope.plots.pruning import LOSSES
from grokscope.plots.runs import draw_accuracies, draw_columns, shared_handles
from grokscope.plots.saying import say_instead
from grokscope.result import RunResult

_EVENTS = {  # label, colour, line
    "memorised": ("memorised", PINK, (0, (1, 1))),
    "grokked": ("grokked", VERMILION, (0, (5, 2))),
    "unlearned": ("unlearned", GREEN, (0, (3, 1, 1, 1))),
    "forgot": ("forgot", BLACK, (0, (2, 2))),
    "collapsed": ("norms collapsed", "0.5", "-"),
}
_NORM_LINES = {  # U and V are alike, so the line of one must show through that of the other
    "norm_u": (SKY, "-"),
    "norm_v": (VIOLET, ":"),
    "norm_w": (BLACK, "-"),
}
_LEGEND_ABREAST = 5
_FATES = {"memorised": PINK, "recovered": GREEN, "other": "0.6"}


def draw_dynamics(result: RunResult, events: TrainingEvents, title: str) -> Figure:
    """Accuracies, losses, norms and mean IPR against the step; a line in each panel for every event that happened."""
    norms = norm_lines(result)
    with style.context(STYLE):
        figure = Figure(figsize=(9.6, 7.2))
        accuracies, losses, sizes, periodicity = figure.subplots(2, 2, sharex=True).flat
        draw_accuracies(accuracies, result)
        accuracies.set_ylabel("accuracy")
        draw_columns(losses, result.curve, LOSSES, "loss")
        if _decades(result.curve) >= 1:  # within a decade a logarithmic axis has no readable ticks
            losses.set_yscale("log")
        draw_columns(sizes, result.curve, norms, "Frobenius norm")
        sizes.set_ylim(bottom=0)
        draw_columns(
            periodicity, result.curve, {"mean_ipr": ("mean IPR", INPUT_COLOR, "-")}, "mean IPR of live neurons"
        )
        periodicity.set_ylim(0, 1.1 * max((row.mean_ipr for row in result.curve if row.mean_ipr > 0), default=1))
        for axes in (accuracies, losses, sizes, periodicity):
            axes.set(xscale="log", xlabel="")
            _mark(axes, events)
        for axes in (sizes, periodicity):
            axes.set_xlabel("optimisation step")
        for axes in (losses, sizes) if norms else (losses,):
            axes.legend(loc="best", frameon=True, framealpha=0.85, edgecolor="none")
        if not norms:
            _empty(sizes, "no norms: the network does not say what its neurons are", above=accuracies)
        if all(np.isnan(row.mean_ipr) for row in result.curve):
            _empty(periodicity, "no IPR: the task has no waves, or the network no neurons to measure", above=losses)
        handles = shared_handles([accuracies])
        happened = [_EVENTS[name][0] for name, event in events.events().items() if event.step is not None]
        marks = (line for line in accuracies.get_lines() if line.get_gid() == "event")
        handles |= dict(zip(happened, marks, strict=True))
        if handles:  # in the panels there is no room for so many
            entries = columns_for(len(handles), _LEGEND_ABREAST)
            figure.legend(handles.values(), handles, loc="outside lower center", ncols=entries)
        figure.suptitle(f"{title}\n{result.outcome}", fontsize=11, fontweight="bold")
    return figure


def norm_lines(result: RunResult) -> dict[str, tuple[str, str, str]]:
    """The norms that the network has, each with its name, colour and line."""
    return {
        column: (name, *_NORM_LINES[column])
        for column, name in result.spec.model.norm_curves.items()
        if not all(np.isnan(row[column]) for row in result.curve)
    }


def _empty(axes: Axes, words: str, above: Axes) -> None:
    """A panel without a curve, and so without marks in it; the steps that it would show go to the one above."""
    for line in axes.get_lines():
        line.remove()
    say_instead(axes, words)
    above.tick_params(labelbottom=True)
    above.set_xlabel("optimisation step")


def _decades(curve: tuple[Row, ...]) -> float:
    """Over how many powers of ten the losses range; those that are zero or no number do not count."""
    losses = np.array([[row.train_loss, row.test_loss] for row in curve])
    known = losses[np.isfinite(losses) & (losses > 0)]
    return float(np.log10(known.max() / known.min())) if len(known) else 0.0


def _mark(axes: Axes, events: TrainingEvents) -> None:
    """A vertical line at the first measured step at which each event is so."""
    for name, event in events.events().items():
        if event.step is not None:
            _, color, line = _EVENTS[name]
            mark = axes.axvline(event.step, color=color, linestyle=line, linewidth=1.4)
            mark.set_gid("event")


def draw_ledger(ledger: Ledger, title: str) -> Figure:
    """When corrupted examples were first memorised and first recovered, and what the network says of them over time.

    Examples whose drawn label is the true one are left out of both panels, and their number is said.
    """
    apart = ~ledger.drawn_true
    count = int(apart.sum())
    with style.context(STYLE):
        figure = Figure(figsize=(9.6, 4.2))
        first, now = figure.subplots(1, 2)
        _draw_first_steps(first, ledger, apart)
        memorised, recovered = (hits[:, apart].sum(axis=1) for hits in (ledger.memorised, ledger.recovered))
        counts = {"memorised": memorised, "recovered": recovered, "other": count - memorised - recovered}
        for fate, values in counts.items():
            label = "another answer" if fate == "other" else fate
            now.plot(ledger.steps, values, color=_FATES[fate], label=label)
        now.set(xlabel="optimisation step", ylabel="corrupted examples, at this step", ylim=(0, max(count, 1) * 1.03))
        now.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
        for axes in (first, now):
            axes.set(xscale="log", xlim=(0.7, 1.2 * max([*ledger.steps, 1])))
        left_out = f"{count} corrupted examples with a wrong label; {int((~apart).sum())} drew the true one, left out"
        figure.suptitle(f"{title}\n{left_out}", fontsize=11, fontweight="bold")
    return figure


def _draw_first_steps(axes: Axes, ledger: Ledger, apart: npt.NDArray[np.bool_]) -> None:
    """Histograms over bins that grow with the step, but hold at least one measured step each."""
    axes.set(xlabel="first measured step at which it is so", ylabel="corrupted examples")
    if not len(ledger.steps):
        axes.annotate("nothing was measured", (0.5, 0.5), xycoords="axes fraction", ha="center")
        return
    bins = np.unique(np.geomspace(0.7, ledger.steps[-1] * 1.001 + 1, 36).round() + 0.5 - 1)
    for fate, steps, color in (
        ("memorised", ledger.memorised_step[apart], _FATES["memorised"]),
        ("recovered", ledger.recovered_step[apart], _FATES["recovered"]),
    ):
        known = steps[steps != NEVER]
        label = f"first {fate}: {len(known)}; never: {len(steps) - len(known)}"
        axes.hist(known, bins=bins.tolist(), color=color, alpha=0.6, label=label)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1))
