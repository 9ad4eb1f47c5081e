"""How well scores find the wrong ones among examples: metrics of detection, from scores and the known answer.

A higher score means more suspicious, and only the order counts. What does not exist (there is nothing wrong to
be found, or nothing right to tell it from) is None.

>>> scores, wrong = np.array([0.9, 0.8, 0.3, 0.1]), np.array([True, False, True, False])
>>> auroc(scores, wrong), average_precision(scores, wrong), r_precision(scores, wrong)
(0.75, 0.8333333333333333, 0.5)
"""

from typing import NamedTuple

import numpy as np

from grokscope.arrays import BoolArray, FloatArray
from grokscope.measure.spectra.spectrum import ranks_of


def auroc(scores: FloatArray, wrong: BoolArray) -> float | None:
    """The probability that a wrong example scores higher than a right one, equal scores counting one half.

    >>> auroc(np.array([1.0, 1.0, 0.0]), np.array([True, False, False]))
    0.75
    """
    found, others = int(wrong.sum()), int((~wrong).sum())
    if not found or not others:
        return None
    # A wrong example's place is how many score lower; taking off the wrong ones among those leaves the pairs won.
    pairs_won = float(ranks_of(scores)[wrong].sum()) - found * (found - 1) / 2
    return pairs_won / (found * others)


class PrecisionRecall(NamedTuple):
    """What is found as the threshold falls from the highest score to the lowest, equal scores together."""

    precision: FloatArray  # [T]  of the examples at or above the threshold, the fraction that is wrong
    recall: FloatArray  # [T]  of the wrong examples, the fraction that is at or above the threshold


def precision_recall(scores: FloatArray, wrong: BoolArray) -> PrecisionRecall | None:
    """The precision–recall curve; None if nothing is wrong."""
    if not wrong.any():
        return None
    order = np.argsort(-scores, kind="stable")
    found = np.cumsum(wrong[order])
    last_of_equals = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))
    hits = found[last_of_equals]
    return PrecisionRecall(hits / (last_of_equals + 1), hits / found[-1])


def average_precision(scores: FloatArray, wrong: BoolArray) -> float | None:
    """The precision at every threshold, weighted by the recall that the threshold adds."""
    curve = precision_recall(scores, wrong)
    return None if curve is None else float(curve.precision @ np.diff(curve.recall, prepend=0.0))


def r_precision(scores: FloatArray, wrong: BoolArray) -> float | None:
    """Among as many of the highest scores as there are wrong examples, the fraction that is wrong.

    At that number precision and recall are the same. Where the cut falls between equal scores, it is what drawing
    lots among them gives on average.
    """
    count = int(wrong.sum())
    if not count:
        return None
    cut = np.sort(scores)[-count]
    above, at = scores > cut, scores == cut
    drawn = (count - above.sum()) / at.sum()
    return float((wrong & above).sum() + drawn * (wrong & at).sum()) / count


class Flagged(NamedTuple):
    """What comes of calling wrong just these examples."""

    flagged: int
    precision: float | None  # of those that are called wrong, the fraction that is; None if none is called so
    recall: float | None  # of the wrong, the fraction that is called so; None if none is wrong


def flag(flagged: BoolArray, wrong: BoolArray) -> Flagged:
    """Precision and recall of a yes or no for each example.

    >>> flag(np.array([True, True, False, False]), np.array([True, False, True, True])).precision
    0.5
    """
    hits, count, all_wrong = (int(mask.sum()) for mask in (flagged & wrong, flagged, wrong))
    return Flagged(count, hits / count if count else None, hits / all_wrong if all_wrong else None)
