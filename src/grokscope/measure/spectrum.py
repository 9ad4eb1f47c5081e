"""How periodic a neuron is: the Fourier spectrum of its weights, and the inverse participation ratio of it.

>>> wave = np.cos(2 * np.pi * 3 * np.arange(97) / 97)
>>> round(float(inverse_participation_ratio(amplitudes(wave, "add"))), 6)
1.0
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from grokscope.measure.characters import distinct_waves, wave_order
from grokscope.models import Weights
from grokscope.spec import Operation

FloatArray = npt.NDArray[np.float64]


def amplitudes(vectors: npt.ArrayLike, operation: Operation) -> FloatArray:
    """The strength of each wave in vectors [..., p], as [..., K]: |rfft| for addition, K = p // 2 + 1.

    One of each pair of conjugate waves counts, the constant included: that way a pure cosine is one wave.
    """
    values = np.asarray(vectors, dtype=np.float64)
    order = wave_order(operation, values.shape[-1])
    axes = tuple(range(-order.ndim, 0))
    waves: FloatArray = np.abs(np.fft.rfftn(values[..., order], axes=axes))
    return waves.reshape(*values.shape[:-1], -1)[..., distinct_waves(order.shape)]


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


@dataclass(frozen=True)
class NeuronSpectra:
    """Per-neuron measures; the first axis of each array is the neuron's rows of U and V and its column of W."""

    ipr: npt.NDArray[np.float32]  # [3, N]  NaN where the vector is zero
    gini: npt.NDArray[np.float32]  # [3, N]  NaN where the vector is zero
    # [3, N]  the strongest wave, -1 where the vector is zero: the frequency, or at a composite modulus with
    # multiplication, where a wave has several, the wave's place among `distinct_waves`
    frequency: npt.NDArray[np.int16]

    @property
    def neuron_ipr(self) -> FloatArray:
        """IPR_k of Equation 4, the mean over a neuron's three vectors [N]; NaN if the neuron is dead."""
        return np.asarray(self.ipr.mean(axis=0, dtype=np.float64))

    @property
    def dead(self) -> npt.NDArray[np.bool_]:
        """Neurons with a zero vector, so that Equation 4 has no value [N]."""
        return np.asarray((self.frequency < 0).any(axis=0))

    @property
    def mean_ipr(self) -> float:
        """The mean over live neurons; NaN if there are none."""
        return _mean(self.neuron_ipr[~self.dead])

    @property
    def mean_gini(self) -> float:
        """The mean over live neurons of the mean over their three vectors; NaN if there are none."""
        return _mean(self.gini.mean(axis=0, dtype=np.float64)[~self.dead])


def neuron_spectra(weights: Weights, operation: Operation = "add") -> NeuronSpectra:
    """Measure every neuron of a two-layer network."""
    vectors = np.stack([weights["U"], weights["V"], weights["W"].T])  # [3, N, p]
    spectra = amplitudes(vectors, operation)  # [3, N, K]
    strongest = np.where(spectra.any(axis=-1), spectra.argmax(axis=-1), -1)
    return NeuronSpectra(
        ipr=inverse_participation_ratio(spectra).astype(np.float32),
        gini=gini_coefficient(spectra).astype(np.float32),
        frequency=strongest.astype(np.int16),
    )


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else float("nan")
