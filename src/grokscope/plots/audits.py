"""Pictures of label audits: of one network, and of all networks of a sweep."""

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from grokscope.measure import Audit
from grokscope.plots.files import STYLE
from grokscope.plots.palette import BLACK, BLUE, GREEN, ORANGE, PINK, SKY, VERMILION
from grokscope.plots.phase_diagram import ValueMap, draw_phase_diagram
from grokscope.sweeps.audits import SweepAudit

_LINES = {  # score → colour, line; what lies upon each other is told apart by the gaps of the upper line
    "margin": (BLUE, "-"),
    "loss": (SKY, "-"),
    "confidence": (GREEN, "-"),
    "cleanlab_self_confidence": (PINK, (0, (1, 1))),
    "cleanlab_normalized_margin": (BLACK, (0, (1, 1))),
    "pruned_margin": (VERMILION, "--"),
    "pruned_loss": (ORANGE, "--"),
}
_WRONG_COLOR, _RIGHT_COLOR = VERMILION, SKY
_BINS = 60
_CLOSE_UP = 0.8  # from where on precision and recall are shown, if no curve is below
_MAPPED = ("margin", "pruned_margin")


def draw_audit(audit: Audit, title: str) -> Figure:
    """The precision–recall curves of all scores, and the values of the best one for wrong and for right labels."""
    with style.context(STYLE):
        figure = Figure(figsize=(10.4, 4.8))
        curves, histogram = figure.subplots(1, 2)
        draw_precision_recall(curves, audit)
        draw_score_histogram(histogram, audit, audit.best)
        figure.suptitle(title)
        handles, labels = curves.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(4, max(1, len(handles))))
    return figure


def draw_precision_recall(axes: Axes, audit: Audit) -> None:
    """One curve for each score, with its AUROC, and what guessing gives; a close-up if all scores are good."""
    lowest = _CLOSE_UP
    for name, score in audit.scores.items():
        if score.curve is None:
            continue
        color, line = _LINES[name]
        label = name.replace("_", " ") + (f", AUROC {score.auroc:.3f}" if score.auroc is not None else "")
        precision = np.concatenate([score.curve.precision[:1], score.curve.precision])  # from recall 0 on
        axes.plot(np.concatenate([[0.0], score.curve.recall]), precision, color=color, linestyle=line, label=label)
        if score.curve.precision[score.curve.recall <= _CLOSE_UP].min(initial=1) < _CLOSE_UP:
            lowest = 0.0
    axes.set(xlabel="recall: found, of the wrong labels", ylabel="precision: wrong, of those found")
    margin = 0.02 * (1 - lowest)
    axes.set(xlim=(lowest - margin, 1 + margin), ylim=(lowest - margin, 1 + 2 * margin))
    axes.locator_params(nbins=5)
    if not audit.wrong.any():
        axes.annotate("no label is wrong:\nthere is nothing to find", (0.5, 0.5), ha="center", va="center")
        return
    guessing = float(audit.wrong.mean())
    axes.axhline(guessing, color="0.4", linewidth=0.8, linestyle=":", label=f"guessing, precision {guessing:.2f}")


def draw_score_histogram(axes: Axes, audit: Audit, name: str) -> None:
    """How many wrong and how many right labels have which value of a score."""
    values = audit.scores[name].values
    bins = np.linspace(values.min(), values.max(), _BINS + 1).tolist() if np.ptp(values) else _BINS
    for kind, mask, color in (("right", ~audit.wrong, _RIGHT_COLOR), ("wrong", audit.wrong, _WRONG_COLOR)):
        if mask.any():
            axes.hist(values[mask], bins=bins, color=color, alpha=0.65, label=f"{int(mask.sum())} {kind} labels")
    of_label = f"{name.replace('_', ' ')} of an example"
    if name.endswith("margin") and not name.startswith("cleanlab"):
        axes.axvline(0, color="0.2", linewidth=0.8, linestyle=":")
        of_label += "\n(above 0 the answer is not the label)"
    axes.set(xlabel=of_label, ylabel="examples")
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.ticklabel_format(axis="x", scilimits=(-2, 3))
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


def draw_audit_map(audit: SweepAudit) -> Figure:
    """AUROC of the margins, of the whole and of the pruned networks, above the phase diagram."""
    maps = {
        f"AUROC of the {name.replace('_', ' ')}": ValueMap(audit.mean("auroc", name), 0.5, why_none="no AUROC")
        for name in _MAPPED
        if name in audit.score_names
    }
    return draw_phase_diagram(audit.diagram, maps=maps)
