"""The irreducible representations of a group, one of each pair of conjugates, as unitary matrices.

>>> from grokscope.groups import group_called
>>> [each.name for each in representations_of(group_called("S3"))]
['(3)', '(2, 1)', '(1, 1, 1)']
>>> sum(each.dimension**2 for each in representations_of(group_called("S5")))
120

Permutations: Young's orthogonal form, one representation for each partition of n. Its basis are the standard tableaux;
the swap of i and i + 1 mixes a tableau with the one in which they are exchanged.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import permutations

import numpy as np
import numpy.typing as npt

from grokscope.groups.group import Group

Matrices = npt.NDArray[np.floating] | npt.NDArray[np.complexfloating]
Partition = tuple[int, ...]
Tableau = tuple[tuple[int, int], ...]  # the row and the column of 1, 2, …, n


@dataclass(frozen=True, eq=False)
class Representation:
    """A matrix for each element, so that products of elements are products of matrices."""

    name: str
    matrices: Matrices  # [order, d, d]

    @property
    def dimension(self) -> int:
        """The size d of the matrices."""
        return int(self.matrices.shape[1])


@cache
def representations_of(group: Group) -> tuple[Representation, ...]:
    """All irreducible ones, the trivial one first; of two that are conjugates of each other, one."""
    match group.family:
        case "S":
            return tuple(_young(group, partition) for partition in _partitions(group.n))
        case "D":
            return tuple(_dihedral(group.n))
        case _:
            return tuple(_cyclic(group.n))


def _cyclic(n: int) -> Iterator[Representation]:
    for frequency in range(n // 2 + 1):
        turns = frequency * np.arange(n) % n / n  # whole turns are taken off before dividing, as in a wave
        yield Representation(f"frequency {frequency}", np.exp(-2j * np.pi * turns)[:, None, None])


def _dihedral(n: int) -> Iterator[Representation]:
    turn, mirrored = np.tile(np.arange(n), 2), np.repeat([0, 1], n)  # as the elements are ordered
    sign, alternating = (-1.0) ** mirrored, (-1.0) ** turn
    yield Representation("trivial", np.ones((2 * n, 1, 1)))
    yield Representation("sign", sign[:, None, None])
    if n % 2 == 0:
        yield Representation("alternating", alternating[:, None, None])
        yield Representation("alternating sign", (alternating * sign)[:, None, None])
    for frequency in range(1, (n + 1) // 2):
        angle = 2 * np.pi * (frequency * turn % n) / n
        cosine, sine = np.cos(angle), np.sin(angle)
        # A rotation, after diag(1, −1) for a reflection.
        rows = [[cosine, -sine * sign], [sine, cosine * sign]]
        yield Representation(f"rotation {frequency}", np.moveaxis(np.array(rows), -1, 0))


def _young(group: Group, partition: Partition) -> Representation:
    tableaux = _standard_tableaux(partition)
    swaps = [_swap(tableaux, i) for i in range(group.n - 1)]
    matrices = np.empty((group.order, len(tableaux), len(tableaux)))
    for element, images in enumerate(permutations(range(group.n))):
        matrix, left = np.eye(len(tableaux)), list(images)
        # Sorting by neighbours writes the permutation as a product of their swaps, the last one first.
        for end in range(group.n - 1, 0, -1):
            for i in range(end):
                if left[i] > left[i + 1]:
                    left[i], left[i + 1] = left[i + 1], left[i]
                    matrix = swaps[i] @ matrix
        matrices[element] = matrix
    return Representation(str(partition).replace(",)", ")"), matrices)


def _swap(tableaux: list[Tableau], i: int) -> npt.NDArray[np.float64]:
    """The matrix of the swap of i and i + 1, counted from 0."""
    places = {tableau: place for place, tableau in enumerate(tableaux)}
    matrix = np.zeros((len(tableaux), len(tableaux)))
    for place, tableau in enumerate(tableaux):
        (row, column), (next_row, next_column) = tableau[i], tableau[i + 1]
        inverse = 1 / ((next_column - next_row) - (column - row))  # of the distance along the diagonals
        matrix[place, place] = inverse
        exchanged = (*tableau[:i], tableau[i + 1], tableau[i], *tableau[i + 2 :])
        if exchanged in places:
            matrix[places[exchanged], place] = np.sqrt(1 - inverse**2)
    return matrix


def _partitions(n: int, largest: int | None = None) -> list[Partition]:
    """The ways to write n as a sum, the largest part first."""
    if n == 0:
        return [()]
    most = min(n, largest or n)
    return [(first, *rest) for first in range(most, 0, -1) for rest in _partitions(n - first, first)]


def _standard_tableaux(partition: Partition) -> list[Tableau]:
    """The ways to fill the rows with 1, 2, …, n so that numbers grow to the right and downwards."""

    def filled(lengths: Partition) -> list[Tableau]:
        if not any(lengths):
            return [()]
        found = []
        for row, length in enumerate(lengths):  # where the largest number is
            below = lengths[row + 1] if row + 1 < len(lengths) else 0
            if length > below:
                rest = (*lengths[:row], length - 1, *lengths[row + 1 :])
                found += [(*tableau, (row, length - 1)) for tableau in filled(rest)]
        return found

    return filled(partition)
