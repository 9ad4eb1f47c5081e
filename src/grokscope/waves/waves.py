"""Weight vectors as sums of waves, and back.

>>> waves = Waves(np.arange(97))
>>> cosine = np.cos(2 * np.pi * 3 * np.arange(97) / 97 + 0.5)
>>> coefficients = waves.coefficients(cosine)
>>> int(waves.energies(coefficients).argmax()), bool(np.allclose(waves.replaced(cosine, coefficients), cosine))
(3, True)

For addition the waves are cos(2πσi/p + φ), σ = 0 … p // 2. For multiplication they run over the invertible residues in
the order of their discrete logarithm; entries at other residues take no part and are left as they are.
"""

import math
from functools import cache, cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from grokscope.arrays import BoolArray, ComplexArray, FloatArray, Int64Array
from grokscope.waves.orders import distinct_waves


class Basis(Protocol):
    """What a spectrum is taken in: anything that says how much of each of K features a weight vector has."""

    def amplitudes(self, vectors: npt.ArrayLike) -> FloatArray:
        """The strength of each feature in vectors [..., symbols], as [..., K]."""


class Waves:
    """The K waves over the entries of a weight vector: one of each pair of conjugates, the constant included.

    `order` has the entries that take part, in the order in which they are periodic, one axis for each cycle. For tasks
    whose answer is a sum of waves' phases, `second_phase` says how that of the second operand enters: 1 or −1; None if
    phases obey no relation, and then `why_no_relation` says why. `axis` names the frequencies in a picture.
    """

    def __init__(
        self,
        order: npt.ArrayLike,
        *,
        second_phase: int | None = None,
        why_no_relation: str = "the task has no relation between the phases",
        axis: str = "frequency",
    ) -> None:
        self.order: Int64Array = np.asarray(order, dtype=np.int64)
        self.second_phase, self.why_no_relation, self.axis = second_phase, why_no_relation, axis

    def __repr__(self) -> str:
        return f"<Waves: {len(self)} over {' × '.join(map(str, self.cycles))} entries>"

    @property
    def cycles(self) -> tuple[int, ...]:
        """The periods; several only for multiplication at a composite modulus."""
        return self.order.shape

    @property
    def places(self) -> Int64Array:
        """Entries of a vector that take part [G]."""
        return self.order.ravel()

    def __len__(self) -> int:
        return len(distinct_waves(self.cycles))

    def coefficients(self, vectors: npt.ArrayLike) -> ComplexArray:
        """Of vectors [..., symbols], as [..., K]: those of the Fourier transform over the group.

        The angle of a wave's coefficient is φ in cos(2π·frequency·place/period + φ). A vector that is not finite, as in
        a network that diverged, is no sum of waves: all of its coefficients are NaN.
        """
        values = np.asarray(vectors, dtype=np.float64)
        axes = tuple(range(-self.order.ndim, 0))
        taking_part = values[..., self.order]
        finite = np.isfinite(taking_part).all(axis=axes, keepdims=True)
        if not finite.all():
            taking_part = np.where(finite, taking_part, np.nan)
        waves: ComplexArray = np.fft.rfftn(taking_part, axes=axes)
        flat = waves.reshape(
            *values.shape[:-1], math.prod(waves.shape[-self.order.ndim :])
        )  # also of no vectors at all
        return flat[..., distinct_waves(self.cycles)]

    def amplitudes(self, vectors: npt.ArrayLike) -> FloatArray:
        """The strength of each wave in vectors [..., symbols], as [..., K]: |rfft| for addition, K = p // 2 + 1."""
        return np.asarray(np.abs(self.coefficients(vectors)))

    def energies(self, coefficients: ComplexArray) -> FloatArray:
        """How much of a vector's square norm each wave holds [..., K]; a wave and its conjugate together."""
        return np.asarray(np.square(np.abs(coefficients)) * self._multiplicity / len(self.places))

    def replaced(self, vectors: npt.ArrayLike, coefficients: ComplexArray) -> FloatArray:
        """The vectors [..., symbols] with these waves in place of their own; entries that take no part stay."""
        copy = np.array(vectors, dtype=np.float64)
        characters, _ = _characters(self.cycles)  # [K, G]
        copy[..., self.places] = (coefficients * self._multiplicity / len(self.places) @ characters).real
        return copy

    @cached_property
    def self_conjugate(self) -> BoolArray:
        """Waves that are their own conjugates, the constant and ± + − … [K]: they have a sign, but no phase."""
        return _characters(self.cycles)[1]

    @property
    def frequencies(self) -> Int64Array:
        """The frequency of each wave along each cycle [K, cycles]."""
        return wave_frequencies(self.cycles)

    def frequency_of(self, wave: int) -> int | list[int] | None:
        """The frequency of a wave, a list if there are several cycles; None if there is no wave (−1)."""
        if wave < 0:
            return None
        frequency: list[int] = self.frequencies[wave].tolist()
        return frequency[0] if len(frequency) == 1 else frequency

    @property
    def constant(self) -> int:
        """The wave of frequency 0."""
        return int(_waves_by_frequency(self.cycles)[(0,) * len(self.cycles)])

    def multiples(self, factor: int) -> Int64Array:
        """The wave of so many times the frequency of each wave [K]."""
        multiplied = factor * self.frequencies % np.array(self.cycles)
        return np.asarray(_waves_by_frequency(self.cycles)[tuple(multiplied.T)])

    @property
    def _multiplicity(self) -> FloatArray:
        return np.where(self.self_conjugate, 1.0, 2.0)  # [K]


@cache
def _characters(shape: tuple[int, ...]) -> tuple[ComplexArray, BoolArray]:
    """The waves over a product of cycles of these lengths [K, G], and which of them are their own conjugates [K]."""
    half = (*shape[:-1], shape[-1] // 2 + 1)
    frequencies = np.indices(half).reshape(len(shape), -1)[:, distinct_waves(shape)]  # [cycles, K]
    lengths = np.array(shape)[:, None]
    places = np.indices(shape).reshape(len(shape), -1)  # [cycles, G]
    # Whole turns are taken off before anything is divided, so that the waves are exact at every frequency.
    turns = sum(
        np.outer(frequency, place) % length / length
        for frequency, place, length in zip(frequencies, places, shape, strict=True)
    )
    return np.exp(2j * np.pi * np.asarray(turns)), (2 * frequencies % lengths == 0).all(axis=0)


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
