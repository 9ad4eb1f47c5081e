"""Numbers for JSON, which has no NaN, and short enough to send thousands of them."""

import math
from collections.abc import Iterable

import numpy as np

from grokscope.explorer.models import Numbers


def rounded(value: float | None, digits: int = 5) -> float | None:
    """With so many significant digits; None for what JSON does not have.

    >>> rounded(1 / 3), rounded(float("nan")), rounded(2000)
    (0.33333, None, 2000.0)
    """
    return None if value is None or not math.isfinite(value) else float(f"{value:.{digits}g}")


def numbers(values: Iterable[object], digits: int = 5) -> Numbers:
    """`rounded` of each."""
    return [rounded(float(value), digits) if isinstance(value, int | float | np.number) else None for value in values]
