"""Weight vectors as sums of waves, and back: what `spectrum` measures, in a form in which waves can be taken out.

>>> waves = Waves("add", 97)
>>> cosine = np.cos(2 * np.pi * 3 * np.arange(97) / 97 + 0.5)
>>> coefficients = waves.coefficients(cosine)
>>> int(waves.energies(coefficients).argmax()), bool(np.allclose(waves.replaced(cosine, coefficients), cosine))
(3, True)

For addition the waves are cos(2πσi/p + φ), σ = 0 … p // 2. For multiplication they run over the invertible residues in
the order of their discrete logarithm; entries at other residues take no part and are left as they are.
"""

from functools import cache

import numpy as np
import numpy.typing as npt

from grokscope.measure.characters import distinct_waves, wave_order
from grokscope.measure.spectrum import FloatArray, coefficients
from grokscope.models import Weights
from grokscope.randomness import Int64Array
from grokscope.spec import Operation

ComplexArray = npt.NDArray[np.complex128]
Mask = npt.NDArray[np.bool_]


class Waves:
    """The K waves in which vectors of an operation are written: one of each pair of conjugates, as `amplitudes` has."""

    def __init__(self, operation: Operation, modulus: int) -> None:
        order = wave_order(operation, modulus)
        self.operation, self.modulus = operation, modulus
        self.places: Int64Array = order.ravel()  # [G]  indices of a vector that take part
        self.characters, self.self_conjugate = _characters(order.shape)  # [K, G] and [K]

    def __len__(self) -> int:
        return len(self.characters)

    def coefficients(self, vectors: npt.ArrayLike) -> ComplexArray:
        """Of vectors [..., p], as [..., K]: those of the Fourier transform over the group."""
        return coefficients(vectors, self.operation)

    def energies(self, coefficients: ComplexArray) -> FloatArray:
        """How much of a vector's square norm each wave holds [..., K]; a wave and its conjugate together."""
        return np.asarray(np.square(np.abs(coefficients)) * self._multiplicity / len(self.places))

    def replaced(self, vectors: npt.ArrayLike, coefficients: ComplexArray) -> FloatArray:
        """The vectors [..., p] with these waves in place of their own; entries that take no part stay."""
        copy = np.array(vectors, dtype=np.float64)
        copy[..., self.places] = (coefficients * self._multiplicity / len(self.places) @ self.characters).real
        return copy

    @property
    def _multiplicity(self) -> FloatArray:
        return np.where(self.self_conjugate, 1.0, 2.0)  # [K]


@cache
def _characters(shape: tuple[int, ...]) -> tuple[ComplexArray, Mask]:
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


def neuron_vectors(weights: Weights) -> FloatArray:
    """Rows of U and V and columns of W of a two-layer network [3, N, p]."""
    return np.stack([weights["U"], weights["V"], weights["W"].T]).astype(np.float64)


def with_vectors(weights: Weights, vectors: npt.ArrayLike) -> Weights:
    """A copy of the weights with these vectors [3, N, p] of its neurons; a norm stays as it is.

    >>> from grokscope import analytic_weights
    >>> weights = analytic_weights(modulus=11, width=20)
    >>> all(np.array_equal(with_vectors(weights, neuron_vectors(weights))[name], weights[name]) for name in "UVW")
    True
    """
    U, V, W = np.asarray(vectors, dtype=np.float32)
    copies = {name: array.copy() for name, array in weights.items()}
    return {**copies, "U": U.copy(), "V": V.copy(), "W": np.ascontiguousarray(W.T)}
