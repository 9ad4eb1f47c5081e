"""How a series of numbers behaves: how far it falls back, whether it turns, and with which power it grows.

>>> largest_fall([1, 3, 2, 5]), largest_rise([1, 3, 2, 5]), relative_fall([1, 3, 2, 5])
(1.0, 4.0, 0.25)
"""

import math

import numpy as np
import numpy.typing as npt


def largest_fall(values: npt.ArrayLike) -> float:
    """How far the series is below what it had reached before, at most: 0 if it never falls."""
    series = np.asarray(values, float)
    return float((np.maximum.accumulate(series) - series).max()) if series.size else math.nan


def largest_rise(values: npt.ArrayLike) -> float:
    """How far it is above where it had been before, at most: 0 if it never rises."""
    return largest_fall(-np.asarray(values, float))


def relative_fall(values: npt.ArrayLike) -> float:
    """The largest fall as a share of the range: 0 for a series that only rises, 1 for one that only falls."""
    span = np.ptp(np.asarray(values, float))
    return largest_fall(values) / float(span) if span else math.nan


def turning(values: npt.ArrayLike) -> float:
    """How much a series goes both ways: the smaller of its largest rise and its largest fall, over its range.

    >>> turning([0, 1, 2]), turning([0, 2, 1, 3])
    (0.0, 0.3333333333333333)
    """
    span = np.ptp(np.asarray(values, float))
    return min(largest_fall(values), largest_rise(values)) / float(span) if span else math.nan


def power_law_exponent(x: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """The slope of log y over log x by least squares; NaN if there are fewer than two x, or values without logarithm.

    >>> round(power_law_exponent([1, 10, 100], [5, 50, 500]), 6)
    1.0
    """
    places, values = np.asarray(x, float), np.asarray(y, float)
    if len(np.unique(places)) < 2 or (places <= 0).any() or not (values > 0).all():
        return math.nan
    slope, _ = np.polyfit(np.log(places), np.log(values), 1)
    return float(slope)
