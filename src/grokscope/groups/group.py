"""Groups by name: S3, S4 and S5 of permutations, D3, D4, … of polygons, C2, C3, … of residues.

>>> group = group_called("S3")
>>> group.order, bool(group.table[1, 2] == group.table[2, 1])
(6, False)
"""

import re
from dataclasses import dataclass
from functools import cache
from itertools import permutations

import numpy as np

from grokscope.arrays import Int64Array
from grokscope.errors import GrokscopeError

_LARGEST_ORDER = 1000  # a task has a pair for every two elements
_SIZES = {"S": (2, 5), "D": (3, _LARGEST_ORDER // 2), "C": (2, _LARGEST_ORDER)}


@dataclass(frozen=True, eq=False)
class Group:
    """A family (S, D or C), its size n, and what any two elements give. The identity is element 0.

    S: the permutations of n things in lexicographic order; a·b does b first. D: the rotations r⁰ … rⁿ⁻¹ of a polygon
    of n corners, then the reflections r⁰s … rⁿ⁻¹s. C: the residues modulo n.
    """

    family: str
    n: int
    table: Int64Array  # [order, order]  the element a·b

    @property
    def name(self) -> str:
        """As it is called."""
        return f"{self.family}{self.n}"

    @property
    def order(self) -> int:
        """How many elements there are."""
        return len(self.table)


def why_no_group(name: str) -> str | None:
    """Why there is no group of this name, in words; None if there is.

    >>> why_no_group("D8"), why_no_group("S9")
    (None, 'must be S2 … S5, D3 … D500 or C2 … C1000')
    """
    found = re.fullmatch(r"([SDC])([1-9]\d{0,3})", name)
    if found:
        least, most = _SIZES[found[1]]
        if least <= int(found[2]) <= most:
            return None
    return "must be " + " or ".join(
        ", ".join(f"{family}{least} … {family}{most}" for family, (least, most) in _SIZES.items()).rsplit(", ", 1)
    )


@cache
def group_called(name: str) -> Group:
    """The group of this name."""
    if reason := why_no_group(name):
        raise GrokscopeError(f"there is no group {name!r} here: {reason}")
    family, n = name[0], int(name[1:])
    table = {"S": _permutation_table, "D": _dihedral_table, "C": _cyclic_table}[family](n)
    table.setflags(write=False)
    return Group(family, n, table)


def _permutation_table(n: int) -> Int64Array:
    elements = np.array(list(permutations(range(n))))  # [order, n]
    products = elements[:, elements]  # [order, order, n]: a[b[i]]
    digits = n ** np.arange(n)[::-1]
    place = np.empty(n**n, np.int64)
    place[elements @ digits] = np.arange(len(elements))
    return np.asarray(place[products @ digits])


def _dihedral_table(n: int) -> Int64Array:
    turn, mirrored = np.tile(np.arange(n), 2), np.repeat([0, 1], n)  # element = turn + n · mirrored
    # s turns a rotation round: rᵃs · rᵇ = rᵃ⁻ᵇs
    turns = turn[:, None] + np.where(mirrored[:, None], -turn, turn)
    return np.asarray(turns % n + n * (mirrored[:, None] ^ mirrored))


def _cyclic_table(n: int) -> Int64Array:
    return np.asarray(np.add.outer(np.arange(n), np.arange(n)) % n)
