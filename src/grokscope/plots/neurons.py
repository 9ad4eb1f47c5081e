"""Pictures of the neurons of a network, without the run that they come from."""

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from grokscope.measure import NeuronSpectra, NeuronWaves
from grokscope.plots.files import STYLE
from grokscope.plots.palette import BAR_EDGE, INPUT_COLOR
from grokscope.plots.runs import count_neurons

_IPR_BINS = np.linspace(0, 1, 41).tolist()


def draw_neurons(spectra: NeuronSpectra) -> Figure:
    """How many neurons have which IPR; the dead have none."""
    with style.context(STYLE):
        figure = Figure(figsize=(4.8, 3.4))
        _draw_iprs(figure.subplots(), spectra)
    return figure


def draw_waves(waves: NeuronWaves) -> Figure:
    """The power of every wave in every neuron, the IPR, and how many neurons have which strongest wave."""
    with style.context(STYLE):
        figure = Figure(figsize=(13, 3.6))
        power, iprs, frequencies = figure.subplots(1, 3)
        _draw_power(power, waves)
        _draw_iprs(iprs, waves.spectra)
        frequencies.set(title="Neurons for each wave", xlabel="strongest wave", ylabel="neurons")
        frequencies.bar(np.arange(waves.power.shape[1]), waves.counts(), width=0.9, color=INPUT_COLOR)
        figure.suptitle(waves.layer, fontsize=10)
    return figure


def _draw_power(axes: Axes, waves: NeuronWaves) -> None:
    """A row for each live neuron, by its strongest wave and then from the most to the least periodic."""
    order = np.lexsort((-waves.spectra.neuron_ipr, waves.wave))
    order = order[waves.live[order]]
    axes.set(title="Fourier power", xlabel="wave", ylabel="neurons, by strongest wave")
    axes.grid(visible=False)
    if len(order):
        image = axes.imshow(waves.power[order], aspect="auto", cmap="magma_r", vmin=0, interpolation="nearest")
        axes.figure.colorbar(image, ax=axes, label="share of the neuron's power", pad=0.02)


def _draw_iprs(axes: Axes, spectra: NeuronSpectra) -> None:
    live = spectra.neuron_ipr[~spectra.dead]
    axes.hist(live, _IPR_BINS, color=INPUT_COLOR, edgecolor=BAR_EDGE)
    dead = f", {int(spectra.dead.sum())} dead" if spectra.dead.any() else ""
    axes.set(title=f"{len(live)} neurons{dead}", xlabel="IPR of a neuron", ylabel="neurons", xlim=(0, 1))
    count_neurons(axes)
