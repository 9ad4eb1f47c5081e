"""What the claims about Transformers and deep MLPs (Section 2.2, Appendix G) measure."""

import math

import numpy as np

from grokscope.measure import training_events
from grokscope.phases import HIGH_ACCURACY
from grokscope.result import RunResult


def ipr_growth(result: RunResult) -> float:
    """The mean IPR at the input at the end, divided by that at the first measured step."""
    return result.final.mean_ipr / result.curve[0].mean_ipr


def ipr_ratio(numerator: RunResult, denominator: RunResult) -> float:
    """The ratio of the mean IPRs at the input; NaN unless both networks generalise."""
    finals = numerator.final, denominator.final
    if min(final.test_accuracy for final in finals) < HIGH_ACCURACY:
        return math.nan
    return finals[0].mean_ipr / finals[1].mean_ipr


def output_ipr(result: RunResult) -> float:
    """The mean IPR of the columns of the output layer; NaN if there is no network to measure."""
    return result.outputs.mean_ipr if result.outputs else math.nan


def most_memorised(result: RunResult) -> float:
    """The largest share of the corrupted labels that it knew at any one step."""
    return max(row.corrupted_accuracy for row in result.curve)


def both_high(result: RunResult) -> float:
    """The lower of train and test accuracy, at the step where it is highest."""
    return max(min(row.train_accuracy, row.test_accuracy) for row in result.curve)


def train_before_grokking(result: RunResult) -> float:
    """The highest train accuracy before test accuracy is high; NaN if it never is."""
    grokked = training_events(result.curve).grokked.step
    if grokked is None:
        return math.nan
    return max((row.train_accuracy for row in result.curve if row.step < grokked), default=math.nan)


def steps_to_unlearning(result: RunResult) -> float:
    """Steps from a high test accuracy to half of the wrong labels being unlearnt; NaN if either never happens."""
    events = training_events(result.curve)
    if events.grokked.step is None or events.unlearned.step is None:
        return math.nan
    return events.unlearned.step - events.grokked.step


def explained_by_sum(result: RunResult) -> float:
    """The share of the variance of the last hidden neurons, over all pairs, that (m + n) mod p explains.

    It is 1 if they are functions of the sum, 0 if they depend on one number alone, and about 1/p for noise.
    """
    p = result.spec.task.modulus
    pairs = np.array([(m, n) for m in range(p) for n in range(p)])
    seen = result.module().activations(pairs)
    hidden = seen[f"post{result.spec.model.depth - 1}"].numpy().astype(np.float64)  # [p², N]
    centred = hidden - hidden.mean(axis=0)
    of_sum = np.array([centred[pairs.sum(axis=1) % p == total].mean(axis=0) for total in range(p)])  # [p, N]
    whole = np.square(centred).mean(axis=0).sum()
    return float(np.square(of_sum).mean(axis=0).sum() / whole) if whole else math.nan
