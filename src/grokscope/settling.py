"""Whether the phase of a run is decided before its last step.

    spec = gs.RunSpec(training=gs.TrainingSpec(settle=400))    # or: grokscope train --settle 400

A run has settled at a measured step if four things are true of the last `training.settle` steps:

- the phase was the same at every measured step;
- both accuracies kept away from the bounds between phases;
- if they go on changing as they did, they do not reach a bound until the last step;
- if the norms of the weights go on changing as they did, at least half of each is left at the last step.

The third tells a network that memorises from one that is about to find the rule, the fourth one that keeps the rule
from one that will forget it: accuracies show that late, the weights that fade away show it early. `python -m
benchmarks.settling` compares this with a rule that has the first part alone.
"""

from bisect import bisect_right
from collections.abc import Sequence

from grokscope.measure import Row
from grokscope.phases import GUESSING_MARGIN, HIGH_ACCURACY, classify
from grokscope.spec import TrainingSpec

MARGIN = 0.02  # of accuracy, from every bound
NORMS = ("norm_u", "norm_v", "norm_w")
NORM_LEFT = 0.5  # of what it is now


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

    def ahead(name: str) -> float:
        """A column at the last step, if it goes on changing as it did."""
        return last[name] + left * (last[name] - rows[0][name])

    # Written so that an accuracy that is not a number never settles, and a norm that does not exist does not matter.
    stays = all((last[name] - bound) * (ahead(name) - bound) > 0 for name, bound in bounds)
    fades = any(ahead(name) < NORM_LEFT * last[name] for name in NORMS if name in last)
    return kept_away and stays and not fades


def _bounds(row: Row, corruption: float) -> list[tuple[str, float]]:
    """The accuracies whose bounds separate the phase of this row from others (Table 2)."""
    bounds = [("test_accuracy", HIGH_ACCURACY), ("train_accuracy", HIGH_ACCURACY)]
    if row.test_accuracy >= HIGH_ACCURACY:
        bounds.append(("train_accuracy", 1 + GUESSING_MARGIN - corruption))
    return bounds
