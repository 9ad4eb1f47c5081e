"""Sums that round once, as torch's optimisers do, where a factor is a number; an array of factors, one for each of many
runs, needs two operations.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def add_scaled(total: "Tensor", other: "Tensor", factor: "float | Tensor") -> "Tensor":
    """total + factor · other."""
    if not isinstance(factor, float):
        return total + factor * other
    return total.add(other, alpha=factor) if factor else total


def add_scaled_square(total: "Tensor", other: "Tensor", factor: "float | Tensor") -> "Tensor":
    """Add factor · other² to the total, in place."""
    if isinstance(factor, float):
        return total.addcmul_(other, other, value=factor)
    return total.add_(factor * other.square())
