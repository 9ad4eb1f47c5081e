"""Pictures of the waves in a network's weights."""

from collections.abc import Sequence
from textwrap import fill

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec

from grokscope.measure import NeuronWaves, neuron_spectra, neuron_waves, output_waves, why_no_relation
from grokscope.measure.spectra.array_names import where_vectors_lie
from grokscope.measure.spectra.waves import HIGH_IPR, LOW_IPR, phase_relation
from grokscope.models import Weights
from grokscope.plots.files import STYLE
from grokscope.plots.layout import round_ticks
from grokscope.plots.palette import BAR_EDGE, BLUE, INPUT_COLOR, ORANGE, OUTPUT_COLOR, VERMILION
from grokscope.plots.runs import count_neurons, settings_line
from grokscope.result import RunResult

_HIGH_COLOR, _LOW_COLOR, _BEFORE_COLOR = BLUE, ORANGE, "0.6"
_IPR_BINS = np.linspace(0, 1, 41).tolist()
_RESIDUAL_BINS = np.linspace(-np.pi, np.pi, 52).tolist()  # 0 is in the middle of one


def draw_spectrum(result: RunResult, neurons: Sequence[int] | None = None) -> Figure:
    """Power of all neurons, IPR, frequencies, phases, weights of some neurons before and after, IPR over time.

    `draw_spectrum(result).savefig("spectrum.png")`. Without `neurons`, the weights shown are those of the neuron with
    the highest and of the one with the lowest IPR.
    """
    result = result.resolved()
    spec, weights = result.spec, result.trained_weights()
    waves, outputs = neuron_waves(spec.model, weights, spec.task), output_waves(spec.model, weights, spec.task)
    before = result.weights_before()
    neurons = waves.extremes() if neurons is None else neurons
    with style.context(STYLE):
        figure = Figure(figsize=(15, 5.2 + max(3.4, 1.25 * len(neurons))))
        grid = figure.add_gridspec(2, 4, height_ratios=[3.9, max(3.4, 1.25 * len(neurons))])
        _draw_power(figure.add_subplot(grid[0, :2]), waves)
        _draw_iprs(figure.add_subplot(grid[0, 2]), waves, outputs, before, result)
        _draw_frequencies(figure.add_subplot(grid[0, 3]), waves, outputs)
        _draw_residuals(figure.add_subplot(grid[1, 0]), waves)
        _draw_weights(figure, grid[1, 1:3], result, waves, before, neurons)
        _draw_curve(figure.add_subplot(grid[1, 3]), result)
        size = f"{len(waves.neurons)} neurons, {result.spec.task.describe()}"
        name = f"analytic network, {size}" if result.engine == "analytic" else settings_line(result)
        figure.suptitle(f"{name}: {result.outcome}", fontweight="bold", fontsize=12)
    return figure


def _draw_power(axes: Axes, waves: NeuronWaves) -> None:
    """A row for each live neuron, by its strongest wave and then from the most to the least periodic."""
    axes.set_title("Fourier power of the neurons")
    axes.grid(visible=False)
    order = np.lexsort((-waves.spectra.neuron_ipr, waves.wave))
    order = order[waves.live[order]]
    axes.set(xlabel=_wave_axis(waves), ylabel="neurons, by strongest wave")
    if not len(order):
        _say(axes, "all neurons are dead")
        return
    image = axes.imshow(waves.power[order], aspect="auto", cmap="magma_r", vmin=0, interpolation="nearest")
    axes.figure.colorbar(image, ax=axes, label="share of the neuron's power", pad=0.02)
    axes.xaxis.set_major_locator(round_ticks())


def _wave_axis(waves: NeuronWaves) -> str:
    cycles = waves.waves.cycles
    if len(cycles) > 1:
        return f"wave, of {waves.power.shape[1]} over cycles of " + " and ".join(map(str, cycles))
    return waves.waves.axis


def _draw_iprs(
    axes: Axes, waves: NeuronWaves, outputs: NeuronWaves | None, before: Weights | None, result: RunResult
) -> None:
    """Figures 2c and 4."""
    what = waves.neurons.what
    axes.set(title="IPR", xlabel=f"IPR of a {what.removesuffix('s')}", ylabel=what, xlim=(0, 1))
    live = waves.spectra.neuron_ipr[waves.live]
    if before is not None:
        initial = neuron_spectra(result.spec.model, before, result.spec.task)
        assert initial is not None  # `waves` has one of the trained network
        own = initial.neuron_ipr
        axes.hist(own, bins=_IPR_BINS, histtype="step", color=_BEFORE_COLOR, linewidth=1.4, label="before training")
    axes.hist(live, bins=_IPR_BINS, color=INPUT_COLOR, edgecolor=BAR_EDGE, label=_named(waves))
    if outputs is not None:
        own = outputs.spectra.neuron_ipr[outputs.live]
        axes.hist(own, bins=_IPR_BINS, histtype="step", color=OUTPUT_COLOR, linewidth=1.4, label=_named(outputs))
    dead = int((~waves.live).sum())
    if dead:
        axes.plot([], [], " ", label=f"{dead} dead")
    count_neurons(axes, room=True)
    axes.legend(loc="upper right")


def _named(waves: NeuronWaves) -> str:
    if not waves.live.any():
        return f"{waves.layer}: none alive"
    return f"{waves.layer}, mean {waves.spectra.mean_ipr:.2g}"


def _draw_frequencies(axes: Axes, waves: NeuronWaves, outputs: NeuronWaves | None) -> None:
    """How many neurons have which strongest wave, and how many of those are periodic."""
    places = np.arange(waves.power.shape[1])
    axes.set(title="Neurons for each frequency", xlabel="frequency" if len(waves.waves.cycles) == 1 else "wave")
    if not waves.live.any():
        _say(axes, "all neurons are dead")
        return
    axes.bar(places, waves.counts(), width=0.9, color=INPUT_COLOR, label=f"{waves.layer}, all")
    if waves.high.any():
        axes.bar(places, waves.counts(waves.high), width=0.9, color=_HIGH_COLOR, label=f"IPR above {HIGH_IPR}")
    if outputs is not None:
        axes.step(places, outputs.counts(), where="mid", color=OUTPUT_COLOR, linewidth=1.2, label=outputs.layer)
    axes.xaxis.set_major_locator(round_ticks())
    axes.yaxis.set_major_locator(round_ticks())
    axes.margins(y=0.3)  # room for the legend
    axes.legend(loc="upper right")


def _draw_residuals(axes: Axes, waves: NeuronWaves) -> None:
    """Normalised, because there may be few neurons of one kind."""
    axes.set_title("Phase relation")
    if reason := why_no_relation(waves):
        _say(axes, reason)
        return
    relation = phase_relation(waves.waves).replace("φ", r"\phi").replace("−", "-")
    axes.set(xlabel=f"${relation}$", ylabel="fraction of the neurons", xlim=(-np.pi, np.pi))
    axes.set_xticks([-np.pi, -np.pi / 2, 0, np.pi / 2, np.pi], ["−π", "−π/2", "0", "π/2", "π"])
    groups = ((waves.high, f"above {HIGH_IPR}", _HIGH_COLOR), (waves.low, f"below {LOW_IPR}", _LOW_COLOR))
    for chosen, name, color in groups:
        own = waves.residual[chosen & ~np.isnan(waves.residual)]
        if len(own):
            axes.hist(
                own,
                bins=_RESIDUAL_BINS,
                weights=np.full(len(own), 1 / len(own)),
                histtype="stepfilled",
                alpha=0.6,
                color=color,
                label=f"IPR {name}\n{len(own)} neurons, mean |·| {np.abs(own).mean():.2g}",
            )
    if axes.patches:
        axes.margins(y=0.35)  # room for the legend
        axes.legend(loc="upper left", handlelength=1)
    else:
        _say(axes, f"no neuron with IPR above {HIGH_IPR} or below {LOW_IPR} has these phases")


def _draw_weights(
    figure: Figure,
    place: SubplotSpec,
    result: RunResult,
    waves: NeuronWaves,
    before: Weights | None,
    neurons: Sequence[int],
) -> None:
    """Figure 2b: one row of U, or column of an embedding, for each neuron, read in the order that makes it a wave."""
    order, name = waves.waves.places, waves.vectors[0]
    after = waves.neurons.vectors[name]
    first = result.spec.model.input_neurons(before) if before else None
    earlier = first.vectors[name] if first else None
    lie = where_vectors_lie(waves.neurons, result.trained_weights())
    if waves.neurons.what != "neurons":
        what = f"Columns of the {waves.layer}"
    else:
        what = " of ".join(reversed(lie[name])) if name in lie else f"Vectors {name}"
    rows = place.subgridspec(max(1, len(neurons)), 1, hspace=0.05)
    for row, k in enumerate(neurons):
        axes = figure.add_subplot(rows[row])
        if earlier is not None:
            axes.plot(earlier[k, order], color=_BEFORE_COLOR, linewidth=1, label="before training")
        axes.plot(after[k, order], color=_HIGH_COLOR, linewidth=1.3, label="after" if before else "not trained")
        ipr = waves.spectra.neuron_ipr[k]
        axes.set_ylabel(f"neuron {k}\n{'dead' if np.isnan(ipr) else f'IPR {ipr:.2f}'}")
        axes.tick_params(labelbottom=row == len(neurons) - 1)
        axes.margins(x=0.01)
        if row == 0:
            axes.set_title(what, loc="left")
            axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0.2)
        if row == len(neurons) - 1:
            axes.set_xlabel(
                "index, in the order of the multiplicative group" if len(order) < after.shape[1] else "index"
            )
    if not neurons:
        _say(figure.add_subplot(rows[0]), "all neurons are dead")


def _draw_curve(axes: Axes, result: RunResult) -> None:
    """Figure 2a."""
    axes.set_title("Mean IPR over time")
    if result.engine == "analytic":
        _say(axes, "this network was not trained")
        return
    axes.set(xlabel="optimisation step", xscale="log", ylim=(-0.03, 1.03))
    steps = [row.step for row in result.curve]
    axes.plot(steps, [row.mean_ipr for row in result.curve], color=_HIGH_COLOR, label="mean IPR")
    axes.plot(
        steps, [row.test_accuracy for row in result.curve], "--", color=VERMILION, linewidth=1.2, label="test accuracy"
    )
    axes.legend(loc="upper left")


def _say(axes: Axes, words: str) -> None:
    """Instead of data, so without a scale."""
    axes.grid(visible=False)
    axes.set(xticks=[], yticks=[], xlabel="", ylabel="")
    axes.annotate(fill(words, 30), (0.5, 0.5), xycoords="axes fraction", ha="center", va="center")
