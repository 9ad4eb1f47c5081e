"""The spectrum of a function on a group: how much of it lies in each irreducible representation.

>>> from grokscope.groups import group_called
>>> basis = Irreducibles(group_called("C97"))
>>> wave = np.cos(2 * np.pi * 3 * np.arange(97) / 97)
>>> int(basis.amplitudes(wave).argmax()), basis.names[3]
(3, 'frequency 3')

The transform of f at a representation ρ of dimension d is the matrix f̂(ρ) = Σ f(g) ρ(g), and by Plancherel's theorem
Σ |f(g)|² = Σ d ‖f̂(ρ)‖² / |G|. So the amplitude of ρ is √d ‖f̂(ρ)‖. For residues all d are 1 and the f̂ are the numbers
of the Fourier transform: amplitudes and IPR are then those of waves.
"""

from functools import cached_property

import numpy as np
import numpy.typing as npt

from grokscope.arrays import FloatArray
from grokscope.groups.group import Group
from grokscope.groups.representations import representations_of

_RANDOM_FUNCTIONS = 2000


class Irreducibles:
    """The irreducible representations of a group as what a spectrum is taken in."""

    def __init__(self, group: Group) -> None:
        self.group = group
        parts = representations_of(group)
        self.names = tuple(part.name for part in parts)
        self.dimensions = tuple(part.dimension for part in parts)
        columns = [part.matrices.reshape(group.order, -1) * np.sqrt(part.dimension) for part in parts]
        self._entries = np.concatenate(columns, axis=1)  # [order, Σ d²]
        self._starts = np.cumsum([0, *(column.shape[1] for column in columns[:-1])])

    def __len__(self) -> int:
        return len(self.names)

    def amplitudes(self, vectors: npt.ArrayLike) -> FloatArray:
        """√d ‖f̂(ρ)‖ of vectors [..., order], as [..., K]; NaN for a vector that is not finite."""
        values = np.asarray(vectors, dtype=np.float64)
        finite = np.isfinite(values).all(axis=-1, keepdims=True)
        coefficients = np.where(finite, values, 0.0) @ self._entries  # [..., Σ d²]
        power = np.add.reduceat(np.square(np.abs(coefficients)), self._starts, axis=-1)  # [..., K]
        return np.where(finite, np.sqrt(power), np.nan)

    @cached_property
    def noise_ipr(self) -> float:
        """The mean IPR of random functions, with normal values: not that of equal shares, as large parts count more.

        >>> from grokscope.groups import group_called
        >>> round(Irreducibles(group_called("S5")).noise_ipr, 2)
        0.23
        """
        normal = np.random.default_rng(0).normal(size=(_RANDOM_FUNCTIONS, self.group.order))
        power = np.square(self.amplitudes(normal))
        return float((np.square(power).sum(axis=1) / np.square(power.sum(axis=1))).mean())
