"""How the IPR of a network's neurons is distributed, for claims that compare networks."""

import math

import numpy as np
import numpy.typing as npt

from grokscope.measure import NeuronSpectra

LOW_IPR = 0.1  # memorising neurons lie below
PERIODIC_IPR = 0.5  # between the modes of the histograms
PURELY_PERIODIC_IPR = 0.9  # neurons with one wave and hardly anything else lie above


def live_ipr(spectra: NeuronSpectra | None) -> npt.NDArray[np.float64]:
    """The IPR of the neurons that have one; empty if there was no network to measure."""
    return np.array([]) if spectra is None else spectra.neuron_ipr[~spectra.dead]


def largest_gap(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """The Kolmogorov-Smirnov distance: how far apart two cumulative distributions are where they differ most.

    >>> largest_gap([1, 2, 3, 4], [3, 4, 5, 6])
    0.5
    """
    samples = [np.sort(np.asarray(values, np.float64)) for values in (first, second)]
    if not all(len(sample) for sample in samples):
        return math.nan
    places = np.concatenate(samples)
    below = [np.searchsorted(sample, places, side="right") / len(sample) for sample in samples]
    return float(np.abs(below[0] - below[1]).max())


def share_below(values: npt.ArrayLike, limit: float) -> float:
    """The fraction of the values that lie below a limit; NaN if there are none.

    >>> share_below([0.05, 0.2, 0.95, 0.97], 0.1)
    0.25
    """
    array = np.asarray(values, np.float64)
    return float((array < limit).mean()) if len(array) else math.nan
