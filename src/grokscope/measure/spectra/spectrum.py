"""How periodic a neuron is: the spectrum of its weights, and the inverse participation ratio of it.

>>> from grokscope.waves import Waves
>>> wave = np.cos(2 * np.pi * 3 * np.arange(97) / 97)
>>> round(float(inverse_participation_ratio(Waves(np.arange(97)).amplitudes(wave))), 6)
1.0
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from grokscope.arrays import FloatArray, short_repr
from grokscope.extension import ExtensionError
from grokscope.models import Network, Neurons, Weights
from grokscope.tables import data_frame
from grokscope.tasks import Task
from grokscope.waves import Basis

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def inverse_participation_ratio(spectra: FloatArray) -> FloatArray:
    """(‖a‖₄ / ‖a‖₂)⁴ over the last axis: 1 for a single wave, 1/K for K equal ones, NaN for the zero vector."""
    power = _relative(spectra) ** 2
    total = power.sum(axis=-1)
    with np.errstate(invalid="ignore"):
        ratio: FloatArray = (power**2).sum(axis=-1) / total**2
    return ratio


def gini_coefficient(spectra: FloatArray) -> FloatArray:
    """How unequal the amplitudes are: 0 if all are the same, 1 − 1/K for a single wave, NaN for the zero vector."""
    ascending = np.sort(_relative(spectra), axis=-1)
    K = spectra.shape[-1]
    weights = 2 * np.arange(1, K + 1) - K - 1
    with np.errstate(invalid="ignore"):
        gini: FloatArray = ascending @ weights / (K * ascending.sum(axis=-1))
    return gini


def _relative(spectra: FloatArray) -> FloatArray:
    """Amplitudes over the largest of each vector, so that the powers of tiny weights do not underflow."""
    largest = spectra.max(axis=-1, keepdims=True)
    return np.asarray(np.divide(spectra, largest, out=np.zeros_like(spectra), where=largest != 0))


IPR_BINS = 50  # of the histograms that every run keeps


@dataclass(frozen=True)
class NeuronSpectra:
    """Per-neuron measures; the first axis of each array is the vectors that belong to a neuron.

    In a two-layer network they are its rows of U and V and its column of W, in a deeper MLP its rows of U and V. In a
    Transformer the neurons are the dimensions of the embedding, with one vector each, and so they are at the
    output of every network but the two-layer one: columns of W or of the unembedding.
    """

    ipr: npt.NDArray[np.float32]  # [3, N]  NaN where the vector is zero
    gini: npt.NDArray[np.float32]  # [3, N]  NaN where the vector is zero
    # [3, N]  the strongest wave, -1 where the vector is zero: the frequency, or at a composite modulus with
    # multiplication, where a wave has several, the wave's place among all
    frequency: npt.NDArray[np.int16]
    norm_scale: npt.NDArray[np.float32] | None = None  # [N]  γ of the Batch- or LayerNorm that scales these neurons

    __repr__ = short_repr

    def plot(self) -> "Figure":
        """How many neurons have which IPR."""
        from grokscope.plots.neurons import draw_neurons

        return draw_neurons(self)

    def to_columns(self, vectors: Sequence[str] = ()) -> dict[str, list[object]]:
        """For each neuron its measures, and those of its vectors under their names, which are u, v, w if not given."""
        names = vectors or ("u", "v", "w")[: len(self.ipr)]
        columns: dict[str, list[object]] = {
            "neuron": list(range(self.ipr.shape[1])),
            "ipr": self.neuron_ipr.tolist(),
            "gini": self.gini.mean(axis=0, dtype=np.float64).tolist(),
            "dead": self.dead.tolist(),
        }
        for quantity, values in (("ipr", self.ipr), ("gini", self.gini), ("frequency", self.frequency)):
            columns |= {f"{quantity}_{name}": own.tolist() for name, own in zip(names, values, strict=True)}
        return columns | ({} if self.norm_scale is None else {"norm_scale": self.norm_scale.tolist()})

    def to_pandas(self) -> "pd.DataFrame":
        """One row for each neuron."""
        return data_frame(self.to_columns())

    @property
    def neuron_ipr(self) -> FloatArray:
        """IPR_k of Equation 4, the mean over a neuron's vectors [N]; NaN if the neuron is dead."""
        return np.asarray(self.ipr.mean(axis=0, dtype=np.float64))

    @property
    def dead(self) -> npt.NDArray[np.bool_]:
        """Neurons with a zero vector, so that Equation 4 has no value [N]."""
        return np.asarray((self.frequency < 0).any(axis=0))

    @property
    def mean_ipr(self) -> float:
        """The mean over live neurons; NaN if there are none."""
        return _mean(self.neuron_ipr[~self.dead])

    def histogram(self) -> npt.NDArray[np.unsignedinteger]:
        """How many live neurons have their IPR in each of `IPR_BINS` equal bins from 0 to 1 [bins]."""
        counts, _ = np.histogram(np.clip(self.neuron_ipr[~self.dead], 0, 1), IPR_BINS, (0, 1))
        return counts.astype(np.min_scalar_type(self.ipr.shape[1]))

    @property
    def norm_correlation(self) -> float:
        """Spearman's rank correlation of |γ_k| with IPR_k over live neurons; NaN if there is no norm."""
        if self.norm_scale is None:
            return float("nan")
        return rank_correlation(np.abs(self.norm_scale[~self.dead]), self.neuron_ipr[~self.dead])

    @property
    def mean_gini(self) -> float:
        """The mean over live neurons of the mean over their vectors; NaN if there are none."""
        return _mean(self.gini.mean(axis=0, dtype=np.float64)[~self.dead])


def rank_correlation(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Spearman's: how well one orders as the other does, 1 for the same order, −1 for the opposite one.

    >>> round(rank_correlation([1, 2, 3, 4], [1, 10, 100, 50]), 3)
    0.8
    """
    ranks = np.stack([ranks_of(np.asarray(values, np.float64)) for values in (first, second)])
    centred = ranks - ranks.mean(axis=1, keepdims=True)
    lengths = np.sqrt(np.square(centred).sum(axis=1))
    return float(centred[0] @ centred[1] / lengths.prod()) if lengths.all() else float("nan")


def ranks_of(values: FloatArray) -> FloatArray:
    """Places in ascending order; equal values share the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts + 1) / 2)[inverse])


def neuron_spectra(network: Network, weights: Weights, task: Task) -> NeuronSpectra | None:
    """Measure every neuron at the input of a network; None if the task has no waves, or the network no neurons.

    >>> from grokscope import MLP, TaskSpec, analytic_weights
    >>> spectra = neuron_spectra(MLP(), analytic_weights(modulus=97, width=500), TaskSpec())
    >>> round(spectra.mean_ipr, 6)
    1.0
    """
    return _measured(network.input_neurons(weights), task.waves())


def output_spectra(network: Network, weights: Weights, task: Task) -> NeuronSpectra | None:
    """Measure every neuron at the output; None also for a two-layer network, whose `neuron_spectra` has both ends."""
    return _measured(network.output_neurons(weights), task.waves())


def _measured(neurons: Neurons | None, basis: Basis | None) -> NeuronSpectra | None:
    if neurons is None or basis is None or len({vectors.shape[1] for vectors in neurons.vectors.values()}) > 1:
        return None  # waves run over tokens and over labels alike, so there must be as many of both
    if not hasattr(basis, "amplitudes"):
        raise ExtensionError(f"waves() must return grokscope.Waves or None, and returned {type(basis).__name__}")
    spectra = basis.amplitudes(neurons.stacked())  # [V, N, symbols] → [V, N, K]
    strongest = np.where(spectra.any(axis=-1), spectra.argmax(axis=-1), -1)
    return NeuronSpectra(
        ipr=inverse_participation_ratio(spectra).astype(np.float32),
        gini=gini_coefficient(spectra).astype(np.float32),
        frequency=strongest.astype(np.int16),
        norm_scale=neurons.norm_scale,
    )


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else float("nan")
