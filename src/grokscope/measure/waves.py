"""Which waves a neuron is made of, and how their phases fit together.

In the analytic solution (Equation 2) the three vectors of a neuron are cosines of one frequency σ,

    U ~ cos(2πσm/p + φ_u)     V ~ cos(2πσn/p + φ_v)     W ~ cos(2πσq/p + φ_w)     φ_w = φ_u + φ_v

(the paper writes W with both signs turned round, which is the same cosine). The residual φ_u + φ_v − φ_w says how far a
trained neuron is from that.

>>> from grokscope.models import analytic_weights
>>> waves = neuron_waves(analytic_weights(modulus=97, width=500))
>>> waves.summary().agreement, bool(np.nanmax(np.abs(waves.residual)) < 1e-5)
(1.0, True)
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from grokscope.measure.characters import distinct_waves, wave_order
from grokscope.measure.spectrum import (
    FloatArray,
    NeuronSpectra,
    coefficients,
    is_two_layer,
    neuron_spectra,
    output_spectra,
)
from grokscope.models import Weights
from grokscope.randomness import Int64Array
from grokscope.spec import Operation
from grokscope.tables import data_frame

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

HIGH_IPR, LOW_IPR = 0.7, 0.1  # beyond which a neuron is called periodic, or not
# Relative to the strongest wave: below it is what the rounding of float32 leaves of a wave that is not there.
_NO_AMPLITUDE = 1e-5
# How φ_v enters φ_w: the answer goes forward with n, or back. Where the inputs are periodic in the squares
# of m and n, and not in m and n, there is no such relation.
_SIGN_OF_SECOND_PHASE: dict[Operation, int] = {"add": 1, "multiply": 1, "subtract": -1, "divide": -1}

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class WaveSummary:
    """Some neurons together. What does not exist is NaN."""

    neurons: int
    frequencies: int  # how many different waves are the strongest of a neuron
    agreement: float  # the fraction of neurons whose vectors all have the same strongest wave
    mean_residual: float  # of |residual|: 0 if the phases obey the relation, π/2 if they are random
    second_ratio: float  # the mean
    second_double: float  # in what fraction the second wave has twice the frequency of the strongest
    second_triple: float  # three times
    second_constant: float  # frequency 0


@dataclass(frozen=True)
class NeuronWaves:
    """The waves of N neurons at one end of a network; a dead neuron has none.

    A wave is a place among the K distinct waves of the transform, −1 where there is none; `frequency_of` names it. For
    addition the place is the frequency.
    """

    layer: str  # where the neurons are
    vectors: tuple[str, ...]  # [V]  the vectors that belong to a neuron: u, v and w, or e of an embedding
    cycles: tuple[int, ...]  # periods of the transform; several only for multiplication at a composite modulus
    spectra: NeuronSpectra  # what the run's result has: IPR, Gini coefficient and strongest wave of each vector
    power: FloatArray  # [N, K]  a wave's share of a neuron's power, the mean over its vectors; 0 if it is dead
    wave: Int64Array  # [N]  the strongest in `power`
    phase: FloatArray  # [V, N]  of each vector at the neuron's wave, in (−π, π]; NaN where it has none
    residual: FloatArray  # [N]  `phase_relation` in (−π, π]; NaN where a phase or the relation does not exist
    second: Int64Array  # [N]  the second strongest wave
    second_ratio: FloatArray  # [N]  its amplitude over that of the strongest; NaN if there is only one wave
    norm: FloatArray  # [N]  Euclidean, of all vectors of a neuron together

    def plot(self) -> "Figure":
        """The power of every wave in every neuron, and how many neurons have which frequency."""
        from grokscope.plots.neurons import draw_waves

        return draw_waves(self)

    def to_pandas(self) -> "pd.DataFrame":
        """One row for each neuron, with the columns of `grokscope spectrum --out x.csv`."""
        own = self.spectra.to_columns(self.vectors)
        phases = {f"phase_{name}": phase.tolist() for name, phase in zip(self.vectors, self.phase, strict=True)}
        columns: dict[str, list[object]] = {
            **own,
            "frequency": [self.frequency_of(wave) for wave in self.wave.tolist()],
            **phases,
            "residual": self.residual.tolist(),
            "second_frequency": [self.frequency_of(wave) for wave in self.second.tolist()],
            "second_ratio": self.second_ratio.tolist(),
            "norm": self.norm.tolist(),
        }
        return data_frame(columns)

    @property
    def live(self) -> Mask:
        """Neurons without a zero vector [N]."""
        return ~self.spectra.dead

    @property
    def high(self) -> Mask:
        """Periodic neurons [N]."""
        return np.asarray(self.spectra.neuron_ipr > HIGH_IPR)

    @property
    def low(self) -> Mask:
        """Neurons that are not periodic [N]."""
        return np.asarray(self.spectra.neuron_ipr < LOW_IPR)

    @property
    def agrees(self) -> Mask:
        """Live neurons whose vectors all have the same strongest wave [N]."""
        strongest = self.spectra.frequency  # [V, N]
        return np.asarray((strongest == strongest[0]).all(axis=0) & self.live)

    def frequency_of(self, wave: int) -> int | list[int] | None:
        """The frequency of a wave, a list if the transform has several cycles; None if there is no wave."""
        if wave < 0:
            return None
        frequency: list[int] = wave_frequencies(self.cycles)[wave].tolist()
        return frequency[0] if len(frequency) == 1 else frequency

    def vectors_in(self, weights: Weights) -> dict[str, npt.NDArray[np.float32]]:
        """The vectors [N, p] of these neurons in other weights of the same shape, such as those before training."""
        return _LAYERS[self.layer](weights)

    def counts(self, chosen: Mask | None = None) -> Int64Array:
        """How many live neurons, or chosen ones of them, have which strongest wave [K]."""
        return np.bincount(self.wave[self._chosen(chosen)], minlength=self.power.shape[1])

    def summary(self, chosen: Mask | None = None) -> WaveSummary:
        """The live neurons, or chosen ones of them, together."""
        chosen = self._chosen(chosen)
        with_second = chosen & (self.second >= 0)
        first, second = self.wave[with_second], self.second[with_second]
        constant = second == _waves_by_frequency(self.cycles)[(0,) * len(self.cycles)]
        return WaveSummary(
            neurons=int(chosen.sum()),
            frequencies=len(np.unique(self.wave[chosen])),
            agreement=_mean(self.agrees[chosen]) if len(self.vectors) > 1 else float("nan"),
            mean_residual=_mean(np.abs(self.residual[chosen])),
            second_ratio=_mean(self.second_ratio[chosen]),
            # Twice half a period is no wave at all: that is the constant, whatever the strongest is.
            second_double=_mean((second == _multiples(self.cycles, 2)[first]) & ~constant),
            second_triple=_mean((second == _multiples(self.cycles, 3)[first]) & ~constant),
            second_constant=_mean(constant),
        )

    def _chosen(self, chosen: Mask | None) -> Mask:
        return self.live if chosen is None else np.asarray(chosen & self.live)


def phase_relation(operation: Operation) -> str:
    """What is 0 for the phases of a periodic neuron.

    >>> phase_relation("multiply"), phase_relation("subtract")
    ('φ_u + φ_v − φ_w', 'φ_u − φ_v − φ_w')
    """
    return f"φ_u {'+' if _SIGN_OF_SECOND_PHASE.get(operation, 1) > 0 else '−'} φ_v − φ_w"


def why_no_relation(waves: NeuronWaves, operation: Operation) -> str | None:
    """Why the phases of these neurons obey no relation, in words; None if there is one to obey."""
    match waves.layer:
        case "embedding" | "unembedding":
            return f"a dimension of the {waves.layer} has one vector, so there are no phases to compare"
        case "first hidden":
            return "W belongs to the neurons of another layer, so there is no φ_w to compare with φ_u and φ_v"
        case "last hidden":
            return "U and V belong to the neurons of another layer, so there is nothing to compare φ_w with"
    if operation not in _SIGN_OF_SECOND_PHASE:
        return f"for {operation} the inputs are periodic in squares, so there is no relation between the phases"
    return None


# The vectors [N, p] that belong to the neurons of a layer.
_LAYERS: dict[str, Callable[[Weights], dict[str, npt.NDArray[np.float32]]]] = {
    "hidden": lambda weights: {"u": weights["U"], "v": weights["V"], "w": weights["W"].T},
    "first hidden": lambda weights: {"u": weights["U"], "v": weights["V"]},
    "last hidden": lambda weights: {"w": weights["W"].T},
    "embedding": lambda weights: {"e": weights["embedding"].T},
    "unembedding": lambda weights: {"w": weights["unembedding"].T},
}


def neuron_waves(weights: Weights, operation: Operation = "add") -> NeuronWaves:
    """The waves of every neuron at the input of a network: those of `neuron_spectra`."""
    layer = "embedding" if "embedding" in weights else "hidden" if is_two_layer(weights) else "first hidden"
    return _waves(layer, weights, neuron_spectra(weights, operation), operation)


def output_waves(weights: Weights, operation: Operation = "add") -> NeuronWaves | None:
    """The waves of every column of the output layer; None if `neuron_waves` has them.

    That is so in a two-layer network, and in a Transformer whose unembedding is its embedding.
    """
    spectra = output_spectra(weights, operation)
    if spectra is None or ("embedding" in weights and "unembedding" not in weights):
        return None
    return _waves("unembedding" if "embedding" in weights else "last hidden", weights, spectra, operation)


def _waves(layer: str, weights: Weights, spectra: NeuronSpectra, operation: Operation) -> NeuronWaves:
    own = _LAYERS[layer](weights)
    vectors = np.stack(list(own.values()))  # [V, N, p]
    cycles = wave_order(operation, vectors.shape[-1]).shape
    waves = coefficients(vectors, operation)  # [V, N, K]
    live = ~spectra.dead
    amplitude = np.abs(waves)
    power = np.where(live[:, None], _shares(amplitude).mean(axis=0), 0)  # [N, K]
    wave = np.where(live, power.argmax(axis=1), -1)  # [N]
    phase = _phases(waves, wave, cycles)
    second, second_ratio = _second_waves(power, wave)
    return NeuronWaves(
        layer=layer,
        vectors=tuple(own),
        cycles=cycles,
        spectra=spectra,
        power=power,
        wave=wave,
        phase=phase,
        residual=_residuals(dict(zip(own, phase, strict=True)), operation, len(wave)),
        second=second,
        second_ratio=second_ratio,
        norm=np.sqrt(np.square(vectors, dtype=np.float64).sum(axis=(0, 2))),
    )


def _shares(amplitude: FloatArray) -> FloatArray:
    """Each wave's part of the power of its vector [V, N, K]; 0 for a zero vector."""
    power = amplitude**2
    total = power.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(power, total, out=np.zeros_like(power), where=total != 0))


def _phases(waves: npt.NDArray[np.complex128], wave: Int64Array, cycles: tuple[int, ...]) -> FloatArray:
    """Angles at each neuron's wave [V, N].

    A wave that is its own conjugate (the constant, and ± + − …) is real: it has a sign, but no phase.
    """
    own = np.take_along_axis(waves, np.maximum(wave, 0)[None, :, None], axis=2)[..., 0]  # [V, N]
    frequencies = wave_frequencies(cycles)
    real = (2 * frequencies % np.array(cycles) == 0).all(axis=1)  # [K]
    defined = (wave >= 0) & ~real[wave] & (np.abs(own) > _NO_AMPLITUDE * np.abs(waves).max(axis=2))
    return np.where(defined, _wrapped(np.angle(own)), np.nan)


def _residuals(phase: dict[str, FloatArray], operation: Operation, neurons: int) -> FloatArray:
    if phase.keys() != {"u", "v", "w"} or operation not in _SIGN_OF_SECOND_PHASE:
        return np.full(neurons, np.nan)
    return _wrapped(phase["u"] + _SIGN_OF_SECOND_PHASE[operation] * phase["v"] - phase["w"])


def _wrapped(angles: FloatArray) -> FloatArray:
    """In (−π, π]."""
    return np.asarray(np.pi - (np.pi - angles) % (2 * np.pi))


def _second_waves(power: FloatArray, wave: Int64Array) -> tuple[Int64Array, FloatArray]:
    """The second strongest wave of each neuron, and its amplitude over that of the strongest [N]."""
    neurons = np.flatnonzero(wave >= 0)
    second, ratio = np.full(len(wave), -1), np.full(len(wave), np.nan)
    if power.shape[1] > 1:
        rest = power[neurons]
        rest[np.arange(len(neurons)), wave[neurons]] = -1
        candidates = rest.argmax(axis=1)
        ratio[neurons] = np.sqrt(power[neurons, candidates] / power[neurons, wave[neurons]])
        second[neurons] = np.where(ratio[neurons] > _NO_AMPLITUDE, candidates, -1)
    return second, ratio


@cache
def wave_frequencies(cycles: tuple[int, ...]) -> Int64Array:
    """The frequency of each distinct wave along each cycle [K, cycles].

    >>> wave_frequencies((5,)).tolist(), wave_frequencies((2, 4)).tolist()
    ([[0], [1], [2]], [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]])
    """
    half = (*cycles[:-1], cycles[-1] // 2 + 1)
    return np.stack(np.unravel_index(distinct_waves(cycles), half), axis=1).astype(np.int64)


@cache
def _waves_by_frequency(cycles: tuple[int, ...]) -> Int64Array:
    """The wave of every frequency, one cycle to an axis; conjugate frequencies are one wave."""
    frequencies = wave_frequencies(cycles)
    table = np.empty(cycles, dtype=np.int64)
    for same in (frequencies, -frequencies % np.array(cycles)):
        table[tuple(same.T)] = np.arange(len(frequencies))
    return table


def _multiples(cycles: tuple[int, ...], factor: int) -> Int64Array:
    """The wave of so many times the frequency of each wave [K]."""
    multiplied = factor * wave_frequencies(cycles) % np.array(cycles)
    return np.asarray(_waves_by_frequency(cycles)[tuple(multiplied.T)])


def _mean(values: npt.NDArray[np.bool_] | FloatArray) -> float:
    """Over the values that exist; NaN if none does."""
    existing = values[~np.isnan(values)]
    return float(existing.mean()) if len(existing) else float("nan")
