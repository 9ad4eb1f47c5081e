"""Whether the phase of a run is decided before its last step.

    spec = gs.RunSpec(training=gs.TrainingSpec(settle=400))    # or: grokscope train --settle 400

A run has settled at a measured step if three things are true of the last `training.settle` steps:

- the phase was the same at every measured step;
- both accuracies kept away from the bounds between phases;
- if they go on changing as they did, they do not reach a bound until the last step.

The third is what tells a network that memorises from one that is about to find the rule. `python -m
benchmarks.settling` compares rules with and without it.
"""

from bisect import bisect_right
from collections.abc import Sequence

from grokscope.measure import Row
from grokscope.phases import GUESSING_MARGIN, HIGH_ACCURACY, classify
from grokscope.spec import TrainingSpec

MARGIN = 0.02  # of accuracy, from every bound


def has_settled(curve: Sequence[Row], training: TrainingSpec, corruption: float) -> bool:
    """Whether a run with this curve so far need not go on; never if `training.settle` is 0."""
    if not training.settle:
        return False
    last = curve[-1]
    early = bisect_right(curve, last.step - training.settle, key=lambda row: row.step)
    if not early:
        return False
    rows = curve[early - 1 :]
    # What was best before does not matter: it changes the name of no phase within these rows.
    if len({classify(row.train_accuracy, row.test_accuracy, corruption, 0) for row in rows}) > 1:
        return False
    bounds = _bounds(last, corruption)
    kept_away = all(abs(row[name] - bound) >= MARGIN for row in rows for name, bound in bounds)
    left = (training.steps - last.step) / (last.step - rows[0].step)
    ahead = {name: last[name] + left * (last[name] - rows[0][name]) for name, _ in bounds}
    # Written so that an accuracy that is not a number never settles.
    return kept_away and all((last[name] - bound) * (ahead[name] - bound) > 0 for name, bound in bounds)


def _bounds(row: Row, corruption: float) -> list[tuple[str, float]]:
    """The accuracies whose bounds separate the phase of this row from others (Table 2)."""
    bounds = [("test_accuracy", HIGH_ACCURACY), ("train_accuracy", HIGH_ACCURACY)]
    if row.test_accuracy >= HIGH_ACCURACY:
        bounds.append(("train_accuracy", 1 + GUESSING_MARGIN - corruption))
    return bounds
