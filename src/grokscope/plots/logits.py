"""Pictures of what a network answers: logits of single examples, margins of all."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from grokscope.arrays import Int64Array
from grokscope.measure import LogitTable
from grokscope.measure.logits import PARTS
from grokscope.plots.files import STYLE
from grokscope.plots.layout import round_ticks
from grokscope.plots.palette import ACCURACIES, CLEAN_COLOR, LABEL_COLOR, TEST, TRUTH_COLOR
from grokscope.plots.runs import settings_line
from grokscope.result import RunResult

_ABREAST = 4
_PART_COLORS = {"corrupted": ACCURACIES["corrupted_accuracy"][1], "clean": CLEAN_COLOR, "test": TEST[1]}
_BINS = 60
_SHOWN_POSITIONS = 8  # of an example, in its title


def draw_logits(result: RunResult, table: LogitTable, shown: Int64Array, logits: npt.NDArray[np.float32]) -> Figure:
    """Above, the logits [examples, p] of the shown examples; below, the margins of all examples."""
    abreast = max(1, min(_ABREAST, len(shown)))
    rows = -(-len(shown) // abreast)
    with style.context(STYLE):
        figure = Figure(figsize=(max(7.0, 0.8 + 3.1 * abreast), 3.6 + 2.3 * rows))
        grid = figure.add_gridspec(rows + 1, abreast, height_ratios=[*[2.3] * rows, 3])
        first: Axes | None = None
        for place, (k, row) in enumerate(zip(shown, logits, strict=True)):
            axes = figure.add_subplot(grid[divmod(place, abreast)], sharey=first)
            first = first or axes
            _draw_example(axes, table, int(k), row)
            axes.set_title(": ".join(_heading(table, int(k))), fontsize=9, fontweight="normal")
            if place % abreast == 0:
                axes.set_ylabel("logit")
        _draw_margins(figure.add_subplot(grid[-1, :]), table)
        name = "the analytic network" if result.engine == "analytic" else settings_line(result)
        figure.suptitle(f"{name}: {result.outcome}", fontweight="bold", fontsize=11)
        if first is not None:
            handles, labels = first.get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def draw_logits_of_networks(
    networks: Mapping[str, tuple[LogitTable, npt.NDArray[np.float32]]], shown: Int64Array
) -> Figure:
    """One row for each network, title → (table, logits [examples, p]); one column for each shown example."""
    with style.context(STYLE):
        figure = Figure(figsize=(1.0 + 3.0 * max(1, len(shown)), 0.7 + 2.3 * len(networks)))
        grid = figure.subplots(len(networks), max(1, len(shown)), sharey=True, sharex=True, squeeze=False)
        for row, (title, (table, logits)) in zip(grid, networks.items(), strict=True):
            for axes, k, own in zip(row, shown, logits, strict=True):
                _draw_example(axes, table, int(k), own)
                axes.set_xlabel("")
            broken = title.replace(" (", "\n(")  # rows are low
            row[0].set_ylabel(f"{broken}\nlogit")
        table = next(iter(networks.values()))[0]
        for axes, k in zip(grid[0], shown, strict=True):  # below are the same examples
            axes.set_title("\n".join(_heading(table, int(k))), fontsize=10)
        for axes in grid[-1]:
            axes.set_xlabel("label")
        handles, labels = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def _draw_example(axes: Axes, table: LogitTable, k: int, logits: npt.NDArray[np.float32]) -> None:
    truth, label = int(table.truth[k]), int(table.label[k])
    axes.plot(np.arange(len(logits)), logits, color="0.55", linewidth=0.9)
    axes.plot(truth, logits[truth], "o", color=TRUTH_COLOR, markersize=6, label="true label")
    # Smaller, so that a drawn label that is the true one hides nothing.
    axes.plot(label, logits[label], "o", color=LABEL_COLOR, markersize=4.5, label="label trained on")
    axes.set_xlabel("label")
    axes.xaxis.set_major_locator(round_ticks())


def _heading(table: LogitTable, k: int) -> tuple[str, str]:
    """An example and its labels: its tokens, or of a vector, whose numbers say nothing, its place."""
    tokens = table.pairs[k]
    shown = ", ".join(map(str, tokens[:_SHOWN_POSITIONS]))
    name = str(k) if tokens.dtype.kind == "f" else f"({shown}{', …' if len(tokens) > _SHOWN_POSITIONS else ''})"
    return f"example {name}", f"true {table.truth[k]}, trained on {table.label[k]}"


def _draw_margins(axes: Axes, table: LogitTable) -> None:
    """Normalised, because the parts differ in size."""
    margins = {name: values for name in PARTS if len(values := table.margins(name))}
    everything = np.concatenate([np.zeros(1), *margins.values()])  # with 0, which is what they are compared with
    bins = np.histogram_bin_edges(everything, _BINS).tolist()
    for name, values in margins.items():
        rival = "label trained on" if name == "corrupted" else "best other label"
        axes.hist(
            values,
            bins=bins,
            weights=np.full(len(values), 1 / len(values)),
            histtype="stepfilled",
            alpha=0.45,
            color=_PART_COLORS[name],
            label=f"{name}: minus {rival} ({(values > 0).mean():.0%} above 0)",
        )
    axes.axvline(0, color="0.2", linewidth=0.9)
    axes.set(xlabel="logit of the true label minus that of its rival", ylabel="fraction of the examples")
    axes.margins(y=0.25)  # room for the legend
    axes.legend(loc="upper left", frameon=True, framealpha=0.9, edgecolor="none")  # the line at 0 may be behind it
    if not table.corrupted.any():
        axes.set_title("no corrupted examples", fontsize=9, fontweight="normal")
