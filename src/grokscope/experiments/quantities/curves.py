"""What several claims read off the curve of a network.

>>> from grokscope import RunSpec, run
>>> result = run(RunSpec().updated({"task.modulus": 7, "model.width": 8, "training.steps": 1}))
>>> final("test_accuracy")(result) == result.final.test_accuracy
True
"""

import math
from collections.abc import Callable

from grokscope.result import RunResult


def final(column: str) -> Callable[[RunResult], float]:
    """A column of the curve at the end of training."""
    return lambda result: float(getattr(result.final, column))


def final_difference(column: str) -> Callable[[RunResult, RunResult], float]:
    """The end of the first network minus that of the second."""
    return lambda first, second: final(column)(first) - final(column)(second)


def final_ratio(column: str) -> Callable[[RunResult, RunResult], float]:
    """The end of the first network over that of the second."""
    return lambda first, second: ratio(final(column)(first), final(column)(second))


def ratio(numerator: float, denominator: float) -> float:
    """NaN if there is nothing to compare with."""
    return numerator / denominator if denominator else math.nan


def distance_from_clean(train_accuracy: float, result: RunResult) -> float:
    """How far a train accuracy is from 1 − ξ, that of a network that ignores all corrupted labels."""
    return abs(train_accuracy - (1 - result.dataset().corruption))
