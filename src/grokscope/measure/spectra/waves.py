"""Which waves a neuron is made of, and how their phases fit together.

In the analytic solution (Equation 2) the three vectors of a neuron are cosines of one frequency σ,

    U ~ cos(2πσm/p + φ_u)     V ~ cos(2πσn/p + φ_v)     W ~ cos(2πσq/p + φ_w)     φ_w = φ_u + φ_v

(the paper writes W with both signs turned round, which is the same cosine). The residual φ_u + φ_v − φ_w says how far a
trained neuron is from that.

>>> from grokscope import MLP, TaskSpec, analytic_weights
>>> waves = neuron_waves(MLP(), analytic_weights(modulus=97, width=500), TaskSpec())
>>> waves.summary().agreement, bool(np.nanmax(np.abs(waves.residual)) < 1e-5)
(1.0, True)
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from grokscope.arrays import BoolArray, ComplexArray, FloatArray, Int64Array, short_repr
from grokscope.errors import GrokscopeError
from grokscope.measure.spectra.spectrum import NeuronSpectra, neuron_spectra, output_spectra
from grokscope.models import Network, Neurons, Weights
from grokscope.tables import data_frame
from grokscope.tasks import Task, waves_of
from grokscope.waves import Waves

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

HIGH_IPR, LOW_IPR = 0.7, 0.1  # beyond which a neuron is called periodic, or not
# Relative to the strongest wave: below it is what the rounding of float32 leaves of a wave that is not there.
_NO_AMPLITUDE = 1e-5


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

    neurons: Neurons
    waves: Waves  # what a wave is for the task
    spectra: NeuronSpectra  # what the run's result has: IPR, Gini coefficient and strongest wave of each vector
    power: FloatArray  # [N, K]  a wave's share of a neuron's power, the mean over its vectors; 0 if it is dead
    wave: Int64Array  # [N]  the strongest in `power`
    phase: FloatArray  # [V, N]  of each vector at the neuron's wave, in (−π, π]; NaN where it has none
    residual: FloatArray  # [N]  `phase_relation` in (−π, π]; NaN where a phase or the relation does not exist
    second: Int64Array  # [N]  the second strongest wave
    second_ratio: FloatArray  # [N]  its amplitude over that of the strongest; NaN if there is only one wave
    norm: FloatArray  # [N]  Euclidean, of all vectors of a neuron together

    __repr__ = short_repr

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
    def layer(self) -> str:
        """Where the neurons are."""
        return self.neurons.layer

    @property
    def vectors(self) -> tuple[str, ...]:
        """The vectors that belong to a neuron [V]: u, v and w, or e of an embedding."""
        return tuple(self.neurons.vectors)

    @property
    def live(self) -> BoolArray:
        """Neurons without a zero vector [N]."""
        return ~self.spectra.dead

    @property
    def high(self) -> BoolArray:
        """Periodic neurons [N]."""
        return np.asarray(self.spectra.neuron_ipr > HIGH_IPR)

    @property
    def low(self) -> BoolArray:
        """Neurons that are not periodic [N]."""
        return np.asarray(self.spectra.neuron_ipr < LOW_IPR)

    def extremes(self) -> list[int]:
        """The live neurons with the highest and the lowest IPR; one if there is only one, none if all are dead."""
        live = np.flatnonzero(self.live)
        by_ipr = live[np.argsort(self.spectra.neuron_ipr[live], kind="stable")]
        return list(dict.fromkeys(by_ipr[[-1, 0]].tolist())) if len(live) else []

    @property
    def agrees(self) -> BoolArray:
        """Live neurons whose vectors all have the same strongest wave [N]."""
        strongest = self.spectra.frequency  # [V, N]
        return np.asarray((strongest == strongest[0]).all(axis=0) & self.live)

    def frequency_of(self, wave: int) -> int | list[int] | None:
        """The frequency of a wave, a list if the transform has several cycles; None if there is no wave."""
        return self.waves.frequency_of(wave)

    def counts(self, chosen: BoolArray | None = None) -> Int64Array:
        """How many live neurons, or chosen ones of them, have which strongest wave [K]."""
        return np.bincount(self.wave[self._chosen(chosen)], minlength=self.power.shape[1])

    def summary(self, chosen: BoolArray | None = None) -> WaveSummary:
        """The live neurons, or chosen ones of them, together."""
        chosen = self._chosen(chosen)
        with_second = chosen & (self.second >= 0)
        first, second = self.wave[with_second], self.second[with_second]
        constant = second == self.waves.constant
        return WaveSummary(
            neurons=int(chosen.sum()),
            frequencies=len(np.unique(self.wave[chosen])),
            agreement=_mean(self.agrees[chosen]) if len(self.vectors) > 1 else float("nan"),
            mean_residual=_mean(np.abs(self.residual[chosen])),
            second_ratio=_mean(self.second_ratio[chosen]),
            # Twice half a period is no wave at all: that is the constant, whatever the strongest is.
            second_double=_mean((second == self.waves.multiples(2)[first]) & ~constant),
            second_triple=_mean((second == self.waves.multiples(3)[first]) & ~constant),
            second_constant=_mean(constant),
        )

    def _chosen(self, chosen: BoolArray | None) -> BoolArray:
        return self.live if chosen is None else np.asarray(chosen & self.live)


def phase_relation(waves: Waves) -> str:
    """What is 0 for the phases of a periodic neuron.

    >>> from grokscope.tasks import modular_waves
    >>> phase_relation(modular_waves("multiply", 7)), phase_relation(modular_waves("subtract", 7))
    ('φ_u + φ_v − φ_w', 'φ_u − φ_v − φ_w')
    """
    return f"φ_u {'−' if waves.second_phase == -1 else '+'} φ_v − φ_w"


def why_no_relation(waves: NeuronWaves) -> str | None:
    """Why the phases of these neurons obey no relation, in words; None if there is one to obey."""
    letters = set(waves.vectors)
    if len(letters) == 1 and waves.neurons.what != "neurons":
        return f"a dimension of the {waves.layer} has one vector, so there are no phases to compare"
    if "w" not in letters:
        return "W belongs to the neurons of another layer, so there is no φ_w to compare with φ_u and φ_v"
    if letters == {"w"}:
        return "U and V belong to the neurons of another layer, so there is nothing to compare φ_w with"
    if not {"u", "v"} <= letters:
        others = [name for name in waves.vectors if name != "w"]
        if len(others) != 2:
            return f"it is one of two positions and the label, and the task has {len(others)}: {', '.join(others)}"
        return f"it is one of the vectors u, v and w, and the network calls its own {', '.join(others)}"
    return waves.waves.why_no_relation if waves.waves.second_phase is None else None


def neuron_waves(network: Network, weights: Weights, task: Task) -> NeuronWaves:
    """The waves of every neuron at the input of a network: those of `neuron_spectra`."""
    neurons, waves = network.input_neurons(weights), waves_of(task)
    spectra = neuron_spectra(network, weights, task)
    if neurons is None:
        raise GrokscopeError(
            f"there is no spectrum to show: {network.describe()} does not say what its neurons are, for which a class "
            "of yours has input_neurons()"
        )
    if spectra is None:
        sizes = ", ".join(f"{name} {vectors.shape[1]}" for name, vectors in neurons.vectors.items())
        raise GrokscopeError(
            f"there is no spectrum to show: waves run over tokens and labels alike, and there are not as many ({sizes})"
        )
    return _waves(neurons, spectra, waves)


def output_waves(network: Network, weights: Weights, task: Task) -> NeuronWaves | None:
    """The waves of every neuron at the output; None if `neuron_waves` has them.

    That is so in a two-layer network, and in a Transformer whose unembedding is its embedding.
    """
    neurons, spectra = network.output_neurons(weights), output_spectra(network, weights, task)
    first = network.input_neurons(weights)
    if neurons is None or spectra is None:
        return None
    if first is not None and any(
        np.shares_memory(own, other) for own in neurons.vectors.values() for other in first.vectors.values()
    ):
        return None
    return _waves(neurons, spectra, waves_of(task))


def _waves(neurons: Neurons, spectra: NeuronSpectra, waves: Waves) -> NeuronWaves:
    vectors = neurons.stacked()  # [V, N, p]
    coefficients = waves.coefficients(vectors)  # [V, N, K]
    live = ~spectra.dead
    amplitude = np.abs(coefficients)
    power = np.where(live[:, None], _shares(amplitude).mean(axis=0), 0)  # [N, K]
    wave = np.where(live, power.argmax(axis=1), -1)  # [N]
    phase = _phases(coefficients, wave, waves)
    second, second_ratio = _second_waves(power, wave)
    return NeuronWaves(
        neurons=neurons,
        waves=waves,
        spectra=spectra,
        power=power,
        wave=wave,
        phase=phase,
        residual=_residuals(dict(zip(neurons.vectors, phase, strict=True)), waves, len(wave)),
        second=second,
        second_ratio=second_ratio,
        norm=np.sqrt(np.square(vectors, dtype=np.float64).sum(axis=(0, 2))),
    )


def _shares(amplitude: FloatArray) -> FloatArray:
    """Each wave's part of the power of its vector [V, N, K]; 0 for a zero vector."""
    power = amplitude**2
    total = power.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(power, total, out=np.zeros_like(power), where=total != 0))


def _phases(coefficients: ComplexArray, wave: Int64Array, waves: Waves) -> FloatArray:
    """Angles at each neuron's wave [V, N].

    A wave that is its own conjugate (the constant, and ± + − …) is real: it has a sign, but no phase.
    """
    own = np.take_along_axis(coefficients, np.maximum(wave, 0)[None, :, None], axis=2)[..., 0]  # [V, N]
    strong = np.abs(own) > _NO_AMPLITUDE * np.abs(coefficients).max(axis=2)
    defined = (wave >= 0) & ~waves.self_conjugate[wave] & strong
    return np.where(defined, _wrapped(np.angle(own)), np.nan)


def _residuals(phase: dict[str, FloatArray], waves: Waves, neurons: int) -> FloatArray:
    if phase.keys() != {"u", "v", "w"} or waves.second_phase is None:
        return np.full(neurons, np.nan)
    return _wrapped(phase["u"] + waves.second_phase * phase["v"] - phase["w"])


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


def _mean(values: npt.NDArray[np.bool_] | FloatArray) -> float:
    """Over the values that exist; NaN if none does."""
    existing = values[~np.isnan(values)]
    return float(existing.mean()) if len(existing) else float("nan")
